package transfer

import (
	"errors"
	"fmt"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// incoming is a zone or a difference while it is read. Its records go to a spool at once, so that a zone of a million
// names takes as much memory as one of ten names.
type incoming struct {
	apex  dnsname.Name
	has   *uint32 // our serial, if a difference was requested
	to    *spool
	check func(*incoming) error // called for every record that is read; an error ends the transfer; nil: no check
	done  bool

	soa    zonefile.Record // SOA of the newest serial
	serial uint32
	count  int    // number of records read, including SOA records and those that are not stored
	data   int    // bytes of their data
	whole  bool   // the transfer is the whole zone, not a difference
	adding bool   // the current part of the difference adds records
	at     uint32 // serial of the SOA that began the current part
}

// removed marks a record in the spool that the difference removes. No TTL has this bit (RFC 2181 §8).
const removed = 1 << 31

var errOrder = errors.New("the records of the transfer are out of order")

// add adds the next record (RFC 5936 §2.2, RFC 1995 §4).
func (c *incoming) add(rec dns.RR) error {
	if c.done {
		return errOrder // a record after the end
	}
	r, err := c.read(rec)
	if err == nil {
		err = c.countRecord(r)
	}
	if err != nil {
		return err
	}
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
		return c.nextPart(soa.Serial)
	case !c.whole && !c.adding:
		r.TTL |= removed
	}
	return c.put(r)
}

// nextPart handles an SOA inside a difference: it ends the removed or added records, and has the serial of the next
// part.
func (c *incoming) nextPart(serial uint32) error {
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

// countRecord counts a record and checks the limits. Every record passes it, also one that is not stored: otherwise a
// master could send such records without end.
func (c *incoming) countRecord(r zonefile.Record) error {
	c.count++
	c.data += len(r.Data)
	if c.check == nil {
		return nil
	}
	return c.check(c)
}

// put writes a record to the spool.
func (c *incoming) put(r zonefile.Record) error {
	if r.Type == rr.TypeALIAS {
		return nil // a private-use type number; the master may use it for something else
	}
	return c.to.put(r)
}

// read parses a record and checks that it can be in the zone.
func (c *incoming) read(rec dns.RR) (zonefile.Record, error) {
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
