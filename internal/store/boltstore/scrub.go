package boltstore

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// ErrNoChecksums reports that the rows of a store cannot be verified. Its pages are intact.
var ErrNoChecksums = errors.New("its rows have no checksums: it is of an older version; start this version on it once")

// Scrub reads the whole file from the disk, verifies every page and the checksums of all rows and tables, and returns
// the number of rows. It reports damage as a *store.DamagedError. The store can be used during a scrub.
func (s *Store) Scrub() (rows int, err error) {
	// Between two commits, the meta page and the transaction have the same state. The transaction keeps the pages of that
	// state from being overwritten.
	s.write.Lock()
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, torn, err := readMeta(s.file)
	tx, beginErr := s.begin(false)
	s.write.Unlock()
	if beginErr != nil {
		return 0, beginErr
	}
	defer func() { _ = tx.Rollback() }()
	dropMapped(s.db.Info().Data, uintptr(tx.Size()))
	dropCached(s.file)
	var found checked
	if err == nil {
		found, err = checkPages(s.file, m)
	}
	found.torn = torn
	return found.rows, s.scrubbed(found, err)
}

// scrubbed returns the result of a check as one error, and records damage.
func (s *Store) scrubbed(found checked, err error) error {
	if err == nil {
		err = found.err()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoChecksums):
		return s.unavailable(err)
	}
	d := &store.DamagedError{Path: s.path, Err: err}
	s.noteDamage(d)
	return d
}

// err returns the damage that does not prevent the store from being opened.
func (c checked) err() error {
	switch {
	case c.noChecksums:
		return ErrNoChecksums
	case c.journal != nil:
		return c.journal
	case c.torn:
		return errors.New(tornMeta)
	}
	return nil
}

// Check verifies the store or backup in the file at path, like Scrub. No server may use the file. Check writes nothing.
func Check(path string) (rows int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := lock(f, false, 2*time.Second); err != nil {
		return 0, err
	}
	found, err := checkFile(f)
	if err == nil && found.empty {
		err = errors.New("it is empty")
	}
	if err == nil {
		err = found.err()
	}
	switch {
	case errors.Is(err, ErrNoChecksums):
		err = fmt.Errorf("store file %s cannot be verified: %w", path, err)
	case err != nil && !errors.As(err, new(*store.DamagedError)):
		err = &store.DamagedError{Path: path, Err: err}
	}
	return found.rows, err
}
