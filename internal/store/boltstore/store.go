// Package boltstore keeps the tables of package store in one bbolt file, with a log beside it.
package boltstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/nameplane/nameplane/internal/store"
)

// Options change how a store is opened. The zero value is what serve uses.
type Options struct {
	// LockTimeout is how long Open waits for another process to let go of the file; default 2s, which covers a
	// restart where the old process is still closing, and is short enough for a person to wait for.
	LockTimeout time.Duration
}

// Store is a store.Store in one file, and a log that is empty when the store was closed in order. Besides what the
// contract says:
//
//   - After a fault in the middle of a commit (the file was damaged while in use) Updates are refused until the
//     file is opened anew, so that a damaged file is never written to; Views go on.
type Store struct {
	path string
	opts Options

	dead atomic.Pointer[store.DamagedError] // set when a fault left bbolt's locks held: nothing may call it again

	write  sync.Mutex // held by Update and Close; guards what follows
	stuck  error      // why Updates are refused until the file is opened anew
	doubt  int        // transaction that failed but is visible, and must be undone before the next one; 0: none
	lost   bool       // the file cannot be trusted: it must be opened anew, and set back, before the next Update
	closed bool
	wal    *wal     // nil until the first Update
	tx     *bolt.Tx // holds what over has, not yet committed; nil when there is none, or it failed
	w      *writer  // of tx
	air    *flight  // what Stage has begun, until land
	logged bool     // tx's Updates go to the log
	pin    *bolt.Tx // read transaction of the log's checkpoint, while the log is in use
	early  uint64   // the log's seq when flushEarly ran last
	round  int      // about how many pages were written since the checkpoint
	mapLen int      // how much is mapped at least

	disk     syncer         // of the file; not for two at a time
	hold     bool           // there are processors for a thread that waits for the disk
	flushing sync.WaitGroup // flushEarly
	flushErr atomic.Pointer[error]
	walSize  int64
	maxRound int

	maxPending int

	over atomic.Pointer[overlay] // nil: the file has everything. Stored with write held

	mu   sync.RWMutex // guards db and file; replaced with write held too, so Update may read them without it
	db   *bolt.DB
	file *os.File // db's own descriptor

	commit func(*bolt.Tx) error // (*bolt.Tx).Commit; tests put failures here that no file system gives on demand
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the file at path, and makes it when there is none. A file that is not an intact store is
// reported as *store.DamagedError and left as it is. On a read-only file system the store can be read only.
func Open(path string, opts Options) (*Store, error) {
	if opts.LockTimeout == 0 {
		opts.LockTimeout = 2 * time.Second
	}
	s := &Store{path: path, opts: opts, commit: (*bolt.Tx).Commit, walSize: defaultWALSize, maxRound: maxRound,
		maxPending: maxPending, hold: runtime.GOMAXPROCS(0) > 1}
	if err := s.openFile(); err != nil {
		return nil, err
	}
	if err := s.makeTables(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// View implements store.Store.
func (s *Store) View(fn func(store.Reader) error) error {
	return s.viewOver(func(tx *bolt.Tx, over *overlay) error { return fn(overReader{newReader(tx), over}) })
}

// Update implements store.Store.
func (s *Store) Update(fn func(store.Writer) error) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	if err := s.fill(fn); err != nil {
		return err
	}
	if !s.w.dirty {
		return nil // nothing to make durable: save the sync
	}
	return s.save()
}

// Backup implements store.Store. The pages are read from the file, not through the mapping, so that a backup
// does not count as resident memory.
func (s *Store) Backup(w io.Writer) error {
	s.write.Lock()
	_ = s.land() // whoever staged it is told
	err := s.drain()
	s.write.Unlock()
	if err != nil {
		return err
	}
	return s.view(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(&backupWriter{w: w})
		return err
	})
}

// Size is how many bytes of the file are in use, free pages included; the file itself is longer by what was
// reserved for growth. It is 0 when the store cannot be read.
func (s *Store) Size() (size int64) {
	// A store that cannot be read says so to whoever reads it; a metric need not.
	_ = s.view(func(tx *bolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size
}

// DropCaches gives the memory of pages that were read back to the system. They stay in the page cache; what falls
// is the resident size of the process, which a full scan has raised by the size of the file.
func (s *Store) DropCaches() {
	// Inside a transaction, because that keeps bbolt from moving the mapping.
	_ = s.view(func(tx *bolt.Tx) error {
		dropMapped(tx.DB().Info().Data, uintptr(tx.Size()))
		return nil
	})
}

// HoldsThread reports whether an Update may keep a thread while it waits for the disk. With one processor it does so only
// where there is no other way.
func (s *Store) HoldsThread() bool {
	if s.hold { // who is told of one change may ask from inside the Stage of the next, which has write
		return true
	}
	s.write.Lock()
	defer s.write.Unlock()
	return s.wal == nil || s.wal.disk.holdsThread()
}

// Close implements store.Store. It waits for Views to end.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return nil
	}
	_ = s.land() // whoever staged it is told
	defer func() { s.closed = true }()
	if s.dead.Load() != nil {
		// bbolt's Close would wait for ever for a lock that the fault left held. Closing the descriptor frees
		// the file for others; the mapping goes with the process.
		return s.file.Close()
	}
	// A log that cannot be ended, because the disk is full, is read again when the file is opened; nothing is lost.
	if s.drain() == nil && !s.lost {
		_ = s.endLog()
	}
	s.abandon()
	s.dropLog()
	s.disk.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.Close()
}

func (s *Store) view(fn func(*bolt.Tx) error) error {
	return s.viewOver(func(tx *bolt.Tx, _ *overlay) error { return fn(tx) })
}

// viewOver reads the file and what lies over it at one moment.
func (s *Store) viewOver(fn func(*bolt.Tx, *overlay) error) (err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var tx *bolt.Tx
	var over *overlay
	for {
		over = s.over.Load()
		if tx, err = s.begin(false); err != nil {
			return err
		}
		if over == nil || tx.ID() == over.base {
			break
		}
		_ = tx.Rollback() // a commit came in between, and the overlay is about to go
		runtime.Gosched()
	}
	// Rollback reads nothing from the file, so it needs no guard.
	defer func() { _ = tx.Rollback() }()
	defer s.guard(debug.SetPanicOnFault(true), &err)
	return fn(tx, over)
}

// begin starts a transaction of the current db; the caller holds mu or write.
func (s *Store) begin(writable bool) (tx *bolt.Tx, err error) {
	if dead := s.dead.Load(); dead != nil {
		return nil, dead
	}
	defer func() {
		// Only reading the meta pages can fault here, and then bbolt keeps its locks.
		if d := (*store.DamagedError)(nil); errors.As(err, &d) {
			s.dead.Store(d)
		}
	}()
	defer s.guardAll(debug.SetPanicOnFault(true), &err)
	tx, err = s.db.Begin(writable)
	if errors.Is(err, bolterrors.ErrDatabaseReadOnly) {
		return nil, s.unavailable(errors.New("it is on a read-only file system"))
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", s.path, err)
	}
	return tx, nil
}

func (s *Store) makeTables() error {
	missing := false
	err := s.view(func(tx *bolt.Tx) error {
		for _, t := range store.Tables {
			missing = missing || tx.Bucket([]byte(t)) == nil
		}
		return nil
	})
	if err != nil || !missing {
		return err
	}
	tx, err := s.begin(true)
	if err != nil {
		return err
	}
	for _, t := range store.Tables {
		if _, err := tx.CreateBucketIfNotExists([]byte(t)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return s.saveAlone(tx)
}
