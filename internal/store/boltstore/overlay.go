package boltstore

import (
	"bytes"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/nameplane/nameplane/internal/store"
)

// overlay is what Updates have written since the file's last commit. It is durable in the log, and in bbolt's transaction
// that is still open; Views lay it over what the file has. It is immutable: each Update makes the next one.
type overlay struct {
	base    int      // transaction of the file that the entries come after
	entries [][]byte // entries of the log, in order
	ops     int

	once   sync.Once
	tables map[store.Table]*overTable // made by the first View that needs them
}

// overTable is what the entries say of a table.
type overTable struct {
	rows map[string][]byte // nil: deleted
	keys []string          // in order
}

// with is o and one entry more. Only the newest overlay is added to, so sharing the array behind the slice is safe.
func (o *overlay) with(log *opLog) *overlay {
	return &overlay{base: o.base, entries: append(o.entries, log.b), ops: o.ops + log.ops}
}

var noRows = &overTable{}

func (o *overlay) table(t store.Table) *overTable {
	if o == nil {
		return noRows
	}
	o.once.Do(o.build)
	if ot := o.tables[t]; ot != nil {
		return ot
	}
	return noRows
}

func (o *overlay) build() {
	o.tables = map[store.Table]*overTable{}
	for _, e := range o.entries {
		_ = eachOp(e, func(op byte, t store.Table, key, value []byte) error { // we wrote it: it has the right form
			ot := o.tables[t]
			if ot == nil {
				ot = &overTable{rows: map[string][]byte{}}
				o.tables[t] = ot
			}
			if op == opDelete {
				value = nil
			}
			ot.rows[string(key)] = value
			return nil
		})
	}
	for _, ot := range o.tables {
		for k := range ot.rows {
			ot.keys = append(ot.keys, k)
		}
		slices.Sort(ot.keys)
	}
}

// overReader is a store.Reader of a file and what lies over it.
type overReader struct {
	*reader
	over *overlay
}

func (r overReader) Get(t store.Table, key []byte) []byte {
	if row, ok := r.over.table(t).rows[string(key)]; ok {
		return row
	}
	return r.reader.Get(t, key)
}

func (r overReader) Scan(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	ot := r.over.table(t)
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	keys := ot.keys[sort.SearchStrings(ot.keys, string(from)):]
	keys = keys[:sort.Search(len(keys), func(i int) bool { return !strings.HasPrefix(keys[i], string(prefix)) })]
	ot.merge(keys, strings.Compare, fn, func(each func(key, value []byte) bool) {
		r.reader.Scan(t, prefix, from, each)
	})
}

func (r overReader) ScanBack(t store.Table, prefix, from []byte, fn func(key, value []byte) bool) {
	ot := r.over.table(t)
	var keys []string
	for _, k := range ot.keys {
		if strings.HasPrefix(k, string(prefix)) && (from == nil || k <= string(from)) {
			keys = append(keys, k)
		}
	}
	slices.Reverse(keys)
	ot.merge(keys, func(a, b string) int { return strings.Compare(b, a) }, fn, func(each func(key, value []byte) bool) {
		r.reader.ScanBack(t, prefix, from, each)
	})
}

// merge walks keys, which are rows of ot, and what scan walks, both in the order of cmp. A row of ot hides the scan's.
func (ot *overTable) merge(keys []string, cmp func(a, b string) int, fn func(key, value []byte) bool,
	scan func(func(key, value []byte) bool)) {
	ended := false
	emit := func(k string) bool {
		row := ot.rows[k]
		return row == nil || fn([]byte(k), row)
	}
	scan(func(key, value []byte) bool {
		k := string(key)
		for len(keys) > 0 && cmp(keys[0], k) < 0 {
			if ended = !emit(keys[0]); ended {
				return false
			}
			keys = keys[1:]
		}
		if len(keys) > 0 && keys[0] == k {
			keys = keys[1:]
			ended = !emit(k)
			return !ended
		}
		ended = !fn(key, value)
		return !ended
	})
	for !ended && len(keys) > 0 {
		ended = !emit(keys[0])
		keys = keys[1:]
	}
}
