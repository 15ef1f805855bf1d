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
	dirty    bool
	log      opLog
	octets   int
	last     map[store.Table][]byte            // the key put last
	disorder map[store.Table]int               // how often a key was put that comes before the last one
	kept     map[store.Table]map[string][]byte // what bbolt has not got yet; nil: delete
}

// maxDisorder is how often keys may come out of order before they are kept: imports begin with a few that do.
const maxDisorder = 16

func newWriter(tx *bolt.Tx) *writer {
	return &writer{reader: newReader(tx), last: map[store.Table][]byte{}, disorder: map[store.Table]int{},
		kept: map[store.Table]map[string][]byte{}}
}

// next begins another Update in the same transaction.
func (w *writer) next() {
	w.dirty, w.log = false, opLog{}
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
	if w.octets += len(key) + len(value); w.octets > maxUpdate {
		return fmt.Errorf("put into %s: an update of more than %d MiB", t, maxUpdate>>20)
	}
	w.dirty = true
	w.log.add(opPut, t, key, value)
	b, kept := w.bucket(t), w.kept[t]
	// bbolt keeps the value until the commit, and callers reuse their buffers. Never nil: that would read as absent.
	value = append(make([]byte, 0, len(value)), value...)
	if bytes.Compare(key, w.last[t]) < 0 {
		w.disorder[t]++
	}
	if kept == nil && w.disorder[t] <= maxDisorder {
		w.last[t] = append(w.last[t][:0], key...)
		return put(b, key, value)
	}
	if kept == nil {
		kept = map[string][]byte{}
		w.kept[t] = kept
	}
	kept[string(key)] = value
	return nil
}

func (w *writer) Delete(t store.Table, key []byte) error {
	w.dirty = true
	w.log.add(opDelete, t, key, nil)
	if kept := w.kept[t]; kept != nil {
		kept[string(key)] = nil
		return nil
	}
	return del(w.bucket(t), key)
}

func (w *writer) Get(t store.Table, key []byte) []byte {
	if value, ok := w.kept[t][string(key)]; ok {
		return value
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
	kept := w.kept[t]
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
	delete(w.kept, t)
	delete(w.last, t)
	delete(w.disorder, t)
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
