package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// plainFormat is the format of stores whose rows have no checksums. Open upgrades them.
const plainFormat = 1

// upgradeBytes is how much one commit of an upgrade writes. It limits the memory of an upgrade.
const upgradeBytes = 8 << 20

// upgrade copies a store of an older version to a new file, with checksums, and renames that file over the old one. A
// crash leaves the old file or the new one. When the disk does not take the copy, the store stays as it is and is
// read-only: its zones are served, and the next start tries again.
func (s *Store) upgrade() error {
	s.opts.Log.Info("upgrading the store: its rows get checksums", "file", s.path)
	copied := s.path + ".new"
	_ = os.Remove(copied) // left by an interrupted upgrade
	err := s.copyTo(copied)
	if err == nil {
		err = os.Rename(copied, s.path)
	}
	if err != nil {
		_ = os.Remove(copied)
		if d := (*store.DamagedError)(nil); errors.As(err, &d) {
			return errors.Join(err, s.Close())
		}
		s.blocked = s.unavailable(fmt.Errorf("it is of an older version and could not be upgraded: %w; "+
			"make the disk writable, with space for a copy of the file, and start the server again", err))
		return nil
	}
	if err := errors.Join(syncDir(filepath.Dir(s.path)), s.db.Close()); err != nil {
		return err
	}
	if err := s.openFile(); err != nil {
		return err
	}
	s.opts.Log.Info("upgraded the store", "file", s.path)
	return nil
}

// copyTo writes all rows to a new store. The store is durable when copyTo returns nil.
func (s *Store) copyTo(path string) error {
	to, err := Open(path, s.opts)
	if err != nil {
		return err
	}
	to.db.NoSync = true // a partial copy is useless; Close syncs all of it
	err = s.view(func(tx *bolt.Tx) error {
		r := newReader(s, tx)
		for _, t := range store.Tables {
			if openBucket(tx, t) == nil {
				continue
			}
			if err := copyTable(to, r, t); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, to.Close())
}

// copyTable copies the rows of a table, in several commits.
func copyTable(to *Store, r *reader, t store.Table) error {
	var from []byte
	for more := true; more; {
		more = false
		err := to.Update(func(w store.Writer) (err error) {
			size := 0
			r.Scan(t, nil, from, func(key, value []byte) bool {
				if size > upgradeBytes {
					from, more = key, true
					return false
				}
				if t == store.Meta && string(key) == string(store.KeyFormat) {
					value = []byte{store.Format}
				}
				size += len(key) + len(value)
				err = w.Put(t, key, value)
				return err == nil
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
