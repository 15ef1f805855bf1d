// Package update applies dynamic updates (RFC 2136) to zones: prerequisites and changes are read and made inside one edit, so
// an update happens whole or not at all, and nothing can come between its question and its deed.
package update

import (
	"errors"
	"fmt"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// Record is a record of an update.
type Record struct {
	Name  dnsname.Name
	Type  rr.Type
	Class uint16 // what the record is for (RFC 2136 §2.4, §2.5)
	TTL   uint32
	Data  string // wire form; empty where the class says that there is none
}

// Message is an update of one zone.
type Message struct {
	Prerequisites []Record
	Updates       []Record
}

// Error says why an update was not made.
type Error struct {
	Rcode  int // of the reply (RFC 2136 §2.2)
	Reason string
}

func (e *Error) Error() string { return e.Reason }

func refuse(rcode int, format string, a ...any) error {
	return &Error{rcode, fmt.Sprintf(format, a...)}
}

// Apply makes the update in the zone. It returns an *Error when the message or the zone's state does not allow it, and then
// the caller's edit must fail.
func Apply(tx *publish.Tx, z zone.Zone, m Message) error {
	if z.Kind != zone.Primary {
		return refuse(wire.RcodeNotAuth, "zone %s is not changed here", z.Name)
	}
	d := &desk{tx: tx, z: z, names: map[dnsname.Name][]*sheet{}}
	if err := d.prerequisites(m.Prerequisites); err != nil {
		return err
	}
	for _, r := range m.Updates {
		if err := scan(z, r); err != nil {
			return err
		}
	}
	for _, r := range m.Updates {
		if err := d.apply(r); err != nil {
			return err
		}
	}
	return reword(d.finish())
}

// scan refuses what no state of the zone could allow (RFC 2136 §3.4.1).
func scan(z zone.Zone, r Record) error {
	if !r.Name.IsIn(z.Name) {
		return refuse(wire.RcodeNotZone, "%s is not in zone %s", r.Name, z.Name)
	}
	ok := false
	switch r.Class {
	case wire.ClassIN:
		ok = r.Type.IsData()
	case wire.ClassANY:
		ok = r.TTL == 0 && r.Data == "" && (r.Type.IsData() || r.Type == rr.TypeANY)
	case wire.ClassNONE:
		ok = r.TTL == 0 && r.Type.IsData()
	}
	if !ok {
		return refuse(wire.RcodeFormErr, "a record of type %s and class %d at %s says nothing in an update", r.Type, r.Class, r.Name)
	}
	if r.Type == rr.TypeALIAS {
		return refuse(wire.RcodeRefused, "ALIAS records are changed by the zones API")
	}
	if r.Class == wire.ClassIN || r.Class == wire.ClassNONE {
		if err := rr.Check(r.Type, r.Data); err != nil {
			return refuse(wire.RcodeFormErr, "%v", err)
		}
	}
	return nil
}

// apply makes one change (RFC 2136 §3.4.2).
func (d *desk) apply(r Record) error {
	sets, err := d.at(r.Name)
	if err != nil {
		return err
	}
	switch {
	case r.Class == wire.ClassIN:
		return d.add(r, sets)
	case r.Class == wire.ClassANY && r.Type == rr.TypeANY:
		for _, s := range sets {
			if err := d.remove(s); err != nil {
				return err
			}
		}
		return nil
	}
	s := find(sets, r.Type)
	if s == nil || !s.there {
		return nil // RFC 2136 §3.4.2.3: nothing to delete is no error
	}
	if r.Class == wire.ClassANY {
		return d.remove(s)
	}
	return d.removeOne(r, s)
}

// mayChange refuses what the program made itself. The SOA is left alone in silence, as the RFC has it: its serial is ours.
func mayChange(s zone.RecordSet) error {
	if s.Hidden {
		return refuse(wire.RcodeRefused, "the %s records of %s are made of its ALIAS", s.Type, s.Name)
	}
	if s.Managed {
		return refuse(wire.RcodeRefused, "the %s records of %s are made by the server", s.Type, s.Name)
	}
	return nil
}

func (d *desk) add(r Record, sets []*sheet) error {
	if r.Type == rr.TypeSOA {
		return nil
	}
	for _, s := range sets {
		cname := s.set.Type == rr.TypeCNAME
		if len(s.data) > 0 && cname != (r.Type == rr.TypeCNAME) && s.set.Type != rr.TypeRRSIG && s.set.Type != rr.TypeNSEC && (cname || r.Type == rr.TypeCNAME) {
			return nil // RFC 2136 §3.4.2.2: a CNAME and other data do not meet, and the update is silently ignored
		}
	}
	s := find(sets, r.Type)
	if s == nil {
		s = d.put(zone.RecordSet{Zone: d.z.ID, Name: r.Name, Type: r.Type}, false)
	}
	if s.there {
		if err := mayChange(s.set); err != nil {
			return err
		}
	}
	if r.Type == rr.TypeCNAME || r.Type == rr.TypeDNAME {
		clear(s.data) // there is one, and the new one replaces it
	}
	// A TTL that no zone file could have is the longest there is, as it is in transfers.
	s.set.TTL = new(min(r.TTL, rr.MaxTTL))
	s.data[rr.DataKey(r.Type, r.Data)] = r.Data // of two spellings the newest
	s.there, s.changed = true, true
	return nil
}

// remove deletes a set. The apex keeps its SOA and NS whatever an update says (RFC 2136 §3.4.2.3).
func (d *desk) remove(s *sheet) error {
	if !s.there || s.set.Name == d.z.Name && (s.set.Type == rr.TypeSOA || s.set.Type == rr.TypeNS) {
		return nil
	}
	if err := mayChange(s.set); err != nil {
		return err
	}
	if s.set.Type == rr.TypeALIAS {
		return refuse(wire.RcodeRefused, "ALIAS records are changed by the zones API")
	}
	clear(s.data)
	s.there, s.changed = false, true
	return nil
}

// removeOne deletes one record of a set.
func (d *desk) removeOne(r Record, s *sheet) error {
	key := rr.DataKey(r.Type, r.Data)
	if _, ok := s.data[key]; !ok || r.Type == rr.TypeSOA {
		return nil
	}
	if len(s.data) == 1 && s.set.Name == d.z.Name && s.set.Type == rr.TypeNS {
		return nil // RFC 2136 §3.4.2.4: the last NS of a zone stays
	}
	if err := mayChange(s.set); err != nil {
		return err
	}
	delete(s.data, key)
	s.there, s.changed = len(s.data) > 0, true
	return nil
}

// reword turns what the zone cannot hold into the answer for it.
func reword(err error) error {
	if p, ok := errors.AsType[*zone.PlacementError](err); ok {
		return refuse(wire.RcodeRefused, "%s", p.Reason)
	}
	return err
}
