package storetest

import (
	"sync/atomic"

	"github.com/nameplane/nameplane/internal/store"
)

// Counted is a store that counts the rows read from it. The number is a measure of the work of a list or a commit that
// does not depend on the machine.
type Counted struct {
	store.Store
	views, updates atomic.Int64
	open           atomic.Int64 // Views that run now
}

// Open returns how many Views run now.
func (c *Counted) Open() int { return int(c.open.Load()) }

// Count returns a store that counts the reads of s.
func Count(s store.Store) *Counted { return &Counted{Store: s} }

// Rows returns how many rows were read since it was last called, and how many of them inside Updates.
func (c *Counted) Rows() (all, updates int) {
	updates = int(c.updates.Swap(0))
	return int(c.views.Swap(0)) + updates, updates
}

// View implements store.Store.
func (c *Counted) View(fn func(store.Reader) error) error {
	// A View that stays open keeps old pages of the file in use. Tests check that slow clients hold none.
	c.open.Add(1)
	defer c.open.Add(-1)
	return c.Store.View(func(r store.Reader) error { return fn(countedReader{r, &c.views}) })
}

// Update implements store.Store.
func (c *Counted) Update(fn func(store.Writer) error) error {
	return c.Store.Update(func(w store.Writer) error { return fn(countedWriter{w, countedReader{w, &c.updates}}) })
}

type countedReader struct {
	r    store.Reader
	rows *atomic.Int64
}

// Get implements store.Reader.
func (c countedReader) Get(t store.Table, key []byte) []byte {
	c.rows.Add(1)
	return c.r.Get(t, key)
}

// Scan implements store.Reader.
func (c countedReader) Scan(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	c.r.Scan(t, prefix, from, func(key, value []byte) bool { c.rows.Add(1); return fn(key, value) })
}

// Sizes implements store.Reader. A size counts as a row, although the value is not read: the store visits
// the row.
func (c countedReader) Sizes(t store.Table, prefix []byte, fn func(key []byte, size int) bool) {
	c.r.Sizes(t, prefix, func(key []byte, size int) bool { c.rows.Add(1); return fn(key, size) })
}

// ScanBack implements store.Reader.
func (c countedReader) ScanBack(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	c.r.ScanBack(t, prefix, from, func(key, value []byte) bool { c.rows.Add(1); return fn(key, value) })
}

type countedWriter struct {
	w store.Writer
	countedReader
}

// Put implements store.Writer.
func (c countedWriter) Put(t store.Table, key, value []byte) error { return c.w.Put(t, key, value) }

// Delete implements store.Writer.
func (c countedWriter) Delete(t store.Table, key []byte) error { return c.w.Delete(t, key) }
