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

// View reads the rows of a store at one moment. The caller may keep and change the values that it returns.
type View struct {
	r      Reader
	secret []byte
}

// NewView returns a View that reads through r. The store must have been initialized by Init.
func NewView(r Reader) View {
	return View{r, append([]byte(nil), r.Get(Meta, keySecret)...)}
}

// absent is an ErrNotFound with the missing object. It formats its text only when Error is called, which is rare. Most
// such errors are not shown: each change reads quotas that are usually not set, and a new record set first checks that
// its name and type are free.
type absent struct {
	what string
	key  fmt.Stringer
	typ  rr.Type // type of a record set that was read by name; otherwise 0
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

// Zone returns the zone with this ID, or ErrNotFound.
func (v View) Zone(id uuid.UUID) (zone.Zone, error) {
	b := v.r.Get(Zones, id[:])
	if b == nil {
		return zone.Zone{}, &absent{what: "zone", key: id}
	}
	return decodeZone(id[:], b)
}

// ZoneByName returns the zone with this name, or ErrNotFound.
func (v View) ZoneByName(n dnsname.Name) (zone.Zone, error) {
	id := v.r.Get(Names, zoneKey(n))
	if len(id) != 16 {
		return zone.Zone{}, &absent{what: "zone", key: n}
	}
	return v.Zone(uuid.UUID(id))
}

// Zones calls fn for all zones in canonical order of their names, until fn returns false or an error.
func (v View) Zones(fn func(zone.Zone) (bool, error)) error {
	return v.ZonesBelow(dnsname.Root, fn)
}

// ZonesBelow calls fn for the zones at or below a name in canonical order, until fn returns false or an error.
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

// RecordSet returns the set with this zone, name and type, or ErrNotFound.
func (v View) RecordSet(zoneID uuid.UUID, n dnsname.Name, t rr.Type) (zone.RecordSet, error) {
	key := SetKey(zoneID, n, t)
	b := v.r.Get(Sets, key)
	if b == nil {
		return zone.RecordSet{}, &absent{what: "record set", key: n, typ: t}
	}
	return v.set(key, b)
}

// RecordSetByID returns the set with this ID, or ErrNotFound.
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

// RecordSetsAt returns all sets of a name.
func (v View) RecordSetsAt(zoneID uuid.UUID, n dnsname.Name) ([]zone.RecordSet, error) {
	var out []zone.RecordSet
	err := v.sets(nameKey(zoneID, n), func(s zone.RecordSet) (bool, error) {
		out = append(out, s)
		return true, nil
	})
	return out, err
}

// RecordSets calls fn for the sets of a zone in canonical order of names, then by type, until fn returns false or an
// error.
func (v View) RecordSets(zoneID uuid.UUID, fn func(zone.RecordSet) (bool, error)) error {
	return v.sets(zoneID[:], fn)
}

// RecordSetsBelow calls fn for the sets at or below a name, in the same order, until fn returns false or an error.
func (v View) RecordSetsBelow(zoneID uuid.UUID, n dnsname.Name, fn func(zone.RecordSet) (bool, error)) error {
	return v.sets(n.AppendKey(append([]byte(nil), zoneID[:]...)), fn)
}

func (v View) sets(prefix []byte, fn func(zone.RecordSet) (bool, error)) error {
	return v.walk(walk{table: Sets, prefix: prefix}, fn)
}

// walk selects record sets and the order in which they are read.
type walk struct {
	table        Table  // Sets: by name and type; SetIDs: by age
	prefix, from []byte // prefix and first key, as in Scan
	skip         []byte // key of one set to leave out; nil for none
	back         bool

	ofZone     func(zone uuid.UUID) bool // with SetIDs: reports whether the sets of a zone are read; nil for all zones
	maxSkipped int                       // with SetIDs: how many sets of other zones may be skipped
}

// ErrTooManySkipped reports that a walk by age skipped too many record sets of other zones.
var ErrTooManySkipped = errors.New("too many record sets of other zones lie between")

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
			if o.ofZone != nil && len(value) >= 16 && !o.ofZone(uuid.UUID(value[:16])) {
				if passed++; passed > o.maxSkipped {
					err = ErrTooManySkipped
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

// SetsOfType calls fn for the names of a zone that have a set of one type, in canonical order, until fn returns false.
// It reads only keys: in a zone of a million names, it finds a rare type in a tenth of a second.
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

// Served calls fn for the record sets that a zone serves, in canonical order of names.
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

// RecordSetsByAge calls fn for the sets of some zones by age, oldest first (newest first when back is set). It starts
// after the set with ID after (nil: at the beginning). IDs sort by creation, so this is also the order of IDs. Sets of
// other zones lie between them: RecordSetsByAge does not read them, skips at most pass of them, and then returns
// ErrTooManySkipped.
func (v View) RecordSetsByAge(zones map[uuid.UUID]zone.Zone, after *uuid.UUID, back bool, pass int,
	fn func(zone.RecordSet) (bool, error)) error {
	o := walk{table: SetIDs, back: back, maxSkipped: pass}
	o.ofZone = func(id uuid.UUID) bool { _, ok := zones[id]; return ok }
	if after != nil {
		o.from = number(setNumber(*after))
		o.skip = o.from
	} else if len(zones) == 1 && !back {
		for _, z := range zones { // the SOA is the oldest set of a zone
			if soa, err := v.RecordSet(z.ID, z.Name, rr.TypeSOA); err == nil {
				o.from = number(setNumber(soa.ID))
			}
		}
	}
	return v.walk(o, fn)
}

// ZoneSetsByName calls fn for the sets of a zone in canonical order of names, then by type (in reverse when back is
// set). It starts after the set after (nil: at the beginning).
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

// EachObject calls fn for the objects of a kind in order of their IDs, as JSON, until fn returns false or an error.
func (v View) EachObject(kind Kind, fn func(id string, value []byte) (bool, error)) error {
	return v.EachObjectAfter(kind, "", fn)
}

// EachObjectAfter is EachObject that starts at the first ID after the given one.
func (v View) EachObjectAfter(kind Kind, after string, fn func(id string, value []byte) (bool, error)) error {
	prefix := ObjectKey(kind, "")
	var from []byte
	if after != "" {
		from = append(ObjectKey(kind, after), 0) // the smallest key that is larger
	}
	var err error
	v.r.Scan(Objects, prefix, from, func(key, value []byte) bool {
		var more bool
		more, err = fn(string(key[len(prefix):]), value)
		return more && err == nil
	})
	return err
}

// EachOf is EachObjectAfter with decoded objects.
func EachOf[T any](v View, kind Kind, after string, fn func(id string, o T) (bool, error)) error {
	return v.EachObjectAfter(kind, after, func(id string, value []byte) (bool, error) {
		var o T
		if err := json.Unmarshal(value, &o); err != nil {
			return false, err
		}
		return fn(id, o)
	})
}

// ObjectsOf returns all objects of a kind.
func ObjectsOf[T any](v View, kind Kind) (out []T, err error) {
	err = EachOf(v, kind, "", func(_ string, o T) (bool, error) {
		out = append(out, o)
		return true, nil
	})
	return out, err
}
