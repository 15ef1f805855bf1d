package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
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
	return View{r, append([]byte(nil), r.Get(Meta, keySecret)...)}
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
	return v.ZonesBelow(dnsname.Root, fn)
}

// ZonesBelow walks the zones at or below a name in canonical order.
func (v View) ZonesBelow(n dnsname.Name, fn func(zone.Zone) (bool, error)) error {
	var err error
	v.r.Scan(Names, n.AppendKey(nil), nil, func(key, id []byte) bool {
		if len(id) != 16 {
			err = fmt.Errorf("zone name %x: %w", key, errRow)
			return false
		}
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
	err := v.sets(nameKey(zoneID, n), func(s zone.RecordSet) (bool, error) {
		out = append(out, s)
		return true, nil
	})
	return out, err
}

// RecordSets walks the sets of a zone in canonical order of names, then by type, until fn returns false or an error.
func (v View) RecordSets(zoneID uuid.UUID, fn func(zone.RecordSet) (bool, error)) error {
	return v.sets(zoneID[:], fn)
}

// RecordSetsBelow walks the sets at or below a name.
func (v View) RecordSetsBelow(zoneID uuid.UUID, n dnsname.Name, fn func(zone.RecordSet) (bool, error)) error {
	return v.sets(n.AppendKey(append([]byte(nil), zoneID[:]...)), fn)
}

func (v View) sets(prefix []byte, fn func(zone.RecordSet) (bool, error)) error {
	return v.walk(walk{table: Sets, prefix: prefix}, fn)
}

// walk says which record sets are walked, and in which order.
type walk struct {
	table        Table  // Sets: by name and type; SetIDs: by age
	prefix, from []byte // of keys, as in Scan
	skip         []byte // the key of the one set that is left out; nil: none
	back         bool

	of   func(zone uuid.UUID) bool // with SetIDs, the zones whose sets are read; nil: all
	pass int                       // with SetIDs, how many sets of other zones may be passed over
}

// ErrFar says that a walk by age came by too many record sets of other zones.
var ErrFar = errors.New("too many record sets of other zones lie between")

func (v View) walk(o walk, fn func(zone.RecordSet) (bool, error)) error {
	scan := v.r.Scan
	if o.back {
		scan = v.r.ScanBack
	}
	var err error
	passed := 0
	scan(o.table, o.prefix, o.from, func(key, value []byte) bool {
		if o.skip != nil && bytes.Equal(key, o.skip) {
			return true
		}
		if o.table == SetIDs {
			if o.of != nil && len(value) >= 16 && !o.of(uuid.UUID(value[:16])) {
				if passed++; passed > o.pass {
					err = ErrFar
				}
				return err == nil
			}
			key, value = value, v.r.Get(Sets, value)
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

// SetsOfType walks the names of a zone that have a set of one type, in canonical order, until fn returns false. It looks at
// keys alone: a type that few names of a million have is found in a tenth of a second.
func (v View) SetsOfType(zoneID uuid.UUID, t rr.Type, fn func(dnsname.Name) bool) error {
	var err error
	v.r.Scan(Sets, zoneID[:], nil, func(key, _ []byte) bool {
		if binary.BigEndian.Uint16(key[len(key)-2:]) != uint16(t) {
			return true
		}
		_, name, _, ok := parseSetKey(key)
		if !ok {
			err = errRow
			return false
		}
		return fn(name)
	})
	return err
}

// Served walks what a zone serves, in canonical order of names.
func (v View) Served(z zone.Zone, fn func(rr.Set) error) error {
	var err error
	v.r.Scan(Sets, z.ID[:], nil, func(key, value []byte) bool {
		var s zone.RecordSet
		if s, _, err = decodeSet(key, value); err == nil {
			err = fn(s.Served(z.TTL))
		}
		return err == nil
	})
	return err
}

// RecordSetsByAge walks the sets of some zones by age, oldest first (newest first when back), starting after the set
// with id after (nil: at the beginning). Ids sort by creation, so this is the order of both. Sets of other zones lie
// between them: it reads none of these, passes over so many of them, and then returns ErrFar.
func (v View) RecordSetsByAge(zones map[uuid.UUID]zone.Zone, after *uuid.UUID, back bool, pass int,
	fn func(zone.RecordSet) (bool, error)) error {
	o := walk{table: SetIDs, back: back, pass: pass}
	o.of = func(id uuid.UUID) bool { _, ok := zones[id]; return ok }
	if after != nil {
		o.from = number(setNumber(*after))
		o.skip = o.from
	} else if len(zones) == 1 && !back {
		for _, z := range zones { // its SOA is its oldest set
			if soa, err := v.RecordSet(z.ID, z.Name, rr.TypeSOA); err == nil {
				o.from = number(setNumber(soa.ID))
			}
		}
	}
	return v.walk(o, fn)
}

// ZoneSetsByName walks the sets of a zone in canonical order of names, then by type (in reverse when back), starting
// after the set after (nil: at the beginning).
func (v View) ZoneSetsByName(zoneID uuid.UUID, after *zone.RecordSet, back bool,
	fn func(zone.RecordSet) (bool, error)) error {
	o := walk{table: Sets, prefix: zoneID[:], back: back}
	if after != nil {
		o.from = SetKey(zoneID, after.Name, after.Type)
		o.skip = o.from
	}
	return v.walk(o, fn)
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

// EachOf is EachObjectAfter with the objects read.
func EachOf[T any](v View, kind Kind, after string, fn func(id string, o T) (bool, error)) error {
	return v.EachObjectAfter(kind, after, func(id string, value []byte) (bool, error) {
		var o T
		if err := json.Unmarshal(value, &o); err != nil {
			return false, err
		}
		return fn(id, o)
	})
}

// ObjectsOf reads all objects of a kind.
func ObjectsOf[T any](v View, kind Kind) (out []T, err error) {
	err = EachOf(v, kind, "", func(_ string, o T) (bool, error) {
		out = append(out, o)
		return true, nil
	})
	return out, err
}
