package boltstore

import (
	"errors"
	"fmt"

	"github.com/nameplane/nameplane/internal/store"
)

var _ store.Stager = (*Store)(nil)

// flight is an entry on its way into the log, in a goroutine that alone may touch the log and the overlay meanwhile.
type flight struct {
	*store.Staged
	log  opLog
	base int // transaction of the file that the entry comes after
}

// Stage implements store.Stager. The next Update writes to the same transaction of bbolt while the entry of this one is
// synced. That is safe because the transaction holds nothing that would not be given up with it: what was acknowledged is
// in the overlay and the log, and is written again to the next one.
//
// Without a processor for the thread that waits it syncs at once: there is nothing to be gained then.
func (s *Store) Stage(fn func(store.Writer) error) (*store.Staged, error) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.readyBeside(); err != nil {
		return nil, err
	}
	if err := s.fill(fn); err != nil {
		return nil, err
	}
	if err := s.land(); err != nil {
		return nil, err // the one before is gone, and this one stood on it
	}
	if s.w.dirty && s.hold && s.logged && !s.w.log.cut {
		return s.launch(), nil
	}
	var err error
	if s.w.dirty {
		err = s.save()
	}
	if err != nil {
		return nil, err
	}
	done := store.NewStaged(true)
	done.End(nil)
	return done, nil
}

// readyBeside is ready, which waits for what is under way, unless there is no need to.
func (s *Store) readyBeside() error {
	if f := s.air; f != nil && s.tx != nil && f.Beside() {
		s.w.next()
		return nil
	}
	return s.ready()
}

// launch sends what the Update wrote to the log. The next one can run beside it when it needs neither a commit of bbolt,
// which would bring this one into the file before it is durable, nor a new log.
func (s *Store) launch() *store.Staged {
	over := s.over.Load()
	f := &flight{log: s.w.log, base: s.tx.ID() - 1}
	ops := f.log.ops
	if over != nil {
		ops += over.ops
	}
	f.Staged = store.NewStaged(ops < s.maxPending && s.wal.roomBehind(len(f.log.b), s.walSize))
	s.air = f
	go func() { f.End(s.fly(f)) }()
	return f.Staged
}

// fly makes an entry durable, then visible.
func (s *Store) fly(f *flight) error {
	if err := s.wal.append(f.log.b, len(f.log.b) < manyOctets); err != nil {
		return s.unavailable(fmt.Errorf("write the log: %w", errors.Join(err, s.cancel())))
	}
	s.wal.keep(f.log.b)
	over := s.over.Load()
	if over == nil {
		over = &overlay{base: f.base}
	}
	s.over.Store(over.with(&f.log))
	return nil
}

// land waits for what is under way. When that failed, the open transaction has something in it that must not be kept.
func (s *Store) land() error {
	if s.air == nil {
		return nil
	}
	err := s.air.Err()
	s.air = nil
	if err != nil {
		s.abandon()
	}
	return err
}
