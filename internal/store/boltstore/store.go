// Package boltstore keeps the tables of package store in one bbolt file.
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

// Options change how a store is opened. The zero value is what serve uses.
type Options struct {
	// LockTimeout is how long Open waits for another process to let go of the file; default 2s, which covers a
	// restart where the old process is still closing, and is short enough for a person to wait for.
	LockTimeout time.Duration

	Log *slog.Logger // default: none
}

// Store is a store.Store in one bbolt file. Besides what the contract says: after a fault in the middle of a commit
// (the file was damaged while in use) it refuses Updates until the file is opened again, so that it never writes to a
// damaged file; Views go on.
type Store struct {
	path string
	opts Options

	dead  atomic.Pointer[store.DamagedError] // set when a fault left bbolt's locks held: nothing may call it again
	state state

	write    sync.Mutex // held by Update and Close; guards what follows
	stuck    error      // why Updates are refused until the file is opened again
	doubt    int        // transaction that failed but is visible, and must be undone before the next one; 0: none
	readOnly bool       // the file is on a read-only file system
	wrote    bool       // there was a commit since the file was opened
	closed   bool

	mu    sync.RWMutex // guards what follows; reopen, which replaces it, holds write too, so Update reads it without mu
	db    *bolt.DB
	file  *os.File // db's own descriptor
	plain bool     // a store of an earlier build, which could not be upgraded: its rows have no checksums

	commit func(*bolt.Tx) error // (*bolt.Tx).Commit; tests put failures here that no file system gives on demand
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the file at path, and creates it when there is none. Open reports a file that is not an
// intact store as *store.DamagedError and leaves it as it is. Damage of the table Journal alone does not concern what is
// served: then the store can be read only. On a read-only file system, too, it can be read only, until a later Update
// finds that the file can be written.
//
// Open upgrades a store of an earlier build. When the disk does not let it, the store can be read only.
func Open(path string, opts Options) (*Store, error) {
	opts.LockTimeout = cmp.Or(opts.LockTimeout, 2*time.Second)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	s := &Store{path: path, opts: opts, commit: (*bolt.Tx).Commit}
	if err := s.openFile(); err != nil {
		return nil, err
	}
	if s.plain {
		if err := s.upgrade(); err != nil {
			return nil, err
		}
	}
	if s.stuck != nil {
		s.noteRefusal(s.stuck)
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

// Backup implements store.Store. bbolt reads the pages from the file, not through the mapping, so a backup does not
// count as resident memory.
func (s *Store) Backup(w io.Writer) error {
	return s.view(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// Size returns how many bytes of the file are in use, free pages included; the file itself is longer by what bbolt
// reserved for growth. Size returns 0 when the store cannot be read.
func (s *Store) Size() (size int64) {
	// A View of a store that cannot be read returns the error; a metric need not.
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

// Close implements store.Store. It waits for Views to end.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.dead.Load() != nil {
		// bbolt's Close would wait for ever for a lock that the fault left held. Closing the descriptor unlocks the file
		// for others; the mapping goes with the process.
		return s.file.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.mirrorMeta(), s.db.Close())
}

// mirrorMeta writes the newest commit into both meta pages, so that the damage of one does not lose it.
func (s *Store) mirrorMeta() error {
	if !s.wrote || s.stuck != nil || s.doubt != 0 {
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
