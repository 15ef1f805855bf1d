package boltstore

import (
	"fmt"
	"runtime/debug"

	"github.com/nameplane/nameplane/internal/store"
)

// fault is a panic on its way from bbolt to guard, marked so that it is not taken for the caller's own.
type fault struct{ cause any }

// StoreFault marks the panic for store.IsFault.
func (*fault) StoreFault() {}

// RowDamage returns the error of a row that does not have its checksum, for store.RowDamage.
func (f *fault) RowDamage() error {
	if d, ok := f.cause.(*store.DamagedError); ok {
		return d
	}
	return nil
}

// trap, deferred around a call of bbolt, marks what panics there.
func trap() {
	switch p := recover().(type) {
	case nil:
	case *fault:
		panic(p)
	default:
		panic(&fault{p})
	}
}

// guard, deferred around a caller's function, turns what trap marked into an error, and also a fault at an address
// in the mapped file, because callers read slices that point there. Every other panic is the caller's and goes on.
func (s *Store) guard(panicOnFault bool, err *error) {
	debug.SetPanicOnFault(panicOnFault)
	p := recover()
	if p == nil {
		return
	}
	if f, ok := p.(*fault); ok {
		*err = s.damaged(f.cause)
		return
	}
	if a, ok := p.(interface{ Addr() uintptr }); ok && s.mapped(a.Addr()) {
		*err = s.damaged(p)
		return
	}
	panic(p)
}

// guardAll is guard where no caller's function runs.
func (s *Store) guardAll(panicOnFault bool, err *error) {
	debug.SetPanicOnFault(panicOnFault)
	if p := recover(); p != nil {
		*err = s.damaged(p)
	}
}

// mapped says whether addr is in the mapped file. bbolt tells where the mapping starts and not how long it is; it
// is at least mapSize, and what lies behind it is other mappings, where this process has no reason to fault.
func (s *Store) mapped(addr uintptr) bool {
	start := s.db.Info().Data
	return addr >= start && addr-start < uintptr(max(mapSize, s.fileSize()))
}

func (s *Store) fileSize() int {
	info, err := s.file.Stat()
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// damaged returns the error for a panic of bbolt or a row without its checksum, and notes it.
func (s *Store) damaged(cause any) *store.DamagedError {
	d, ok := cause.(*store.DamagedError)
	if !ok {
		d = &store.DamagedError{Path: s.path, Err: fmt.Errorf("reading a page: %v", cause)}
	}
	s.noteDamage(d)
	return d
}
