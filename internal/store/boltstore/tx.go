package boltstore

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// reader is a store.Reader on a bbolt transaction.
type reader struct {
	s       *Store
	tx      *bolt.Tx
	buckets map[store.Table]*table // bbolt searches its root for each request; a transaction needs to do it once
}

// table is a bucket with a cursor for Get. bbolt would create a new cursor for each request, which grows as it
// descends.
type table struct {
	*bolt.Bucket
	at   *bolt.Cursor
	s    *Store
	name store.Table
	seed uint32 // initial value of checksums
}

func newReader(s *Store, tx *bolt.Tx) *reader {
	return &reader{s: s, tx: tx, buckets: make(map[store.Table]*table, len(store.Tables))}
}

func (r *reader) Get(t store.Table, key []byte) []byte {
	b := r.table(t)
	if row := b.find(key); row != nil {
		return b.value(key, row)
	}
	return nil
}

// find returns the row of a key with its checksum, or nil.
func (b *table) find(key []byte) []byte {
	if b.at == nil {
		b.at = b.Cursor()
	}
	if k, v := seek(b.at, key); bytes.Equal(k, key) && k != nil {
		return v
	}
	return nil
}

// value returns the value of a row. It panics with a fault when the checksum is wrong. In Journal, such a row has an
// empty value, which no change has: the history of a zone lists it as damaged, and lists the rows after it.
func (b *table) value(key, row []byte) []byte {
	if b.s.noChecksums {
		return row
	}
	value, ok := unseal(b.seed, key, row)
	if ok {
		return value
	}
	if d := b.damagedRow(key); b.name != store.Journal {
		panic(&fault{d})
	}
	return []byte{}
}

func (r *reader) Scan(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	b := r.table(t)
	c := b.Cursor()
	k, row := seek(c, from)
	for k != nil && bytes.HasPrefix(k, prefix) && fn(k, b.value(k, row)) {
		k, row = next(c)
	}
}

// Sizes reads only the pages with the keys: bbolt keeps the size of a value beside its key.
func (r *reader) Sizes(t store.Table, prefix []byte, fn func(key []byte, size int) bool) {
	sum := sumSize
	if r.s.noChecksums {
		sum = 0
	}
	c := r.table(t).Cursor()
	k, row := seek(c, prefix)
	for k != nil && bytes.HasPrefix(k, prefix) && fn(k, max(0, len(row)-sum)) {
		k, row = next(c)
	}
}

func (r *reader) ScanBack(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	b := r.table(t)
	c := b.Cursor()
	var k, row []byte
	switch {
	case from != nil && bytes.HasPrefix(from, prefix):
		if k, row = seek(c, from); k == nil || !bytes.Equal(k, from) {
			k, row = before(b.Bucket, c, from)
		}
	case from != nil && bytes.Compare(from, prefix) < 0:
		return
	default:
		k, row = before(b.Bucket, c, successor(prefix))
	}
	for k != nil && bytes.HasPrefix(k, prefix) && fn(k, b.value(k, row)) {
		k, row = prev(b.Bucket, c, k)
	}
}

// table returns a table. Open created all of them, so a missing table is a bug.
func (r *reader) table(t store.Table) *table {
	found := r.buckets[t]
	if found == nil {
		b := openBucket(r.tx, t)
		if b == nil {
			panic(fmt.Sprintf("boltstore: no table %q", t))
		}
		b.FillPercent = fillPercent(t)
		found = &table{Bucket: b, s: r.s, name: t, seed: seedOf(t)}
		r.buckets[t] = found
	}
	return found
}

// fillPercent returns how full a page is left when it splits. The keys of two tables only grow (in the journal: within
// a zone), so free space there would never be used. In the other tables, new keys can be anywhere. With bbolt's default
// of half a page, an import in key order takes 201 MB for a million record sets; with 0.8 it takes 127 MB.
func fillPercent(t store.Table) float64 {
	if t == store.SetIDs || t == store.Journal {
		return 0.95
	}
	return 0.8
}

func openBucket(tx *bolt.Tx, t store.Table) *bolt.Bucket {
	defer trap()
	return tx.Bucket([]byte(t))
}

func seek(c *bolt.Cursor, key []byte) (k, v []byte) {
	defer trap()
	return c.Seek(key)
}

func next(c *bolt.Cursor) (k, v []byte) {
	defer trap()
	return c.Next()
}

// before moves c to the last key before bound, or to the last key when bound is nil.
func before(b *bolt.Bucket, c *bolt.Cursor, bound []byte) (k, v []byte) {
	defer trap()
	// Last never returns when a transaction has deleted all keys of a table of several pages.
	first, _ := b.Cursor().First()
	if first == nil {
		return nil, nil
	}
	if bound == nil {
		return c.Last()
	}
	if k, _ := c.Seek(bound); k == nil {
		return c.Last()
	}
	return prev(b, c, bound)
}

// prev moves c, which is at the first key at or after bound, one key back. Cursor.Prev returns nil both at the first
// key and at a page that this transaction has emptied.
func prev(b *bolt.Bucket, c *bolt.Cursor, bound []byte) (k, v []byte) {
	defer trap()
	k, v = c.Prev()
	if k != nil || !b.Writable() {
		return k, v
	}
	if first, _ := b.Cursor().First(); first == nil || bytes.Compare(first, bound) >= 0 {
		return nil, nil
	}
	for k == nil {
		k, v = c.Prev()
	}
	return k, v
}

// successor returns the first key after all keys with prefix, or nil when there is none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
