package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// View reads the rows of a store at one moment. The values it returns are the caller's own.
type View struct {
	r      Reader
	secret []byte
}

// NewView reads through r. The store must have been set up by Init.
func NewView(r Reader) View {
	return View{r, append([]byte(nil), r.Get(Meta, KeySecret)...)}
}

// absent says what is not there. It makes its words when they are read, which is seldom: a change looks for quotas that
// nobody has set, and a new record set for the one in whose place it would be.
type absent struct {
	what string
	key  fmt.Stringer
	typ  rr.Type // of a record set that was looked for by name; else 0
}

type text string

func (t text) String() string { return string(t) }

func (e *absent) Error() string {
	s := e.what + " " + e.key.String()
	if e.typ != 0 {
		s += " " + e.typ.String()
	}
	return s + ": " + ErrNotFound.Error()
}

func (e *absent) Unwrap() error { return ErrNotFound }

// Zone is the zone with this id, or ErrNotFound.
func (v View) Zone(id uuid.UUID) (zone.Zone, error) {
	b := v.r.Get(Zones, id[:])
	if b == nil {
		return zone.Zone{}, &absent{what: "zone", key: id}
	}
	return decodeZone(id[:], b)
}

// ZoneByName is the zone with this name, or ErrNotFound.
func (v View) ZoneByName(n dnsname.Name) (zone.Zone, error) {
	id := v.r.Get(Names, zoneKey(n))
	if len(id) != 16 {
		return zone.Zone{}, &absent{what: "zone", key: n}
	}
	return v.Zone(uuid.UUID(id))
}

// Zones walks all zones in canonical order of their names until fn returns false or an error.
func (v View) Zones(fn func(zone.Zone) (bool, error)) error {
	return v.zonesIn(nil, fn)
}

// ZonesBelow walks the zones at or below a name in canonical order.
func (v View) ZonesBelow(n dnsname.Name, fn func(zone.Zone) (bool, error)) error {
	return v.zonesIn(n.AppendKey(nil), fn)
}

func (v View) zonesIn(prefix []byte, fn func(zone.Zone) (bool, error)) error {
	var err error
	v.r.Scan(Names, prefix, nil, func(_, id []byte) bool {
		var z zone.Zone
		if z, err = v.Zone(uuid.UUID(id)); err != nil {
			return false
		}
		var more bool
		more, err = fn(z)
		return more && err == nil
	})
	return err
}

// RecordSet is the set of this zone, name and type, or ErrNotFound.
func (v View) RecordSet(zoneID uuid.UUID, n dnsname.Name, t rr.Type) (zone.RecordSet, error) {
	key := SetKey(zoneID, n, t)
	b := v.r.Get(Sets, key)
	if b == nil {
		return zone.RecordSet{}, &absent{what: "record set", key: n, typ: t}
	}
	return v.set(key, b)
}

// RecordSetByID is the set with this id, or ErrNotFound.
func (v View) RecordSetByID(id uuid.UUID) (zone.RecordSet, error) {
	num := setNumber(id)
	key := v.r.Get(SetIDs, number(num))
	if key == nil || setID(v.secret, num) != id {
		return zone.RecordSet{}, &absent{what: "record set", key: id}
	}
	b := v.r.Get(Sets, key)
	if b == nil {
		return zone.RecordSet{}, fmt.Errorf("record set %s has an id but no row: %w", id, errRow)
	}
	return v.set(key, b)
}

func (v View) set(key, value []byte) (zone.RecordSet, error) {
	s, num, err := decodeSet(key, value)
	s.ID = setID(v.secret, num)
	return s, err
}

// RecordSetsAt is every set of a name.
func (v View) RecordSetsAt(zoneID uuid.UUID, n dnsname.Name) ([]zone.RecordSet, error) {
	var out []zone.RecordSet
	err := v.sets(NameKey(zoneID, n), nil, func(s zone.RecordSet) (bool, error) {
		out = append(out, s)
		return true, nil
	})
	return out, err
}

// RecordSets walks the sets of a zone in canonical order of names, then by type, until fn returns false or an error.
func (v View) RecordSets(zoneID uuid.UUID, fn func(zone.RecordSet) (bool, error)) error {
	return v.sets(zoneID[:], nil, fn)
}

// RecordSetsBelow walks the sets at or below a name.
func (v View) RecordSetsBelow(zoneID uuid.UUID, n dnsname.Name, fn func(zone.RecordSet) (bool, error)) error {
	return v.sets(n.AppendKey(append([]byte(nil), zoneID[:]...)), nil, fn)
}

func (v View) sets(prefix, from []byte, fn func(zone.RecordSet) (bool, error)) error {
	var err error
	v.r.Scan(Sets, prefix, from, func(key, value []byte) bool {
		var s zone.RecordSet
		if s, err = v.set(key, value); err != nil {
			return false
		}
		var more bool
		more, err = fn(s)
		return more && err == nil
	})
	return err
}

// Served walks what a zone serves, in canonical order of names.
func (v View) Served(z zone.Zone, fn func(rr.Set) error) error {
	var err error
	v.r.Scan(Sets, z.ID[:], nil, func(key, value []byte) bool {
		var s rr.Set
		if s, err = decodeServed(key, value, z.TTL); err != nil {
			return false
		}
		err = fn(s)
		return err == nil
	})
	return err
}

// RecordSetsByAge walks the sets of all zones by age, oldest first (newest first when back), starting after the set
// with id after (nil: at the beginning). Ids sort by creation, so this is the order of both.
func (v View) RecordSetsByAge(after *uuid.UUID, back bool, fn func(zone.RecordSet) (bool, error)) error {
	var from []byte
	var skip []byte
	if after != nil {
		from = number(setNumber(*after))
		skip = from
	}
	scan := v.r.Scan
	if back {
		scan = v.r.ScanBack
	}
	var err error
	scan(SetIDs, nil, from, func(num, key []byte) bool {
		if string(num) == string(skip) {
			return true
		}
		var s zone.RecordSet
		if s, err = v.set(key, v.r.Get(Sets, key)); err != nil {
			return false
		}
		var more bool
		more, err = fn(s)
		return more && err == nil
	})
	return err
}

// ZoneSetsByAge is RecordSetsByAge for one zone. It passes over the sets of other zones without reading them, and
// begins at the zone's SOA, which is its oldest set.
func (v View) ZoneSetsByAge(z zone.Zone, after *uuid.UUID, back bool, fn func(zone.RecordSet) (bool, error)) error {
	var from, skip []byte
	if after != nil {
		from = number(setNumber(*after))
		skip = from
	} else if soa, err := v.RecordSet(z.ID, z.Name, rr.TypeSOA); err == nil && !back {
		from = number(setNumber(soa.ID))
	}
	scan := v.r.Scan
	if back {
		scan = v.r.ScanBack
	}
	var err error
	scan(SetIDs, nil, from, func(num, key []byte) bool {
		if string(num) == string(skip) || !bytes.HasPrefix(key, z.ID[:]) {
			return true
		}
		var s zone.RecordSet
		if s, err = v.set(key, v.r.Get(Sets, key)); err != nil {
			return false
		}
		var more bool
		more, err = fn(s)
		return more && err == nil
	})
	return err
}

// ZoneSetsByName walks the sets of a zone in canonical order of names, then by type (in reverse when back), starting
// after the set after (nil: at the beginning).
func (v View) ZoneSetsByName(zoneID uuid.UUID, after *zone.RecordSet, back bool,
	fn func(zone.RecordSet) (bool, error)) error {
	var from []byte
	if after != nil {
		from = SetKey(zoneID, after.Name, after.Type)
	}
	scan := v.r.Scan
	if back {
		scan = v.r.ScanBack
	}
	var err error
	scan(Sets, zoneID[:], from, func(key, value []byte) bool {
		if after != nil && bytes.Equal(key, from) {
			return true
		}
		var s zone.RecordSet
		if s, err = v.set(key, value); err != nil {
			return false
		}
		var more bool
		more, err = fn(s)
		return more && err == nil
	})
	return err
}

// Object reads the object of this kind and id into out, or returns ErrNotFound.
func (v View) Object(kind Kind, id string, out any) error {
	b := v.r.Get(Objects, ObjectKey(kind, id))
	if b == nil {
		return &absent{what: string(kind), key: text(id)}
	}
	return json.Unmarshal(b, out)
}

// EachObject walks the objects of a kind in order of their ids, as JSON, until fn returns false or an error.
func (v View) EachObject(kind Kind, fn func(id string, value []byte) (bool, error)) error {
	return v.EachObjectAfter(kind, "", fn)
}

// EachObjectAfter is EachObject from the first id after the given one.
func (v View) EachObjectAfter(kind Kind, after string, fn func(id string, value []byte) (bool, error)) error {
	prefix := ObjectKey(kind, "")
	var from []byte
	if after != "" {
		from = append(ObjectKey(kind, after), 0) // the least key that is greater
	}
	var err error
	v.r.Scan(Objects, prefix, from, func(key, value []byte) bool {
		var more bool
		more, err = fn(string(key[len(prefix):]), value)
		return more && err == nil
	})
	return err
}

// ObjectsOf reads all objects of a kind.
func ObjectsOf[T any](v View, kind Kind) ([]T, error) {
	var out []T
	err := v.EachObject(kind, func(_ string, value []byte) (bool, error) {
		var o T
		if err := json.Unmarshal(value, &o); err != nil {
			return false, err
		}
		out = append(out, o)
		return true, nil
	})
	return out, err
}
