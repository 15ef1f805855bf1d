// Package update applies dynamic updates (RFC 2136) to zones: it checks prerequisites and makes changes inside one
// edit, so an update is atomic and no other change comes between its prerequisites and its changes.
//
// Start with Apply in update.go. prerequisites.go checks prerequisites, and pending.go collects the changed record
// sets.
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

// Record is a record of an update message.
type Record struct {
	Name  dnsname.Name
	Type  rr.Type
	Class uint16 // the operation (RFC 2136 §2.4, §2.5)
	TTL   uint32
	Data  string // wire form; empty for operations without data
}

// Message is an update of one zone.
type Message struct {
	Prerequisites []Record
	Updates       []Record
}

// Error reports why an update was not made.
type Error struct {
	Rcode  int // rcode of the reply (RFC 2136 §2.2)
	Reason string
}

func (e *Error) Error() string { return e.Reason }

// refuse returns an Error with the rcode for the reply.
func refuse(rcode int, format string, a ...any) error {
	return &Error{rcode, fmt.Sprintf(format, a...)}
}

// Apply makes the update in the zone. It returns an *Error when the message or the state of the zone does not allow it;
// the caller's edit must fail then.
func Apply(tx *publish.Tx, z zone.Zone, m Message) error {
	if z.Kind != zone.Primary {
		return refuse(wire.RcodeNotAuth, "zone %s cannot be changed here: it is not a primary zone", z.Name)
	}
	d := &pendingUpdate{tx: tx, z: z, names: map[dnsname.Name][]*pendingSet{}}
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
	return placementError(d.finish())
}

// scan refuses records that are invalid in any state of the zone (RFC 2136 §3.4.1).
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
		return refuse(wire.RcodeFormErr, "a record of type %s and class %d at %s is not a valid update", r.Type, r.Class,
			r.Name)
	}
	if r.Type == rr.TypeALIAS {
		return refuse(wire.RcodeRefused, "ALIAS records can be changed only through the zones API")
	}
	if r.Class == wire.ClassIN || r.Class == wire.ClassNONE {
		if err := rr.Check(r.Type, r.Data); err != nil {
			return refuse(wire.RcodeFormErr, "%v", err)
		}
	}
	return nil
}

// apply makes one change (RFC 2136 §3.4.2).
func (d *pendingUpdate) apply(r Record) error {
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
	if s == nil || !s.present {
		return nil // RFC 2136 §3.4.2.3: deleting what does not exist is not an error
	}
	if r.Class == wire.ClassANY {
		return d.remove(s)
	}
	return d.removeOne(r, s)
}

// mayChange refuses changes of sets that the server itself maintains. The callers silently ignore changes of the SOA,
// as the RFC requires: the server sets its serial.
func mayChange(s zone.RecordSet) error {
	if s.Hidden {
		return refuse(wire.RcodeRefused, "the %s records of %s are derived from its ALIAS", s.Type, s.Name)
	}
	if s.Managed {
		return refuse(wire.RcodeRefused, "the %s records of %s are managed by the server", s.Type, s.Name)
	}
	return nil
}

// add adds a record to its set, or creates the set (RFC 2136 §3.4.2.2). It ignores a SOA, because the server sets it.
func (d *pendingUpdate) add(r Record, sets []*pendingSet) error {
	if r.Type == rr.TypeSOA {
		return nil
	}
	for _, s := range sets {
		cname := s.set.Type == rr.TypeCNAME
		other := cname != (r.Type == rr.TypeCNAME) && s.set.Type != rr.TypeRRSIG && s.set.Type != rr.TypeNSEC
		if len(s.data) > 0 && other && (cname || r.Type == rr.TypeCNAME) {
			return nil // RFC 2136 §3.4.2.2: a CNAME cannot be beside other data, and the record is silently ignored
		}
	}
	s := find(sets, r.Type)
	if s == nil {
		s = d.put(zone.RecordSet{Zone: d.z.ID, Name: r.Name, Type: r.Type}, false)
	}
	if s.present {
		if err := mayChange(s.set); err != nil {
			return err
		}
	}
	if r.Type == rr.TypeCNAME || r.Type == rr.TypeDNAME {
		clear(s.data) // a name has only one such record, and the new one replaces it
	}
	// A TTL that is larger than zone files allow becomes the largest allowed one, as in transfers.
	s.set.TTL = new(min(r.TTL, rr.MaxTTL))
	s.data[rr.DataKey(r.Type, r.Data)] = r.Data // the newest spelling wins
	s.present, s.changed = true, true
	return nil
}

// remove deletes a set. The apex always keeps its SOA and NS (RFC 2136 §3.4.2.3).
func (d *pendingUpdate) remove(s *pendingSet) error {
	if !s.present || s.set.Name == d.z.Name && (s.set.Type == rr.TypeSOA || s.set.Type == rr.TypeNS) {
		return nil
	}
	if err := mayChange(s.set); err != nil {
		return err
	}
	if s.set.Type == rr.TypeALIAS {
		return refuse(wire.RcodeRefused, "ALIAS records can be changed only through the zones API")
	}
	clear(s.data)
	s.present, s.changed = false, true
	return nil
}

// removeOne deletes one record of a set.
func (d *pendingUpdate) removeOne(r Record, s *pendingSet) error {
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
	s.present, s.changed = len(s.data) > 0, true
	return nil
}

// placementError turns a PlacementError of the zone into the Error for the reply.
func placementError(err error) error {
	if p, ok := errors.AsType[*zone.PlacementError](err); ok {
		return refuse(wire.RcodeRefused, "%s", p.Reason)
	}
	return err
}
