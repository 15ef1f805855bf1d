package boltstore

import (
	"errors"
	"fmt"
)

// startLog sees to it that an entry can be appended. It says false when this Update must do without the log: the file
// does not leave enough of the mapping free, or the log cannot be made now. write is held, no transaction is open.
func (s *Store) startLog() (bool, error) {
	// bbolt maps a file that outgrew its mapping anew, and waits for all read transactions first, so also for our pin.
	if s.mapLen-s.fileSize() < mapReserve {
		return false, s.endLog()
	}
	if s.wal != nil && s.wal.dirty && !s.wal.torn && s.wal.room(s.walSize) && s.round < s.maxRound {
		return true, nil
	}
	if s.wal == nil {
		w, err := openWAL(s.path, false)
		if err == nil && w == nil {
			if err := s.mark(0); err != nil { // of a log that held nothing, or that is not missed
				return false, err
			}
			w, err = createWAL(s.path, s.walSize)
		}
		if err != nil {
			return false, nil // no space for it, or no right: bbolt alone may still do
		}
		s.wal = w
	}
	return true, s.checkpoint()
}

// maxRound is about how many pages the Updates between two checkpoints write. None of them can be used again before the
// second, so the file grows by them, and bbolt writes the list of those that wait with every commit: rounds of 32,000
// pages made a change take 2.3 ms and not 0.8. Short ones sync the file more often.
const maxRound = 2048

// pages is about how many pages a commit of so many operations writes: those that every commit does, and for each change,
// which is some seven operations, a leaf and half a branch.
func pages(ops int) int { return 16 + ops/4 }

// mapReserve is how much of the mapping must be free: more than the largest Update can take (maxUpdate).
const mapReserve = 3 << 30

// checkpoint brings everything committed to the disk, pins it, and starts the log anew from there.
func (s *Store) checkpoint() error {
	if err := errors.Join(s.wal.identify(), s.mark(s.wal.id)); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	pin, err := s.begin(false)
	if err != nil {
		return err
	}
	meta := make([]byte, walMetaSize)
	slot := int64(pin.ID()%2) * int64(s.db.Info().PageSize)
	if _, err = s.file.ReadAt(meta, slot); err == nil {
		err = s.wal.begin(meta)
	}
	if err != nil {
		_ = pin.Rollback()
		return s.unavailable(fmt.Errorf("write the log: %w", err))
	}
	s.round = 0
	s.unpin() // the old checkpoint: only now may its pages be used again
	s.pin = pin
	return nil
}

// endLog brings everything to the disk and takes the log out of use, so that the file is good by itself.
func (s *Store) endLog() error {
	if s.wal == nil || !s.wal.dirty && !s.wal.torn {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.wal.begin(nil); err != nil {
		return s.unavailable(fmt.Errorf("write the log: %w", err))
	}
	s.unpin()
	return s.mark(0)
}

// flush brings the pages of all commits to the disk. A page that could not be written may be dropped by the system and
// the error told only once, so after an error the file is not to be trusted: it is set back and the log applied.
func (s *Store) flush() error {
	s.flushing.Wait()
	err := s.disk.datasync(s.file, false)
	if early := s.flushErr.Swap(nil); early != nil {
		err = errors.Join(*early, err)
	}
	if err != nil {
		s.lost = true
		return s.unavailable(err)
	}
	return nil
}

// flushEarly begins to bring pages to the disk in the middle of a round, beside the Updates that go on, so that the
// checkpoint has less to wait for.
func (s *Store) flushEarly() {
	if s.early == s.wal.seq || s.round < s.maxRound/2 {
		return
	}
	s.early = s.wal.seq
	f := s.file
	s.flushing.Go(func() {
		if err := s.disk.datasync(f, false); err != nil {
			s.flushErr.Store(&err)
		}
	})
}

func (s *Store) unpin() {
	if s.pin != nil {
		_ = s.pin.Rollback()
		s.pin = nil
	}
}

// dropLog lets go of the log as it is, for a file that is to be opened anew and will be set back.
func (s *Store) dropLog() {
	s.flushing.Wait()
	s.flushErr.Store(nil)
	s.unpin()
	_ = s.wal.close()
	s.wal = nil
}
