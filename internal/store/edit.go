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

// Init initializes a new store, or checks that an existing one has a known format.
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

// Edit reads and writes rows. It can undo its writes while the Update of the store continues. So one Update can carry
// the edits of many callers, and each edit succeeds or fails alone.
type Edit struct {
	View
	w    Writer
	undo []oldRow
	bulk bool
}

// oldRow is a row before an Edit wrote it.
type oldRow struct {
	table Table
	key   []byte
	value []byte // nil when there was no row
}

// NewEdit returns an Edit that writes through w.
func NewEdit(w Writer) *Edit {
	return &Edit{View: NewView(w), w: w}
}

// Bulk stops the recording of old rows for Undo: the caller makes the whole Update fail instead. It is for edits of
// millions of rows.
func (e *Edit) Bulk() { e.bulk = true }

// Undo undoes everything written through e.
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

// saveOld records the old row of a key for Undo.
func (e *Edit) saveOld(t Table, key []byte) {
	if e.bulk {
		return
	}
	if e.undo == nil {
		e.undo = make([]oldRow, 0, 8) // enough for the change of one record set
	}
	e.undo = append(e.undo, oldRow{t, key, e.w.Get(t, key)})
}

func (e *Edit) put(t Table, key, value []byte) error {
	e.saveOld(t, key)
	return e.w.Put(t, key, value)
}

func (e *Edit) delete(t Table, key []byte) error {
	e.saveOld(t, key)
	return e.w.Delete(t, key)
}

// LastCommit returns the number of the newest edit.
func LastCommit(r Reader) uint64 { return counter(r, KeyCommit) }

// counter returns the value of a counter in Meta, or 0.
func counter(r Reader, key []byte) uint64 {
	if b := r.Get(Meta, key); len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Next adds n to a counter in Meta. It returns the first of the n new numbers: the old value plus one.
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
		if err := e.listZone(z); err != nil {
			return err
		}
	}
	return e.put(Zones, z.ID[:], encodeZone(z))
}

// DeleteZone deletes a zone's row and name, and its rows in the lists of its project and pool. The caller must delete
// its record sets and journal.
func (e *Edit) DeleteZone(z zone.Zone) error {
	if err := e.unlistZone(z); err != nil {
		return err
	}
	if err := e.unlistInPool(z); err != nil {
		return err
	}
	if err := e.delete(Names, zoneKey(z.Name)); err != nil {
		return err
	}
	return e.delete(Zones, z.ID[:])
}

// NewSetID sets the ID of a new record set.
func (e *Edit) NewSetID(s *zone.RecordSet) error {
	num, err := e.Next(KeySetNum, 1)
	if err != nil {
		return err
	}
	s.ID = setID(e.secret, num)
	return nil
}

// PutSet writes a record set. Its ID must come from NewSetID.
func (e *Edit) PutSet(s zone.RecordSet) error {
	num := setNumber(s.ID)
	if e.w.Get(SetIDs, number(num)) == nil {
		return e.PutNumbered(s, num)
	}
	return e.put(Sets, SetKey(s.Zone, s.Name, s.Type), encodeSet(s, num))
}

// PutNumbered writes a new record set under a number that Next returned.
func (e *Edit) PutNumbered(s zone.RecordSet, num uint64) error {
	key := SetKey(s.Zone, s.Name, s.Type)
	if err := e.put(SetIDs, number(num), key); err != nil {
		return err
	}
	return e.put(Sets, key, encodeSet(s, num))
}

// SetID returns the ID of the record set with a number.
func (e *Edit) SetID(num uint64) uuid.UUID { return setID(e.secret, num) }

// DeleteSet removes a record set.
func (e *Edit) DeleteSet(s zone.RecordSet) error {
	if err := e.delete(SetIDs, number(setNumber(s.ID))); err != nil {
		return err
	}
	return e.delete(Sets, SetKey(s.Zone, s.Name, s.Type))
}

// PutChange adds a change to the journal of its zone. It returns the size of the row.
func (e *Edit) PutChange(c Change) (int, error) {
	row := encodeChange(c)
	return len(row), e.put(Journal, JournalKey(c.Zone, c.Commit), row)
}

// DropChanges deletes the oldest changes of a zone's journal, until it has deleted at least the given number of changes
// and of bytes. It returns how many it deleted. It stops after about maxDropRows changes or maxDropBytes bytes, so that
// other edits do not wait for a long journal: the caller continues in a later edit.
func (e *Edit) DropChanges(zoneID uuid.UUID, rows, bytes int) (droppedRows, droppedBytes int, err error) {
	rows, bytes = min(rows, maxDropRows), min(bytes, maxDropBytes)
	var keys [][]byte
	e.w.Sizes(Journal, zoneID[:], func(key []byte, size int) bool {
		enough := len(keys) >= rows && droppedBytes >= bytes
		if enough || len(keys) >= maxDropRows || droppedBytes >= maxDropBytes {
			return false
		}
		keys = append(keys, append([]byte(nil), key...))
		droppedBytes += size
		return true
	})
	for _, k := range keys {
		if err := e.delete(Journal, k); err != nil {
			return 0, 0, err
		}
	}
	return len(keys), droppedBytes, nil
}

// Bounds of DropChanges. Each is more than one edit adds to a journal, so edits shorten a journal that is too long.
const (
	maxDropRows  = 1000
	maxDropBytes = 32 << 20
)

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

// HasChanges reports whether a zone's journal has a change.
func (v View) HasChanges(zoneID uuid.UUID) (found bool) {
	v.r.Sizes(Journal, zoneID[:], func([]byte, int) bool { found = true; return false })
	return found
}

// CountChanges returns how many changes a zone's journal has, and their size. It does not read them.
func (v View) CountChanges(zoneID uuid.UUID) (rows, bytes int) {
	v.r.Sizes(Journal, zoneID[:], func(_ []byte, size int) bool {
		rows, bytes = rows+1, bytes+size
		return true
	})
	return rows, bytes
}
