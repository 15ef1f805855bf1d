package transfer

import (
	"errors"
	"fmt"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// owner is what a record set is found by.
type owner struct {
	name dnsname.Name
	typ  rr.Type
}

// record is a record that a difference adds or removes.
type record struct {
	owner
	ttl    uint32
	data   string
	remove bool
}

// copied is a zone, or a difference, on its way in.
type copied struct {
	apex dnsname.Name
	has  *uint32 // our serial, when a difference was asked for
	done bool

	// Names are counted as they are kept: a message can have thousands of pointers to one long name.
	size, limit int // octets; 0: no limit

	soa    record // the newest
	serial uint32
	count  int
	whole  map[owner]*zone.RecordSet // all of the zone; nil for a difference
	steps  []record                  // the difference, without SOAs
	adding bool                      // the part of it that comes in adds records
	at     uint32                    // serial of the SOA that began it
}

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
	case c.count == 2 && isSOA && c.has != nil && soa.Serial == *c.has && soa.Serial != c.serial:
		c.at = soa.Serial
	case c.count == 2:
		c.whole = map[owner]*zone.RecordSet{}
		return c.addWhole(r, soa)
	case c.whole != nil:
		return c.addWhole(r, soa)
	case isSOA:
		return c.turn(soa.Serial)
	default:
		r.remove = !c.adding
		c.steps = append(c.steps, r)
	}
	return nil
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

func (c *copied) addWhole(r record, soa *dns.SOA) error {
	if soa != nil {
		if soa.Serial != c.serial {
			return errOrder
		}
		c.done = true
		r = c.soa
	}
	if r.typ == rr.TypeALIAS {
		return nil // a number for private use; here it is something else than there
	}
	s := c.whole[r.owner]
	if s == nil {
		s = &zone.RecordSet{Name: r.name, Type: r.typ, TTL: new(r.ttl), Managed: r.name == c.apex && (r.typ == rr.TypeSOA || r.typ == rr.TypeNS)}
		c.whole[r.owner] = s
	}
	*s.TTL = min(*s.TTL, r.ttl) // RFC 2181 §5.2: they should be the same
	s.Data = append(s.Data, r.data)
	return nil
}

// read checks that a record can be in the zone.
func (c *copied) read(rec dns.RR) (record, error) {
	h := rec.Header()
	name, err := dnsname.Parse(h.Name)
	if err != nil {
		return record{}, err
	}
	t := rr.Type(h.Rrtype)
	if !name.IsIn(c.apex) || h.Class != dns.ClassINET || !t.IsData() || t == rr.TypeSOA && name != c.apex {
		return record{}, fmt.Errorf("the transfer has a record that cannot be in the zone: %s %s", h.Name, t)
	}
	data, err := rr.FromRR(rec)
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", h.Name, err)
	}
	if c.size += len(name.Wire()) + wire.RecordFixed + len(data); c.limit > 0 && c.size > c.limit {
		return record{}, fmt.Errorf("the zone has more than %d octets, which is the limit (transfer.max_zone)", c.limit)
	}
	return record{owner: owner{name, t}, ttl: min(h.Ttl, rr.MaxTTL), data: data}, nil
}
