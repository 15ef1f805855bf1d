// Package store defines the storage interface of nameplane, ordered tables of bytes with atomic and durable updates,
// and the rows in those tables.
//
// Start with Store in store.go: the interface that boltstore implements and storetest tests. View (view.go) and Edit
// (edit.go) read and write zones, record sets and objects as rows; keys.go and rows.go define their encoding. change.go
// has the journal of a zone, record.go the recording of rows for a replica.
package store

import (
	"errors"
	"io"
)

// Table names one ordered set of keys. A store creates all of Tables when it is opened.
type Table string

// These are the tables. keys.go and rows.go define their keys and values.
const (
	Meta    Table = "meta"
	Zones   Table = "zones"   // zone id -> zone
	Names   Table = "names"   // zone name -> zone id
	Sets    Table = "sets"    // zone id, owner, type -> record set
	SetIDs  Table = "setids"  // record set number -> key in Sets
	Journal Table = "journal" // zone id, commit number -> change
	Objects Table = "objects" // kind, id -> JSON of small objects: tokens, quotas, shares ...
)

// Tables lists every table. Recorded rows refer to a table by its index, so new tables are added at the end.
var Tables = []Table{Meta, Zones, Names, Sets, SetIDs, Journal, Objects}

// Store stores the tables. The tests in storetest are the whole contract. In short:
//
//   - View sees one state: commits during a View stay invisible to it. Views run concurrently with each other and
//     with an Update, and never wait for one.
//   - Update runs alone. When its function returns nil, everything it wrote is durable before Update returns nil.
//     When the function or Update returns an error, nothing that it wrote is ever visible.
//   - An Update that fails because the medium refuses (full, read-only, broken) returns an error that is
//     ErrUnavailable. The store continues to serve Views, and later Updates may succeed again.
type Store interface {
	View(func(Reader) error) error
	Update(func(Writer) error) error
	// Backup writes a consistent copy while the store is in use. Open of the same kind of store accepts the copy.
	Backup(io.Writer) error
	Close() error
}

// Reader reads tables. The slices that it returns are valid until the function of the View or Update returns, whatever
// is written meanwhile. They must not be changed.
type Reader interface {
	// Get returns nil when there is no such key. An empty value is not nil.
	Get(t Table, key []byte) []byte
	// Scan calls fn for every key that starts with prefix and is at or after from (nil: from the first), in order, until
	// fn returns false. fn must not write to the table that is scanned.
	Scan(t Table, prefix, from []byte, fn func(key, value []byte) bool)
	// Sizes is Scan from the first key, with the sizes of the values. It does not read the values.
	Sizes(t Table, prefix []byte, fn func(key []byte, size int) bool)
	// ScanBack is Scan in descending order: keys that start with prefix and are at or before from (nil: the last).
	ScanBack(t Table, prefix, from []byte, fn func(key, value []byte) bool)
}

// Writer reads and writes tables. It reads its own writes.
type Writer interface {
	Reader
	Put(t Table, key, value []byte) error
	Delete(t Table, key []byte) error // deleting a key that does not exist is not an error
}

// ErrNotFound reports that there is no such zone, record set or object.
var ErrNotFound = errors.New("not found")

// ErrExists reports that there is already a zone, record set or object of that name.
var ErrExists = errors.New("already exists")

// ErrChanged reports that a zone, record set or object is no longer in the state that the caller expects.
var ErrChanged = errors.New("changed in the meantime")

// ErrUnavailable reports that the store cannot take changes now: the disk is full or read-only, or there was an
// input/output error. The change of the caller was not made.
var ErrUnavailable = errors.New("store cannot take changes now")

// IsFault reports whether v is the panic of a function passed to View or Update that was raised because the Store
// cannot read its medium. Such a panic comes from a call of the Store, or from reading a slice that a Reader returned.
// The function must not recover from it: the Store does, and returns an error. A Store marks its panics by a method
// StoreFault.
func IsFault(v any) bool {
	_, call := v.(interface{ StoreFault() })
	_, slice := v.(interface{ Addr() uintptr }) // a runtime.Error, see debug.SetPanicOnFault
	return call || slice
}

// RowDamage returns the error of one damaged row when v, a panic for which IsFault is true, was raised because of it,
// and nil otherwise. No write was in progress at such a panic, so the function may recover and undo its writes.
func RowDamage(v any) error {
	if f, ok := v.(interface{ RowDamage() error }); ok {
		return f.RowDamage()
	}
	return nil
}

// DamagedError reports that a store's file is not a valid store file. Nothing was changed in the file.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return "store file " + e.Path + " is damaged and was left untouched: " + e.Err.Error() +
		"; move it away and restore a backup (nameplane backup), or start with another --data directory"
}

func (e *DamagedError) Unwrap() error { return e.Err }
