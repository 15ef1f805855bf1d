// Package boltstore implements store.Store in one bbolt file.
//
// Start with Open in store.go. check.go verifies the whole file before bbolt reads it, commit.go handles failed
// commits, and writer.go and tx.go read and write rows with the checksums of sum.go.
package boltstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/nameplane/nameplane/internal/store"
)

// Options configures Open. The zero value is what nameplane serve uses.
type Options struct {
	// LockTimeout is how long Open waits for another process to release the file. The default is 2s: it covers a restart
	// where the old process is still closing, and is short enough for a person to wait.
	LockTimeout time.Duration

	Log *slog.Logger // discards messages by default
}

// Store is a store.Store in one bbolt file. It adds one rule to the contract: after a fault during a commit (the file
// was damaged while in use), it refuses Updates until the file is opened again, so that it never writes to a damaged
// file. Views continue.
type Store struct {
	path string
	opts Options

	dead  atomic.Pointer[store.DamagedError] // set when a fault left bbolt's locks held: bbolt must not be called again
	state state

	write    sync.Mutex // held by Update and Close; guards the next five fields
	blocked  error      // reason why Updates are refused until the file is opened again
	failedTx int        // a transaction that failed but is visible, and must be undone before the next one; 0 for none
	readOnly bool       // the file is on a read-only file system
	wrote    bool       // the file has a commit since it was opened
	closed   bool

	// mu guards db, file and noChecksums. reopen replaces them and also holds write, so Update reads them without mu.
	mu          sync.RWMutex
	db          *bolt.DB
	file        *os.File // the descriptor of db
	noChecksums bool     // a store of an older version that could not be upgraded: its rows have no checksums

	commit func(*bolt.Tx) error // (*bolt.Tx).Commit; tests replace it to simulate failures
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the file at path, and creates it when there is none. It reports a file that is not an intact
// store as *store.DamagedError and does not change it. Damage of only the table Journal does not affect the served
// zones: then the store is read-only. On a read-only file system, the store is read-only until an Update finds that the
// file can be written.
//
// Open upgrades a store of an older version. When the disk does not permit that, the store is read-only.
func Open(path string, opts Options) (*Store, error) {
	opts.LockTimeout = cmp.Or(opts.LockTimeout, 2*time.Second)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	s := &Store{path: path, opts: opts, commit: (*bolt.Tx).Commit}
	if err := s.openFile(); err != nil {
		return nil, err
	}
	if s.noChecksums {
		if err := s.upgrade(); err != nil {
			return nil, err
		}
	}
	if s.blocked != nil {
		s.noteRefusal(s.blocked)
		return s, nil
	}
	if err := s.makeTables(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.readOnly {
		s.noteRefusal(s.onReadOnly())
	}
	return s, nil
}

// View implements store.Store.
func (s *Store) View(fn func(store.Reader) error) error {
	return s.view(func(tx *bolt.Tx) error { return fn(newReader(s, tx)) })
}

// Backup implements store.Store. bbolt reads the pages from the file, not through the mapping, so a backup does not add
// to resident memory.
func (s *Store) Backup(w io.Writer) error {
	return s.view(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// Size returns how many bytes of the file are in use, including free pages. The file itself is longer, because bbolt
// reserves space for growth. Size returns 0 when the store cannot be read.
func (s *Store) Size() (size int64) {
	// Ignore the error of a store that cannot be read: Size is for a metric.
	_ = s.view(func(tx *bolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size
}

// DropCaches returns the memory of pages that were read to the system. They stay in the page cache. The resident size
// of the process falls; a full scan had raised it by the size of the file.
func (s *Store) DropCaches() {
	// The transaction keeps bbolt from moving the mapping.
	_ = s.view(func(tx *bolt.Tx) error {
		dropMapped(tx.DB().Info().Data, uintptr(tx.Size()))
		return nil
	})
}

// Close implements store.Store. It waits for Views to end.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.dead.Load() != nil {
		// bbolt's Close would wait forever for a lock that the fault left held. Closing the descriptor unlocks the file for
		// other processes; the mapping ends with this process.
		return s.file.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.mirrorMeta(), s.db.Close())
}

// mirrorMeta writes the newest commit to both meta pages, so that damage of one page does not lose the commit.
func (s *Store) mirrorMeta() error {
	if !s.wrote || s.blocked != nil || s.failedTx != 0 {
		return nil
	}
	m, _, err := readMeta(s.file)
	if err != nil {
		return err
	}
	return m.mirror(s.file)
}

func (s *Store) view(fn func(*bolt.Tx) error) (err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	// Rollback reads nothing from the file, so it needs no guard.
	defer func() { _ = tx.Rollback() }()
	defer s.guard(debug.SetPanicOnFault(true), &err)
	return fn(tx)
}

// begin starts a transaction on the current db. The caller holds s.mu or s.write.
func (s *Store) begin(writable bool) (tx *bolt.Tx, err error) {
	if dead := s.dead.Load(); dead != nil {
		return nil, dead
	}
	defer func() {
		// Only reading the meta pages can fault here, and in that case bbolt keeps its locks.
		if d := (*store.DamagedError)(nil); errors.As(err, &d) {
			s.dead.Store(d)
		}
	}()
	defer s.guardAll(debug.SetPanicOnFault(true), &err)
	tx, err = s.db.Begin(writable)
	if errors.Is(err, bolterrors.ErrDatabaseReadOnly) {
		return nil, s.onReadOnly()
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", s.path, err)
	}
	return tx, nil
}

func (s *Store) onReadOnly() error {
	return s.unavailable(errors.New("it is on a read-only file system"))
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
	return s.finish(tx)
}
