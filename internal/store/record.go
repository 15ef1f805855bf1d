package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Recorder is a Writer that records the rows written through it, in order, so that Replay can write them to another
// store. For each row it stores the table's index in Tables (1 byte), 1 for a Put or 0 for a Delete, the key, and for a
// Put the value. Key and value have their length in front as a varint.
type Recorder struct {
	Writer
	Rows []byte
}

const (
	rowDelete = 0
	rowPut    = 1
)

// Put implements Writer.
func (r *Recorder) Put(t Table, key, value []byte) error {
	r.add(t, rowPut, key)
	r.Rows = append(binary.AppendUvarint(r.Rows, uint64(len(value))), value...)
	return r.Writer.Put(t, key, value)
}

// Delete implements Writer.
func (r *Recorder) Delete(t Table, key []byte) error {
	r.add(t, rowDelete, key)
	return r.Writer.Delete(t, key)
}

func (r *Recorder) add(t Table, op byte, key []byte) {
	r.Rows = append(r.Rows, byte(slices.Index(Tables, t)), op)
	r.Rows = append(binary.AppendUvarint(r.Rows, uint64(len(key))), key...)
}

var errRecord = errors.New("malformed recorded rows")

// eachRow calls fn for every recorded row until fn returns an error. value is nil for a Delete.
func eachRow(rows []byte, fn func(t Table, key, value []byte) error) error {
	r := rowReader{b: rows}
	for len(r.b) > 0 {
		head := r.take(2)
		key := r.take(r.uvarint())
		var value []byte
		if !r.bad && head[1] == rowPut {
			value = r.take(r.uvarint())
		}
		if r.bad || int(head[0]) >= len(Tables) || head[1] > rowPut || len(key) == 0 {
			return errRecord
		}
		if err := fn(Tables[head[0]], key, value); err != nil {
			return err
		}
	}
	return nil
}

// Replay writes recorded rows to w.
func Replay(w Writer, rows []byte) error {
	return eachRow(rows, func(t Table, key, value []byte) error {
		if value == nil {
			return w.Delete(t, key)
		}
		return w.Put(t, key, value)
	})
}

// Written lists what recorded rows change.
type Written struct {
	Zones   []uuid.UUID                   // zones whose row, record sets or state as a copy were written, each once
	Sets    map[uuid.UUID]map[SetRef]bool // record sets that were written or deleted, by zone
	Kinds   []Kind                        // kinds of the written objects, each once
	Changes []ChangeRef                   // changes that were added to journals, in order
}

// SetRef identifies a record set within a zone.
type SetRef struct {
	Name dnsname.Name
	Type rr.Type
}

// ChangeRef identifies a change in a journal.
type ChangeRef struct {
	Zone   uuid.UUID
	Commit uint64
}

// ReadWritten lists what recorded rows change. It returns an error when the rows are malformed.
func ReadWritten(rows []byte) (Written, error) {
	w := Written{Sets: map[uuid.UUID]map[SetRef]bool{}}
	seen := map[uuid.UUID]bool{}
	zone := func(id uuid.UUID) {
		if !seen[id] {
			seen[id] = true
			w.Zones = append(w.Zones, id)
		}
	}
	err := eachRow(rows, func(t Table, key, value []byte) error {
		switch {
		case t == Zones && len(key) != 16, t == Names && value != nil && len(value) != 16, t == Journal && len(key) != 24:
			return errRecord
		case t == Zones:
			zone(uuid.UUID(key))
		case t == Sets:
			id, name, typ, ok := parseSetKey(key)
			if !ok {
				return errRecord
			}
			zone(id)
			if w.Sets[id] == nil {
				w.Sets[id] = map[SetRef]bool{}
			}
			w.Sets[id][SetRef{name, typ}] = true
		case t == Journal && value != nil:
			w.Changes = append(w.Changes, ChangeRef{uuid.UUID(key[:16]), binary.BigEndian.Uint64(key[16:])})
		case t == Objects:
			kind, id, _ := bytes.Cut(key, []byte{0})
			if !slices.Contains(w.Kinds, Kind(kind)) {
				w.Kinds = append(w.Kinds, Kind(kind))
			}
			if zoneID, err := uuid.ParseBytes(id); err == nil && Kind(kind) == KindSecondary {
				zone(zoneID)
			}
		}
		return nil
	})
	return w, err
}
