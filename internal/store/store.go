// Package store says what nameplane asks of the place where its data lives: ordered tables of bytes that change
// in atomic, durable steps. It also holds the rows in those tables, so that every store keeps the same data.
package store

import (
	"errors"
	"io"
)

// Table names one ordered set of keys. A store makes all of Tables when it is opened.
type Table string

// The tables. rows.go says what their keys and values are.
const (
	Meta    Table = "meta"
	Zones   Table = "zones"   // zone id -> zone
	Names   Table = "names"   // zone name -> zone id
	Sets    Table = "sets"    // zone id, owner, type -> record set
	SetIDs  Table = "setids"  // record set number -> key in Sets
	Journal Table = "journal" // zone id, commit number -> change
	Objects Table = "objects" // kind, id -> JSON of the small things: tokens, quotas, shares ...
)

// Tables lists every table. Recorded rows name a table by its index, so new ones go to the end.
var Tables = []Table{Meta, Zones, Names, Sets, SetIDs, Journal, Objects}

// Store keeps the tables. storetest is the whole contract; in short:
//
//   - View sees one moment: what commits during it stays invisible to it. Views run beside each other and beside
//     an Update, and never wait for one.
//   - Update runs alone. When its function returns nil, all it wrote is durable before Update returns nil; when
//     the function returns an error, or Update does, nothing of it is ever seen.
//   - An Update that fails because the medium refuses (full, read-only, broken) returns an error that is
//     ErrUnavailable, and the store goes on serving Views; later Updates may succeed again.
type Store interface {
	View(func(Reader) error) error
	Update(func(Writer) error) error
	// Backup writes a consistent copy, which Open of the same kind of store accepts, while the store is in use.
	Backup(io.Writer) error
	Close() error
}

// Reader reads tables. The slices it hands out are valid until the function it was given to returns, whatever is written
// meanwhile, and must not be changed.
type Reader interface {
	// Get returns nil when there is no such key. An empty value is not nil.
	Get(t Table, key []byte) []byte
	// Scan calls fn for every key that starts with prefix and is at or after from (nil: from the first), in order,
	// until fn returns false. fn must not write to the table it scans.
	Scan(t Table, prefix, from []byte, fn func(key, value []byte) bool)
	// ScanBack is Scan in descending order: keys that start with prefix and are at or before from (nil: the last).
	ScanBack(t Table, prefix, from []byte, fn func(key, value []byte) bool)
}

// Writer reads and writes tables; it reads what it has written.
type Writer interface {
	Reader
	Put(t Table, key, value []byte) error
	Delete(t Table, key []byte) error // no error when absent
}

// ErrNotFound says that there is no such zone, record set or object.
var ErrNotFound = errors.New("not found")

// ErrExists says that there is already a zone, record set or object of that name.
var ErrExists = errors.New("already exists")

// ErrChanged says that a zone, record set or object is no longer in the state that the caller expects.
var ErrChanged = errors.New("changed in the meantime")

// ErrUnavailable says that the store cannot take changes now: disk full, read-only, or an input/output error. The
// caller's change was not made.
var ErrUnavailable = errors.New("store cannot take changes now")

// IsFault reports whether a function that was given to View or Update panicked with v because the Store cannot read
// its medium: in a call of the Store, or through a slice that a Reader handed out. The function must not recover from
// it: the Store does, and returns an error. A Store marks its panics by a method StoreFault.
func IsFault(v any) bool {
	_, call := v.(interface{ StoreFault() })
	_, slice := v.(interface{ Addr() uintptr }) // a runtime.Error, see debug.SetPanicOnFault
	return call || slice
}

// RowDamage returns the error in v, a panic for which IsFault is true, when the Store panicked because of one damaged row,
// and nil otherwise. Nothing was being written then: the function may recover, and undo what it wrote.
func RowDamage(v any) error {
	if f, ok := v.(interface{ RowDamage() error }); ok {
		return f.RowDamage()
	}
	return nil
}

// DamagedError says that a store's file is not what a store wrote. Nothing was changed in it.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return "store file " + e.Path + " is damaged and was left untouched: " + e.Err.Error() +
		"; move it away and restore a backup (nameplane backup), or start with another --data directory"
}

func (e *DamagedError) Unwrap() error { return e.Err }
