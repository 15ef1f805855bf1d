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
//   - The meta page was written and the commit fails after it: readers see a transaction that is about to be reported as
//     failed, and the free pages were read back from it. finish finds this out, and has the file opened anew.
//   - Mapping a larger file fails: every later transaction is refused with ErrInvalidMapping. beginUpdate opens
//     the file anew.
//
// bbolt loses the errno when growing fails, so every failed commit counts as ErrUnavailable, whatever its cause:
// by then the caller's function is done, and only the medium is left to refuse.

// beginUpdate starts a write transaction, and says whether the log can take it; write is held.
func (s *Store) beginUpdate() (tx *bolt.Tx, logged bool, err error) {
	if s.stuck != nil {
		return nil, false, s.stuck
	}
	if s.closed {
		tx, err = s.begin(true) // bbolt says what is to be said
		return tx, false, err
	}
	if err := s.repair(); err != nil {
		return nil, false, err
	}
	if !s.db.IsReadOnly() {
		if logged, err = s.startLog(); err != nil {
			return nil, false, err
		}
	}
	tx, err = s.begin(true)
	if errors.Is(err, bolterrors.ErrInvalidMapping) || errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		if err := s.reopen(); err != nil {
			return nil, false, err
		}
		tx, err = s.begin(true)
		return tx, false, err
	}
	return tx, logged, err
}

// repair finishes what an Update that failed could not: until then no other may pass.
func (s *Store) repair() error {
	switch {
	case s.doubt != 0:
		return s.undo()
	case s.wal != nil && s.wal.failed:
		if err := s.cancel(); err != nil {
			return err
		}
	}
	if s.lost {
		return s.reopen()
	}
	return nil
}

// save makes a transaction durable, then visible. With the log it is one sync; without, it is bbolt's two.
func (s *Store) save(tx *bolt.Tx, log *opLog, logged bool) error {
	if !logged || log.cut {
		if err := s.endLog(); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return s.saveAlone(tx)
	}
	if err := s.wal.append(log.b); err != nil {
		_ = tx.Rollback()
		return s.unavailable(fmt.Errorf("write the log: %w", errors.Join(err, s.cancel())))
	}
	s.db.NoSync = true
	visible, err := s.finish(tx)
	s.db.NoSync = false
	if err != nil {
		s.lost = visible
		if cancelErr := s.cancel(); cancelErr != nil {
			return errors.Join(err, cancelErr)
		}
		if s.lost {
			return errors.Join(err, s.reopen())
		}
		return err
	}
	s.wal.keep(log.b)
	s.round += pages(log.ops)
	s.flushEarly()
	return nil
}

// saveAlone commits without the log.
func (s *Store) saveAlone(tx *bolt.Tx) error {
	id := tx.ID()
	visible, err := s.finish(tx)
	if visible {
		s.doubt = id
		err = errors.Join(err, s.undo())
	}
	return err
}

// cancel takes back an entry whose Update failed. Until that is on the disk a crash would bring it back.
func (s *Store) cancel() error {
	if err := s.wal.cancel(); err != nil {
		return s.unavailable(fmt.Errorf("take back an entry of the log: %w", err))
	}
	return nil
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

// finish lets bbolt commit. Whatever it returns, the transaction has ended; when it failed and readers see it all the
// same, visible is true.
func (s *Store) finish(tx *bolt.Tx) (visible bool, err error) {
	id := tx.ID()
	err = s.commitGuarded(tx)
	if err == nil {
		return false, nil
	}
	if d := (*store.DamagedError)(nil); errors.As(err, &d) {
		// Pages may have been taken from the list of free pages and not given back, and bbolt's writer lock may
		// still be held.
		s.stuck = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		return false, s.stuck
	}
	return s.visible(id), s.unavailable(err)
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

// undo takes back a commit without the log that failed after its meta page was written. A blank meta page is to bbolt
// what a torn write leaves: it falls back to the other one, which is the commit before. Until that is on the disk it
// is open which of the two a power cut leaves, so no Update may pass.
func (s *Store) undo() error {
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

// reopen opens the file anew, because bbolt's view of it cannot be trusted. When the log was in use the file is set back
// and the log applied, which leaves exactly what was acknowledged. Updates hold write; when opening fails the store is
// closed to Views, and each Update tries again.
func (s *Store) reopen() error {
	s.dropLog()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.db.Close(); err != nil {
		return s.unavailable(err)
	}
	if err := s.openFile(); err != nil {
		s.lost = true
		return s.unavailable(fmt.Errorf("open it anew: %w", err))
	}
	return nil
}

func (s *Store) unavailable(err error) error {
	return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, s.path, err)
}
