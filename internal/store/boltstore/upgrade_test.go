//go:build linux

package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/internal/store"
)

// plainStore creates a store like versions before checksums, and returns its rows.
func plainStore(t *testing.T, path string, sets int) rows {
	t.Helper()
	db, err := bolt.Open(path, 0o600, boltOptions())
	if err != nil {
		t.Fatal(err)
	}
	model := rows{}
	err = db.Update(func(tx *bolt.Tx) error {
		put := func(table store.Table, key, value string) error {
			b, err := tx.CreateBucketIfNotExists([]byte(table))
			if err != nil {
				return err
			}
			if model[table] == nil {
				model[table] = map[string]string{}
			}
			model[table][key] = value
			return b.Put([]byte(key), []byte(value))
		}
		for _, table := range store.Tables {
			if err := put(table, "row", "of "+string(table)); err != nil {
				return err
			}
		}
		for i := range sets {
			if err := put(store.Sets, fmt.Sprintf("set%06d", i), strings.Repeat("v", i%50)); err != nil {
				return err
			}
		}
		// The row of owners is present, so that store.Init does not read the rows of this test as zones.
		return errors.Join(put(store.Meta, "format", "\x01"), put(store.Meta, "secret", strings.Repeat("s", 32)),
			put(store.Meta, "owners", "\x01"))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return model
}

// TestUpgrade opens a store of a version without checksums. It must have all its rows, and damage must be detected from
// then on.
func TestUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	model := plainStore(t, path, 20_000)
	if _, err := Check(path); !errors.Is(err, ErrNoChecksums) || errors.As(err, new(*store.DamagedError)) {
		t.Errorf("Check = %v, want ErrNoChecksums", err)
	}
	writeFile(t, path+".new", []byte("of an upgrade that was cut off"))
	s := open(t, path)
	model[store.Meta]["format"] = string([]byte{store.Format})
	if !allRows(t, s).equal(model, store.Tables...) {
		t.Error("the upgraded store has different rows")
	}
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("new"), nil) })
	if err := errors.Join(check(s), store.Init(s), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("the copy is still there: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	b := readFile(t, path)
	_, at := leafOf(t, b, "set012345")
	b[at+15] ^= 1
	writeFile(t, path, b)
	wantDamaged(t, path, "set012345")
}

// TestUpgradeLater checks that a store that cannot be upgraded, because the disk is full or read-only, can be read. The
// next Open must upgrade it when the disk permits.
func TestUpgradeLater(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: cannot mount a file system to fill")
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "store.db")
	model := plainStore(t, path, 60_000)
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 24<<20), 0o600) // fills the disk
	before := readFile(t, path)
	remount := func(flags uintptr) {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, disk := range []uintptr{0, unix.MS_RDONLY} {
		remount(disk)
		s := open(t, path)
		if !allRows(t, s).equal(model, store.Tables...) {
			t.Error("the store has different rows")
		}
		err := s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("new"), nil) })
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "could not be upgraded") ||
			s.Refusal() == nil {
			t.Errorf("Update = %v, Refusal = %v", err, s.Refusal())
		}
		if err := errors.Join(store.Init(s), s.Close()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, readFile(t, path)) {
			t.Error("the store was changed")
		}
	}
	remount(0)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	defer s.Close()
	model[store.Meta]["format"] = string([]byte{store.Format})
	if !allRows(t, s).equal(model, store.Tables...) || s.Refusal() != nil {
		t.Errorf("the upgraded store has different rows, or refuses changes: %v", s.Refusal())
	}
}

// TestWritableAgain checks that a store opened on a read-only disk takes changes once the disk is writable.
func TestWritableAgain(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: cannot remount a file system")
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "store.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	defer s.Close()
	put := func() error {
		return s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("k"), nil) })
	}
	if err := put(); !errors.Is(err, store.ErrUnavailable) || s.Refusal() == nil {
		t.Errorf("Update on a read-only disk = %v, Refusal = %v", err, s.Refusal())
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if err := put(); err != nil || s.Refusal() != nil {
		t.Errorf("Update on a disk that is writable again = %v, Refusal = %v", err, s.Refusal())
	}
	if count(s) != 1 {
		t.Error("the row is missing")
	}
}
