package boltstore

import (
	"fmt"
	"runtime/debug"

	"github.com/nameplane/nameplane/internal/store"
)

// fault wraps a panic from bbolt until guard recovers it, so that it is not mistaken for a panic of the caller.
type fault struct{ cause any }

// StoreFault marks the panic for store.IsFault.
func (*fault) StoreFault() {}

// RowDamage returns the error of a row whose checksum is wrong, for store.RowDamage.
func (f *fault) RowDamage() error {
	if d, ok := f.cause.(*store.DamagedError); ok {
		return d
	}
	return nil
}

// trap wraps a panic of bbolt in a fault. Defer it around a call of bbolt.
func trap() {
	switch p := recover().(type) {
	case nil:
	case *fault:
		panic(p)
	default:
		panic(&fault{p})
	}
}

// guard turns a fault into an error. It does the same with a memory fault at an address in the mapped file, because
// callers read slices that point into it. Every other panic belongs to the caller and continues. Defer it around a
// caller's function.
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

// guardAll is guard for code that runs no function of a caller: it turns every panic into an error.
func (s *Store) guardAll(panicOnFault bool, err *error) {
	debug.SetPanicOnFault(panicOnFault)
	if p := recover(); p != nil {
		*err = s.damaged(p)
	}
}

// mapped reports whether addr is in the mapped file. bbolt exposes the start of the mapping but not its length. The
// length is at least mapSize; other mappings follow, where this process has no reason to fault.
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

// damaged returns the error for a panic of bbolt or a row with a wrong checksum, and records it.
func (s *Store) damaged(cause any) *store.DamagedError {
	d, ok := cause.(*store.DamagedError)
	if !ok {
		d = &store.DamagedError{Path: s.path, Err: fmt.Errorf("reading a page: %v", cause)}
	}
	s.noteDamage(d)
	return d
}
