package boltstore

import (
	"errors"
	"fmt"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/nameplane/nameplane/internal/store"
)

// What bbolt does when a commit fails, read in its source and proved by the tests here:
//
//   - Growing the file or writing pages fails (ENOSPC, EDQUOT, EFBIG, EIO, EROFS): only pages that no meta page
//     refers to were written. It reads the list of free pages back from the last good commit and ends the
//     transaction; nothing is lost but the reserved length of the file, and the next commit starts clean.
//   - The fsync of the meta page fails: the new meta page is in the file already, so readers see the transaction
//     that is about to be reported as failed, and the free pages were read back from it. finish finds this out
//     and undoes it.
//   - Mapping a larger file fails: every later transaction is refused with ErrInvalidMapping. beginUpdate opens
//     the file anew.
//
// bbolt loses the errno when growing fails, so every failed commit counts as ErrUnavailable, whatever its cause:
// by then the caller's function is done, and only the medium is left to refuse.

// beginUpdate starts a write transaction; write is held.
func (s *Store) beginUpdate() (*bolt.Tx, error) {
	if s.stuck != nil {
		return nil, s.stuck
	}
	if s.doubt != 0 {
		if err := s.undo(); err != nil {
			return nil, err
		}
	}
	tx, err := s.begin(true)
	lost := errors.Is(err, bolterrors.ErrInvalidMapping) || errors.Is(err, bolterrors.ErrDatabaseNotOpen)
	if !lost || s.closed {
		return tx, err
	}
	s.mu.Lock()
	err = s.reopen()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.begin(true)
}

// fill lets the caller write, and rolls back unless it returns nil.
func (s *Store) fill(tx *bolt.Tx, w *writer, fn func(store.Writer) error) (err error) {
	done := false
	defer func() {
		// Also when fn panics or ends the goroutine.
		if !done || err != nil {
			_ = tx.Rollback()
		}
	}()
	defer s.guard(debug.SetPanicOnFault(true), &err)
	if err = fn(w); err == nil {
		err = w.flush()
	}
	done = true
	return err
}

// finish commits. Whatever it returns, the transaction has ended.
func (s *Store) finish(tx *bolt.Tx) error {
	id := tx.ID()
	err := s.commitGuarded(tx)
	if err == nil {
		return nil
	}
	if d := (*store.DamagedError)(nil); errors.As(err, &d) {
		// Pages may have been taken from the list of free pages and not given back, and bbolt's writer lock may
		// still be held.
		s.stuck = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		return s.stuck
	}
	if s.visible(id) {
		s.doubt = id
		if undoErr := s.undo(); undoErr != nil {
			err = errors.Join(err, undoErr)
		}
	}
	return s.unavailable(err)
}

func (s *Store) commitGuarded(tx *bolt.Tx) (err error) {
	defer s.guardAll(debug.SetPanicOnFault(true), &err)
	return s.commit(tx)
}

// visible says whether readers see transaction id.
func (s *Store) visible(id int) bool {
	tx, err := s.begin(false)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback() }()
	return tx.ID() == id
}

// undo takes back the transaction that failed after its meta page was written. A blank meta page is to bbolt what
// a torn write leaves: it falls back to the other one, which is the commit before. Until that is on the disk it is
// open which of the two a power cut leaves, so no Update may pass.
func (s *Store) undo() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.db.Info().PageSize
	if _, err := s.file.WriteAt(make([]byte, size), int64(s.doubt%2)*int64(size)); err != nil {
		return s.unavailable(fmt.Errorf("undo a failed commit: %w", err))
	}
	if err := s.file.Sync(); err != nil {
		return s.unavailable(fmt.Errorf("undo a failed commit: %w", err))
	}
	s.doubt = 0
	return s.reopen()
}

// reopen opens the file anew, because bbolt's list of free pages cannot be trusted. mu and write are held. When it
// fails the store is closed to Views, and each Update tries again.
func (s *Store) reopen() error {
	if err := s.db.Close(); err != nil {
		return s.unavailable(err)
	}
	db, file, err := openFile(s.path, s.opts)
	if err != nil {
		return s.unavailable(fmt.Errorf("open it anew: %w", err))
	}
	s.db, s.file = db, file
	return nil
}

func (s *Store) unavailable(err error) error {
	return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, s.path, err)
}
