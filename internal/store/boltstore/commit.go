package boltstore

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/nameplane/nameplane/internal/store"
)

// This is how bbolt behaves when a commit fails. It was read in its source and is verified by the tests of this
// package:
//
//   - Growing the file or writing pages fails (ENOSPC, EDQUOT, EFBIG, EIO, EROFS): bbolt has written only pages that no
//     meta page refers to. It reads the list of free pages again from the last good commit and ends the transaction.
//     The next commit starts clean.
//   - The commit fails after its meta page was written: readers see a transaction that Update reports as failed.
//     finish detects this, and undo reverts the transaction.
//   - Mapping a larger file fails: bbolt refuses every later transaction with ErrInvalidMapping. beginUpdate opens the
//     file again.
//
// bbolt drops the errno when growing fails, so every failed commit counts as ErrUnavailable, whatever its cause. At
// that point the caller's function has returned, and only the medium can fail.

// Update implements store.Store. One call is one bbolt transaction.
func (s *Store) Update(fn func(store.Writer) error) error {
	s.write.Lock()
	defer s.write.Unlock()
	tx, err := s.beginUpdate()
	if err != nil {
		s.noteRefusal(err)
		return err
	}
	dirty, err := s.fill(tx, fn)
	if err != nil || !dirty {
		return err // without a write there is nothing to make durable: save the two syncs
	}
	err = s.finish(tx)
	s.noteRefusal(err)
	return err
}

// beginUpdate starts a write transaction. Before that, it completes what a failed commit left to do.
func (s *Store) beginUpdate() (*bolt.Tx, error) {
	if s.blocked != nil {
		return nil, s.blocked
	}
	if s.failedTx != 0 {
		if err := s.undo(); err != nil {
			return nil, err
		}
	}
	if s.readOnly {
		f, err := os.OpenFile(s.path, os.O_RDWR, 0)
		if err != nil {
			return nil, s.unavailable(err)
		}
		if err := errors.Join(f.Close(), s.reopen()); err != nil {
			return nil, err
		}
	}
	tx, err := s.begin(true)
	if s.closed || !errors.Is(err, bolterrors.ErrInvalidMapping) && !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return tx, err
	}
	if err := s.reopen(); err != nil {
		return nil, err
	}
	return s.begin(true)
}

// fill runs the caller's function and reports whether it wrote anything. When the transaction must not be committed,
// fill has ended it, also when fn panics or ends the goroutine.
func (s *Store) fill(tx *bolt.Tx, fn func(store.Writer) error) (dirty bool, err error) {
	w, done := newWriter(s, tx), false
	defer func() {
		if dirty = w.dirty; !done || err != nil || !dirty {
			_ = tx.Rollback()
		}
	}()
	defer s.guard(debug.SetPanicOnFault(true), &err)
	if err = fn(w); err == nil {
		err = w.flush()
	}
	done = true
	return w.dirty, err
}

// finish commits the transaction. Whatever it returns, the transaction has ended.
func (s *Store) finish(tx *bolt.Tx) error {
	id := tx.ID()
	err := s.guarded(func() error { return s.commit(tx) })
	if err == nil {
		s.wrote = true
		return nil
	}
	if d := (*store.DamagedError)(nil); errors.As(err, &d) {
		// bbolt may have taken pages from the list of free pages without returning them, so no further commit is safe. It may
		// also hold its writer lock, for which Close would wait forever.
		s.blocked = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		_ = s.guarded(tx.Rollback)
		return s.blocked
	}
	err = s.unavailable(err)
	if s.visible(id) {
		s.failedTx = id
		err = errors.Join(err, s.undo())
	}
	return err
}

// guarded calls bbolt and returns a fault in the call as an error.
func (s *Store) guarded(call func() error) (err error) {
	defer s.guardAll(debug.SetPanicOnFault(true), &err)
	return call()
}

// visible reports whether readers see the transaction with this ID.
func (s *Store) visible(id int) bool {
	tx, err := s.begin(false)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback() }()
	return tx.ID() == id
}

// undo reverts a commit that failed after its meta page was written: it writes the previous commit to that meta page
// too. Until this is on the disk, a power cut can leave either of the two commits, so no Update may run.
func (s *Store) undo() error {
	slot := s.failedTx % 2
	before, err := readMetaAt(s.file, int64(1-slot)*int64(s.db.Info().PageSize))
	if before.slot = 1 - slot; err == nil {
		err = before.mirror(s.file)
	}
	if err != nil {
		return s.unavailable(fmt.Errorf("undo a failed commit: %w", err))
	}
	s.failedTx = 0
	return s.reopen()
}

// reopen opens the file again when bbolt's state of it cannot be trusted. The caller holds s.write. When opening fails,
// Views fail too, and each Update tries again.
func (s *Store) reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.db.Close(); err != nil {
		return s.unavailable(err)
	}
	if err := s.openFile(); err != nil {
		return s.unavailable(fmt.Errorf("open it again: %w", err))
	}
	return nil
}

func (s *Store) unavailable(err error) error {
	return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, s.path, err)
}
