package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/zone"
)

// Init makes a new store ready, or checks that an old one is of a format we know.
func Init(s Store) error {
	var have []byte
	err := s.View(func(r Reader) error {
		have = append(have, r.Get(Meta, KeyFormat)...)
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(have) == 1 && have[0] <= Format:
		return indexOwners(s)
	case len(have) > 0:
		return fmt.Errorf("the store has format %x and this program knows up to %d: use a newer nameplane", have, Format)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return s.Update(func(w Writer) error {
		if err := w.Put(Meta, keySecret, secret); err != nil {
			return err
		}
		if err := w.Put(Meta, keyOwners, []byte{1}); err != nil {
			return err
		}
		return w.Put(Meta, KeyFormat, []byte{Format})
	})
}

// Edit reads and writes rows. It can take its writes back while the store's Update goes on, so that one Update can
// carry many callers' edits, of which each succeeds or fails alone.
type Edit struct {
	View
	w    Writer
	undo []old
	bulk bool
}

type old struct {
	table Table
	key   []byte
	value []byte // nil: there was none
}

// NewEdit writes through w.
func NewEdit(w Writer) *Edit {
	return &Edit{View: NewView(w), w: w}
}

// Bulk ends the bookkeeping for Undo: the caller lets the whole Update fail instead. It is for edits of millions of
// rows.
func (e *Edit) Bulk() { e.bulk = true }

// Undo takes back everything written through e.
func (e *Edit) Undo() error {
	if e.bulk {
		return fmt.Errorf("a bulk edit cannot be undone")
	}
	for _, u := range slices.Backward(e.undo) {
		var err error
		if u.value == nil {
			err = e.w.Delete(u.table, u.key)
		} else {
			err = e.w.Put(u.table, u.key, u.value)
		}
		if err != nil {
			return err
		}
	}
	e.undo = nil
	return nil
}

func (e *Edit) note(t Table, key []byte) {
	if e.bulk {
		return
	}
	if e.undo == nil {
		e.undo = make([]old, 0, 8) // what a change of one record set writes
	}
	e.undo = append(e.undo, old{t, key, e.w.Get(t, key)})
}

func (e *Edit) put(t Table, key, value []byte) error {
	e.note(t, key)
	return e.w.Put(t, key, value)
}

func (e *Edit) delete(t Table, key []byte) error {
	e.note(t, key)
	return e.w.Delete(t, key)
}

// LastCommit returns the number of the newest edit.
func LastCommit(r Reader) uint64 { return counter(r, KeyCommit) }

// counter returns the value of a counter of Meta; 0 when there is none.
func counter(r Reader, key []byte) uint64 {
	if b := r.Get(Meta, key); len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Next steps a counter of Meta by n and returns its old value plus one: the first of n new numbers.
func (e *Edit) Next(key []byte, n uint64) (uint64, error) {
	last := counter(e.w, key)
	return last + 1, e.put(Meta, key, number(last+n))
}

// PutZone writes a zone's row and, for a new zone, its name and owner. MoveZone changes the owner.
func (e *Edit) PutZone(z zone.Zone) error {
	name := zoneKey(z.Name)
	if e.w.Get(Names, name) == nil {
		if err := e.put(Names, name, z.ID[:]); err != nil {
			return err
		}
		if err := e.own(z); err != nil {
			return err
		}
	}
	return e.put(Zones, z.ID[:], encodeZone(z))
}

// DeleteZone removes a zone's row, name and owner. Its record sets and journal are the caller's to remove.
func (e *Edit) DeleteZone(z zone.Zone) error {
	if err := e.disown(z); err != nil {
		return err
	}
	if err := e.delete(Names, zoneKey(z.Name)); err != nil {
		return err
	}
	return e.delete(Zones, z.ID[:])
}

// NewSetID gives a record set its id.
func (e *Edit) NewSetID(s *zone.RecordSet) error {
	num, err := e.Next(KeySetNum, 1)
	if err != nil {
		return err
	}
	s.ID = setID(e.secret, num)
	return nil
}

// PutSet writes a record set, which must have an id of NewSetID.
func (e *Edit) PutSet(s zone.RecordSet) error {
	num := setNumber(s.ID)
	if e.w.Get(SetIDs, number(num)) == nil {
		return e.PutNumbered(s, num)
	}
	return e.put(Sets, SetKey(s.Zone, s.Name, s.Type), encodeSet(s, num))
}

// PutNumbered writes a new record set under a number that Next gave.
func (e *Edit) PutNumbered(s zone.RecordSet, num uint64) error {
	key := SetKey(s.Zone, s.Name, s.Type)
	if err := e.put(SetIDs, number(num), key); err != nil {
		return err
	}
	return e.put(Sets, key, encodeSet(s, num))
}

// SetID is the id of the record set with a number.
func (e *Edit) SetID(num uint64) uuid.UUID { return setID(e.secret, num) }

// DeleteSet removes a record set.
func (e *Edit) DeleteSet(s zone.RecordSet) error {
	if err := e.delete(SetIDs, number(setNumber(s.ID))); err != nil {
		return err
	}
	return e.delete(Sets, SetKey(s.Zone, s.Name, s.Type))
}

// PutChange adds to a zone's journal.
func (e *Edit) PutChange(c Change) error {
	return e.put(Journal, JournalKey(c.Zone, c.Commit), encodeChange(c))
}

// DropChanges removes the oldest n changes of a zone's journal, or all when n is negative.
func (e *Edit) DropChanges(zoneID uuid.UUID, n int) error {
	var keys [][]byte
	e.w.Scan(Journal, zoneID[:], nil, func(key, _ []byte) bool {
		if n >= 0 && len(keys) == n {
			return false
		}
		keys = append(keys, append([]byte(nil), key...))
		return true
	})
	for _, k := range keys {
		if err := e.delete(Journal, k); err != nil {
			return err
		}
	}
	return nil
}

// PutObject writes an object as JSON.
func (e *Edit) PutObject(kind Kind, id string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return e.put(Objects, ObjectKey(kind, id), b)
}

// DeleteObject removes an object, or returns ErrNotFound.
func (e *Edit) DeleteObject(kind Kind, id string) error {
	key := ObjectKey(kind, id)
	if e.w.Get(Objects, key) == nil {
		return fmt.Errorf("%s %s: %w", kind, id, ErrNotFound)
	}
	return e.delete(Objects, key)
}

// CountChanges counts the changes in a zone's journal.
func (v View) CountChanges(zoneID uuid.UUID) int {
	n := 0
	v.r.Scan(Journal, zoneID[:], nil, func(_, _ []byte) bool { n++; return true })
	return n
}
