// Package update applies dynamic updates (RFC 2136) to zones: it checks prerequisites and makes changes inside one
// edit, so an update is atomic and no other change comes between its prerequisites and its changes.
//
// Start with Apply in update.go. prerequisites.go checks prerequisites, and pending.go collects the changed record
// sets.
package update

import (
	"errors"
	"fmt"
	"math"

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
	// May reports whether the client may change the records of a name and type; nil: it may change all.
	May func(dnsname.Name, rr.Type) bool
}

// Error reports why an update was not made.
type Error struct {
	Rcode  int // rcode of the reply (RFC 2136 §2.2)
	Reason string
	Unmet  bool // a prerequisite does not hold
	Denied bool // the client may not make this change
}

func (e *Error) Error() string { return e.Reason }

// refuse returns an Error with the rcode for the reply.
func refuse(rcode int, format string, a ...any) error {
	return &Error{Rcode: rcode, Reason: fmt.Sprintf(format, a...)}
}

// Apply makes the update in the zone. It returns an *Error when the message or the state of the zone does not allow it;
// the caller's edit must fail then.
func Apply(tx *publish.Tx, z zone.Zone, m Message) error {
	if z.Kind != zone.Primary {
		return refuse(wire.RcodeNotAuth, "zone %s cannot be changed here: it is not a primary zone", z.Name)
	}
	d := &pendingUpdate{tx: tx, z: z, may: m.May, serial: z.Serial, names: map[dnsname.Name][]*pendingSet{}}
	if err := d.prerequisites(m.Prerequisites); err != nil {
		return err
	}
	var err error
	if d.room, d.full, err = tx.RoomForSets(z); err != nil {
		return err
	}
	for _, r := range m.Updates {
		if err := d.scan(r); err != nil {
			return err
		}
		if r.Class != wire.ClassIN {
			d.room = math.MaxInt // it may delete sets, and make room for others
		}
	}
	for _, r := range m.Updates {
		if err := d.apply(r); err != nil {
			return err
		}
	}
	return placementError(d.finish())
}

// scan refuses records that are invalid in any state of the zone (RFC 2136 §3.4.1), and those that the client may not
// change (§3.3).
func (d *pendingUpdate) scan(r Record) error {
	if !r.Name.IsIn(d.z.Name) {
		return refuse(wire.RcodeNotZone, "%s is not in zone %s", r.Name, d.z.Name)
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
	if r.Type == rr.TypeANY {
		return nil // remove checks each type that the name has
	}
	return d.checkMay(r.Name, r.Type)
}

// checkMay refuses a change that the client may not make.
func (d *pendingUpdate) checkMay(n dnsname.Name, t rr.Type) error {
	if d.may == nil || d.may(n, t) {
		return nil
	}
	return &Error{Rcode: wire.RcodeRefused, Reason: fmt.Sprintf("the key may not change the %s records of %s", t, n),
		Denied: true}
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

// checkDerived refuses changes of sets that the server derives from an ALIAS.
func checkDerived(s zone.RecordSet) error {
	if s.Hidden {
		return refuse(wire.RcodeRefused, "the %s records of %s are derived from its ALIAS", s.Type, s.Name)
	}
	return nil
}

// add adds a record to its set, or creates the set (RFC 2136 §3.4.2.2).
func (d *pendingUpdate) add(r Record, sets []*pendingSet) error {
	if r.Type == rr.TypeSOA {
		d.replaceSOA(r, sets)
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
		if d.created++; d.created > d.room {
			return d.full
		}
		s = d.put(zone.RecordSet{Zone: d.z.ID, Name: r.Name, Type: r.Type}, false)
	}
	if s.present {
		if err := checkDerived(s.set); err != nil {
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

// replaceSOA replaces the SOA if the new one has a larger serial, and ignores it otherwise (RFC 2136 §3.4.2.2).
func (d *pendingUpdate) replaceSOA(r Record, sets []*pendingSet) {
	s := find(sets, rr.TypeSOA)
	soa, ok := zone.ParseSOA(r.Data)
	if s == nil || !ok || int32(soa.Serial-d.serial) <= 0 { // RFC 1982 §3.2
		return
	}
	d.serial, d.rname = soa.Serial, soa.RName
	s.set.TTL = new(min(r.TTL, rr.MaxTTL))
	clear(s.data)
	s.data[rr.DataKey(r.Type, r.Data)] = r.Data
	s.changed = true
}

// remove deletes a set. The apex always keeps its SOA and NS (RFC 2136 §3.4.2.3).
func (d *pendingUpdate) remove(s *pendingSet) error {
	if !s.present || s.set.Name == d.z.Name && (s.set.Type == rr.TypeSOA || s.set.Type == rr.TypeNS) {
		return nil
	}
	if err := d.checkMay(s.set.Name, s.set.Type); err != nil {
		return err
	}
	if err := checkDerived(s.set); err != nil {
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
	if err := checkDerived(s.set); err != nil {
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
