// Package update applies dynamic updates (RFC 2136) to zones: prerequisites and changes are read and made inside one edit, so
// an update happens whole or not at all, and nothing can come between its question and its deed.
package update

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// Class is that of a record in an update, where it says what the record is for.
type Class uint16

// The classes that mean something in an update (RFC 2136 §2.4, §2.5).
const (
	ClassIN   Class = 1
	ClassNONE Class = 254
	ClassANY  Class = 255
)

// Record is a record of an update.
type Record struct {
	Name  dnsname.Name
	Type  rr.Type
	Class Class
	TTL   uint32
	Data  string // wire form; empty where the class says that there is none
}

// Message is an update of one zone.
type Message struct {
	Prerequisites []Record
	Updates       []Record
}

// Rcode is the answer to an update.
type Rcode uint8

// The answers (RFC 2136 §2.2).
const (
	FormErr  Rcode = 1
	ServFail Rcode = 2
	NXDomain Rcode = 3
	NotImp   Rcode = 4
	Refused  Rcode = 5
	YXDomain Rcode = 6
	YXRRSet  Rcode = 7
	NXRRSet  Rcode = 8
	NotAuth  Rcode = 9
	NotZone  Rcode = 10
)

// Error says why an update was not made.
type Error struct {
	Rcode  Rcode
	Reason string
}

func (e *Error) Error() string { return e.Reason }

func refuse(code Rcode, format string, a ...any) error {
	return &Error{code, fmt.Sprintf(format, a...)}
}

// Apply makes the update in the zone. It returns an *Error when the message or the zone's state does not allow it, and then
// the caller's edit must fail.
func Apply(tx *publish.Tx, z zone.Zone, m Message) error {
	if z.Kind != zone.Primary {
		return refuse(NotAuth, "zone %s is not changed here", z.Name)
	}
	if err := prerequisites(tx, z, m.Prerequisites); err != nil {
		return err
	}
	for _, r := range m.Updates {
		if err := scan(z, r); err != nil {
			return err
		}
	}
	for _, r := range m.Updates {
		if err := apply(tx, z, r); err != nil {
			return reword(err)
		}
	}
	return nil
}

// scan refuses what no state of the zone could allow (RFC 2136 §3.4.1).
func scan(z zone.Zone, r Record) error {
	if !r.Name.IsIn(z.Name) {
		return refuse(NotZone, "%s is not in zone %s", r.Name, z.Name)
	}
	ok := false
	switch r.Class {
	case ClassIN:
		ok = r.Type.IsData()
	case ClassANY:
		ok = r.TTL == 0 && r.Data == "" && (r.Type.IsData() || r.Type == rr.TypeANY)
	case ClassNONE:
		ok = r.TTL == 0 && r.Type.IsData()
	}
	if !ok {
		return refuse(FormErr, "a record of type %s and class %d at %s says nothing in an update", r.Type, r.Class, r.Name)
	}
	if r.Type == rr.TypeALIAS {
		return refuse(Refused, "ALIAS records are changed by the zones API")
	}
	if r.Class == ClassIN || r.Class == ClassNONE {
		if err := rr.Check(r.Type, r.Data); err != nil {
			return refuse(FormErr, "%v", err)
		}
	}
	return nil
}

// apply makes one change (RFC 2136 §3.4.2).
func apply(tx *publish.Tx, z zone.Zone, r Record) error {
	sets, err := tx.RecordSetsAt(z.ID, r.Name)
	if err != nil {
		return err
	}
	switch {
	case r.Class == ClassIN:
		return add(tx, z, r, sets)
	case r.Class == ClassANY && r.Type == rr.TypeANY:
		for _, s := range sets {
			if err := remove(tx, z, s); err != nil {
				return err
			}
		}
		return nil
	}
	i := slices.IndexFunc(sets, func(s zone.RecordSet) bool { return s.Type == r.Type })
	if i < 0 {
		return nil // RFC 2136 §3.4.2.3: nothing to delete is no error
	}
	if r.Class == ClassANY {
		return remove(tx, z, sets[i])
	}
	return removeOne(tx, z, r, sets[i])
}

// mayChange refuses what the program made itself. The SOA is left alone in silence, as the RFC has it: its serial is ours.
func mayChange(s zone.RecordSet) error {
	if s.Hidden {
		return refuse(Refused, "the %s records of %s are made of its ALIAS", s.Type, s.Name)
	}
	if s.Managed {
		return refuse(Refused, "the %s records of %s are made by the server", s.Type, s.Name)
	}
	return nil
}

func add(tx *publish.Tx, z zone.Zone, r Record, sets []zone.RecordSet) error {
	if r.Type == rr.TypeSOA {
		return nil
	}
	for _, s := range sets {
		cname := s.Type == rr.TypeCNAME && len(s.Data) > 0
		if cname != (r.Type == rr.TypeCNAME) && s.Type != rr.TypeRRSIG && s.Type != rr.TypeNSEC && (cname || r.Type == rr.TypeCNAME) {
			return nil // RFC 2136 §3.4.2.2: a CNAME and other data do not meet, and the update is silently ignored
		}
	}
	ttl := r.TTL
	i := slices.IndexFunc(sets, func(s zone.RecordSet) bool { return s.Type == r.Type })
	if i < 0 {
		_, err := tx.CreateSet(zone.RecordSet{Zone: z.ID, Name: r.Name, Type: r.Type, TTL: &ttl, Data: []string{r.Data}})
		return err
	}
	s := sets[i]
	if err := mayChange(s); err != nil {
		return err
	}
	s.TTL = &ttl
	if r.Type == rr.TypeCNAME || r.Type == rr.TypeDNAME {
		s.Data = []string{r.Data} // there is one, and the new one replaces it
	} else {
		// What is equal but for the case of a name comes first and so stays: the last word in an update is the newest.
		s.Data = append([]string{r.Data}, s.Data...)
	}
	_, err := tx.UpdateSet(s)
	return err
}

// remove deletes a set. The apex keeps its SOA and NS whatever an update says (RFC 2136 §3.4.2.3).
func remove(tx *publish.Tx, z zone.Zone, s zone.RecordSet) error {
	if s.Name == z.Name && (s.Type == rr.TypeSOA || s.Type == rr.TypeNS) {
		return nil
	}
	if err := mayChange(s); err != nil {
		return err
	}
	if s.Type == rr.TypeALIAS {
		return refuse(Refused, "ALIAS records are changed by the zones API")
	}
	return tx.DeleteSet(z.ID, s.Name, s.Type)
}

// removeOne deletes one record of a set.
func removeOne(tx *publish.Tx, z zone.Zone, r Record, s zone.RecordSet) error {
	if r.Type == rr.TypeSOA {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(s.Data), func(d string) bool { return rr.SameData(r.Type, d, r.Data) })
	if len(rest) == len(s.Data) {
		return nil
	}
	if len(rest) == 0 && s.Name == z.Name && s.Type == rr.TypeNS {
		return nil // RFC 2136 §3.4.2.4: the last NS of a zone stays
	}
	if err := mayChange(s); err != nil {
		return err
	}
	if len(rest) == 0 {
		return tx.DeleteSet(z.ID, s.Name, s.Type)
	}
	s.Data = rest
	_, err := tx.UpdateSet(s)
	return err
}

// reword turns what the zone cannot hold into the answer for it.
func reword(err error) error {
	if p, ok := errors.AsType[*zone.PlacementError](err); ok {
		return refuse(Refused, "%s", p.Reason)
	}
	return err
}
