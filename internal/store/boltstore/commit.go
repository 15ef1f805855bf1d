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

// maxPending is how many operations are gathered before bbolt commits them: some hundred changes share the pages that
// every commit writes.
const maxPending = 512

// manyOctets are those of half a dozen changes. An Update that carries so many has others waiting, who need the
// processors; one that carries less is waited for by few, who want it soon.
const manyOctets = 4096

// maxUpdate is how many octets of rows one transaction may have. It is far above an import of the largest zone file that
// serve takes by default, and far below mapReserve.
const maxUpdate = 1 << 30

// ready sees to it that there is an open transaction with everything acknowledged in it, and room in the log.
func (s *Store) ready() error {
	_ = s.land() // whoever staged it is told
	switch {
	case s.stuck != nil:
		return s.stuck
	case s.closed:
		tx, err := s.begin(true) // bbolt says what is to be said
		if err == nil {
			_ = tx.Rollback()
		}
		return err
	}
	if s.tx != nil {
		if s.logged && !s.wal.failed && !s.wal.torn && s.wal.room(s.walSize) && !s.full() {
			s.w.next()
			return nil
		}
		if err := s.commitOpen(); err != nil {
			return err
		}
	}
	if err := s.repair(); err != nil {
		return err
	}
	if err := s.beginOpen(); err != nil {
		return err
	}
	return s.catchUp()
}

// full reports whether it is time for bbolt to commit.
func (s *Store) full() bool {
	over := s.over.Load()
	return over != nil && over.ops >= s.maxPending
}

// beginOpen starts a transaction, after a checkpoint if one is due.
func (s *Store) beginOpen() (err error) {
	s.logged = false
	// While entries wait for a transaction that can take them, the log must not start anew: they are only there.
	if waiting := s.over.Load() != nil; waiting {
		s.logged = true
	} else if !s.db.IsReadOnly() {
		if s.logged, err = s.startLog(); err != nil {
			return err
		}
	}
	s.tx, err = s.begin(true)
	if errors.Is(err, bolterrors.ErrInvalidMapping) || errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		if err := s.reopen(); err != nil {
			return err
		}
		s.logged = false
		s.tx, err = s.begin(true)
	}
	if err != nil {
		s.tx = nil
		return err
	}
	s.w = newWriter(s.tx)
	return nil
}

// catchUp writes again what was acknowledged and whose transaction failed, and has it committed before anything else is
// taken: the medium may still refuse.
func (s *Store) catchUp() error {
	over := s.over.Load()
	if over == nil {
		return nil
	}
	for _, e := range over.entries {
		if err := apply(s.tx, e); err != nil {
			s.abandon()
			return s.unavailable(err)
		}
	}
	if err := s.commitOpen(); err != nil {
		return err
	}
	return s.beginOpen()
}

// abandon gives up the open transaction. What was acknowledged stays in the overlay and the log.
func (s *Store) abandon() {
	if s.tx != nil {
		_ = s.tx.Rollback()
		s.tx = nil
	}
}

// commitOpen lets bbolt commit what the open transaction has gathered. When it fails, everything acknowledged is still in
// the log and in the overlay; the next Update tries again.
func (s *Store) commitOpen() error {
	over := s.over.Load()
	if s.tx == nil || over == nil {
		s.abandon()
		if over != nil {
			return s.unavailable(errors.New("changes wait to be written to it"))
		}
		return nil
	}
	tx := s.tx
	s.tx = nil
	if err := s.flushRows(tx); err != nil {
		return s.unavailable(err)
	}
	s.db.NoSync = true
	visible, err := s.finish(tx)
	s.db.NoSync = false
	if err != nil {
		if visible {
			return errors.Join(err, s.reopen())
		}
		return err
	}
	s.over.Store(nil)
	s.round += pages(over.ops)
	s.flushEarly()
	return nil
}

// drain brings everything acknowledged into the file.
func (s *Store) drain() error {
	if s.tx == nil && s.over.Load() != nil {
		if err := s.repair(); err != nil {
			return err
		}
		if s.over.Load() != nil { // repairing may have opened the file anew, and applied the log
			if err := s.beginOpen(); err != nil {
				return err
			}
			if err := s.catchUp(); err != nil {
				return err
			}
		}
	}
	return s.commitOpen()
}

// flushRows gives bbolt what the writer has kept.
func (s *Store) flushRows(tx *bolt.Tx) (err error) {
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	defer s.guard(debug.SetPanicOnFault(true), &err)
	return s.w.flush()
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

// save makes what an Update wrote durable, then visible: one sync of the log, and bbolt commits later. Without the log,
// bbolt commits now, with two syncs.
func (s *Store) save() error {
	log := s.w.log
	switch {
	case !s.logged:
		tx := s.tx
		s.tx = nil
		if err := s.flushRows(tx); err != nil {
			return err
		}
		return s.saveAlone(tx)
	case log.cut:
		return s.saveLarge()
	}
	if err := s.wal.append(log.b, s.hold && len(log.b) < manyOctets); err != nil {
		s.abandon()
		return s.unavailable(fmt.Errorf("write the log: %w", errors.Join(err, s.cancel())))
	}
	s.wal.keep(log.b)
	over := s.over.Load()
	if over == nil {
		over = &overlay{base: s.tx.ID() - 1}
	}
	s.over.Store(over.with(&log))
	if s.full() {
		// The change is durable and visible, whatever comes of this; if it fails, the next Update will say so.
		_ = s.commitOpen()
	}
	return nil
}

// saveLarge commits an Update that is too long for the log, together with what was gathered before it, and makes a
// checkpoint of that.
func (s *Store) saveLarge() error {
	tx := s.tx
	s.tx = nil
	if err := s.flushRows(tx); err != nil {
		return err
	}
	s.db.NoSync = true
	visible, err := s.finish(tx)
	s.db.NoSync = false
	if err == nil {
		s.over.Store(nil)
		if err = s.checkpoint(); err == nil {
			return nil
		}
		visible = true
	}
	if visible {
		// Set back to the checkpoint, with the log applied: this Update is in neither.
		return errors.Join(err, s.reopen())
	}
	return err
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

// fill lets the caller write. Unless it returns nil the transaction is given up, if anything was written to it; what was
// acknowledged before is then written to the next one.
func (s *Store) fill(fn func(store.Writer) error) (err error) {
	done := false
	defer func() {
		// Also when fn panics or ends the goroutine.
		if (!done || err != nil) && (s.w.dirty || !s.logged) {
			s.abandon()
		}
	}()
	defer s.guard(debug.SetPanicOnFault(true), &err)
	err = fn(s.w)
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
// and the log's entries lie over it, which is exactly what was acknowledged. Updates hold write; when opening fails the store is
// closed to Views, and each Update tries again.
func (s *Store) reopen() error {
	s.abandon()
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
