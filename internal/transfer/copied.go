package transfer

import (
	"errors"
	"fmt"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// copied is a zone, or a difference, as it comes in. Its records go to a spool at once: a zone of a million names takes
// as much memory while it is read as one of ten.
type copied struct {
	apex  dnsname.Name
	has   *uint32 // our serial, when a difference was asked for
	to    *spool
	check func(*copied) error // is called with every record, and ends the transfer with its error; nil: none
	done  bool

	soa    zonefile.Record // the newest
	serial uint32
	count  int    // of records that came
	data   int    // bytes of what the spool has of these
	whole  bool   // all of the zone is coming, not a difference
	adding bool   // the part of the difference that comes in adds records
	at     uint32 // serial of the SOA that began it
}

// removed marks a record in the spool of a difference that takes it away. No TTL has this bit (RFC 2181 §8).
const removed = 1 << 31

var errOrder = errors.New("the transfer is not in order")

// add takes the next record (RFC 5936 §2.2, RFC 1995 §4).
func (c *copied) add(rec dns.RR) error {
	if c.done {
		return errOrder // something stands behind the end
	}
	r, err := c.read(rec)
	if err != nil {
		return err
	}
	c.count++
	soa, isSOA := rec.(*dns.SOA)
	switch {
	case c.count == 1:
		if !isSOA {
			return errOrder
		}
		c.soa, c.serial = r, soa.Serial
		return nil
	case c.count == 2 && isSOA && c.has != nil && soa.Serial == *c.has && soa.Serial != c.serial:
		c.at = soa.Serial
		return nil
	case c.count == 2:
		c.whole = true
		if err := c.put(c.soa); err != nil {
			return err
		}
	}
	switch {
	case isSOA && c.whole:
		c.done = true
		if soa.Serial != c.serial {
			return errOrder
		}
		return nil
	case isSOA:
		return c.turn(soa.Serial)
	case !c.whole && !c.adding:
		r.TTL |= removed
	}
	return c.put(r)
}

// turn is at an SOA inside a difference: it ends what was removed or added, and says which state comes next.
func (c *copied) turn(serial uint32) error {
	if c.adding {
		switch {
		case serial != c.at:
			return errOrder
		case serial == c.serial:
			c.done = true
			return nil
		}
	}
	c.adding, c.at = !c.adding, serial
	return nil
}

// put keeps a record.
func (c *copied) put(r zonefile.Record) error {
	if r.Type == rr.TypeALIAS {
		return nil // a number for private use; here it is something else than there
	}
	c.data += len(r.Data)
	if err := c.to.put(r); err != nil {
		return err
	}
	if c.check == nil {
		return nil
	}
	return c.check(c)
}

// read checks that a record can be in the zone.
func (c *copied) read(rec dns.RR) (zonefile.Record, error) {
	h := rec.Header()
	name, err := dnsname.Parse(h.Name)
	if err != nil {
		return zonefile.Record{}, err
	}
	t := rr.Type(h.Rrtype)
	if !name.IsIn(c.apex) || h.Class != dns.ClassINET || !t.IsData() || t == rr.TypeSOA && name != c.apex {
		return zonefile.Record{}, refuse("the transfer has a record that cannot be in the zone: %s %s", h.Name, t)
	}
	data, err := rr.FromRR(rec)
	if err != nil {
		return zonefile.Record{}, fmt.Errorf("%s: %w", h.Name, err)
	}
	return zonefile.Record{Name: name, Type: t, TTL: min(h.Ttl, rr.MaxTTL), Data: data}, nil
}
