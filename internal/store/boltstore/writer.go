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
// bbolt splits pages only when it commits. Keys that come out of order into a table of few pages make one array of all
// of them, and each key moves half of it: 100,000 keys took 12 s. Keys in order are appended at its end. So when keys
// have come out of order a few times, writer buffers the following rows of the table, and passes them to bbolt in
// order: 0.4 s, including reopening and reading back.
type writer struct {
	*reader
	dirty  bool
	tables map[store.Table]*written
}

// written is what a transaction has written to a table.
type written struct {
	sum      uint64 // amount added to the sum over the table's rows
	last     []byte // the last key written
	disorder int    // number of keys that came before the previous key
	// buffered rows that bbolt does not have yet, where nil is a delete; nil when nothing is buffered
	buffered map[string][]byte
}

// maxDisorder is how many keys may come out of order before rows are buffered: imports begin with a few such keys.
const maxDisorder = 16

func newWriter(s *Store, tx *bolt.Tx) *writer {
	w := &writer{reader: newReader(s, tx), tables: make(map[store.Table]*written, len(store.Tables))}
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
	case len(value) > bolt.MaxValueSize-sumSize:
		return fmt.Errorf("put into %s: %w", t, bolterrors.ErrValueTooLarge)
	}
	w.dirty = true
	done := w.tables[t]
	// bbolt keeps the row until the commit, and callers reuse their buffers.
	row := seal(w.table(t).seed, key, value)
	if done.buffered == nil {
		if bytes.Compare(key, done.last) < 0 {
			done.disorder++
		}
		if done.disorder <= maxDisorder {
			done.last = append(done.last[:0], key...)
			return w.write(t, key, row)
		}
		done.buffered = map[string][]byte{}
	}
	done.buffered[string(key)] = row
	return nil
}

func (w *writer) Delete(t store.Table, key []byte) error {
	w.dirty = true
	if buffered := w.tables[t].buffered; buffered != nil {
		buffered[string(key)] = nil
		return nil
	}
	return w.write(t, key, nil)
}

// write passes a row to bbolt, or a delete when row is nil, and updates the sum over the table's rows.
func (w *writer) write(t store.Table, key, row []byte) error {
	b, done := w.table(t), w.tables[t]
	if old := b.find(key); old != nil {
		if _, ok := unseal(b.seed, key, old); !ok {
			panic(&fault{b.damagedRow(key)}) // its share of the sum is unknown
		}
		done.sum -= share(old)
	} else if row == nil {
		return nil
	}
	if row == nil {
		return del(b.Bucket, key)
	}
	done.sum += share(row)
	return put(b.Bucket, key, row)
}

func (w *writer) Get(t store.Table, key []byte) []byte {
	if buffered := w.tables[t].buffered; buffered != nil {
		if row, ok := buffered[string(key)]; ok && row != nil {
			return w.table(t).value(key, row)
		} else if ok {
			return nil
		}
	}
	return w.reader.Get(t, key)
}

func (w *writer) Scan(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	w.mustFlush(t)
	w.reader.Scan(t, prefix, from, fn)
}

func (w *writer) Sizes(t store.Table, prefix []byte, fn func(key []byte, size int) bool) {
	w.mustFlush(t)
	w.reader.Sizes(t, prefix, fn)
}

func (w *writer) ScanBack(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	w.mustFlush(t)
	w.reader.ScanBack(t, prefix, from, fn)
}

// flush passes all buffered rows and the sums over the rows to bbolt.
func (w *writer) flush() error {
	var errs []error
	for _, t := range store.Tables {
		errs = append(errs, w.flushTable(t))
		if sum := w.tables[t].sum; sum != 0 {
			b := w.table(t)
			errs = append(errs, setSequence(b.Bucket, b.Sequence()+sum))
		}
	}
	return errors.Join(errs...)
}

func (w *writer) flushTable(t store.Table) error {
	buffered := w.tables[t].buffered
	if buffered == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(buffered)) {
		if err := w.write(t, []byte(key), buffered[key]); err != nil {
			return fmt.Errorf("write to %s: %w", t, err)
		}
	}
	*w.tables[t] = written{sum: w.tables[t].sum}
	return nil
}

// mustFlush is flushTable for methods that return no error. Put has checked everything that bbolt could refuse.
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

func setSequence(b *bolt.Bucket, n uint64) error {
	defer trap()
	return b.SetSequence(n)
}
