package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/nameplane/nameplane/internal/store"
)

// writer is a store.Writer on a bbolt transaction.
//
// bbolt splits pages only when it commits, so keys that come in no order into a table of few pages make one array
// of all of them, and each moves half of it: 100,000 took 12 s. Keys that come in order go to its end. So when keys
// have come out of order a few times, writer keeps what follows for the table, and gives it to bbolt in order: 0.4 s,
// reopening and reading back included.
type writer struct {
	*reader
	dirty  bool
	tables map[store.Table]*written
}

// written is what a transaction has done to a table.
type written struct {
	last     []byte            // the key put last
	disorder int               // how often a key was put that comes before the last one
	kept     map[string][]byte // what bbolt has not got yet, where a value of nil is a delete; nil: it has everything
}

// maxDisorder is how often keys may come out of order before they are kept: imports begin with a few that do.
const maxDisorder = 16

func newWriter(tx *bolt.Tx) *writer {
	w := &writer{reader: newReader(tx), tables: make(map[store.Table]*written, len(store.Tables))}
	for _, t := range store.Tables {
		w.tables[t] = &written{}
	}
	return w
}

func (w *writer) Put(t store.Table, key, value []byte) error {
	switch {
	case len(key) == 0:
		return fmt.Errorf("put into %s: %w", t, bolterrors.ErrKeyRequired)
	case len(key) > bolt.MaxKeySize:
		return fmt.Errorf("put into %s: %w", t, bolterrors.ErrKeyTooLarge)
	case len(value) > bolt.MaxValueSize:
		return fmt.Errorf("put into %s: %w", t, bolterrors.ErrValueTooLarge)
	}
	w.dirty = true
	done := w.tables[t]
	// bbolt keeps the value until the commit, and callers reuse their buffers. Never nil: that would read as absent.
	value = append(make([]byte, 0, len(value)), value...)
	if done.kept == nil {
		if bytes.Compare(key, done.last) < 0 {
			done.disorder++
		}
		if done.disorder <= maxDisorder {
			done.last = append(done.last[:0], key...)
			return put(w.bucket(t), key, value)
		}
		done.kept = map[string][]byte{}
	}
	done.kept[string(key)] = value
	return nil
}

func (w *writer) Delete(t store.Table, key []byte) error {
	w.dirty = true
	if kept := w.tables[t].kept; kept != nil {
		kept[string(key)] = nil
		return nil
	}
	return del(w.bucket(t), key)
}

func (w *writer) Get(t store.Table, key []byte) []byte {
	if kept := w.tables[t].kept; kept != nil {
		if value, ok := kept[string(key)]; ok {
			return value
		}
	}
	return w.reader.Get(t, key)
}

func (w *writer) Scan(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	w.mustFlush(t)
	w.reader.Scan(t, prefix, from, fn)
}

func (w *writer) ScanBack(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	w.mustFlush(t)
	w.reader.ScanBack(t, prefix, from, fn)
}

// flush gives bbolt all that was kept.
func (w *writer) flush() error {
	var errs []error
	for _, t := range store.Tables {
		errs = append(errs, w.flushTable(t))
	}
	return errors.Join(errs...)
}

func (w *writer) flushTable(t store.Table) error {
	kept := w.tables[t].kept
	if kept == nil {
		return nil
	}
	b := w.bucket(t)
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		var err error
		if value := kept[key]; value != nil {
			err = put(b, []byte(key), value)
		} else {
			err = del(b, []byte(key))
		}
		if err != nil {
			return fmt.Errorf("write to %s: %w", t, err)
		}
	}
	*w.tables[t] = written{}
	return nil
}

// mustFlush is for calls that return no error. Put has checked all that bbolt would refuse, so there is none.
func (w *writer) mustFlush(t store.Table) {
	if err := w.flushTable(t); err != nil {
		panic(&fault{err})
	}
}

func put(b *bolt.Bucket, key, value []byte) error {
	defer trap()
	return b.Put(key, value)
}

func del(b *bolt.Bucket, key []byte) error {
	defer trap()
	return b.Delete(key)
}
