//go:build linux

package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/internal/store"
)

// fillUp writes rows until the store refuses. It returns the number of commits and the error.
func fillUp(s *Store, limit int) (int, error) {
	for n := range limit {
		err := s.Update(func(w store.Writer) error {
			for i := range 50 {
				if err := w.Put(store.Sets, rowKey(n, i), make([]byte, 1000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return limit, errors.New("the store took everything")
}

func rowKey(n, i int) []byte { return fmt.Appendf(nil, "%06d/%02d", n, i) }

// checkFull checks a store that has refused a commit. It must have everything that was committed and nothing that was
// refused, and must keep refusing in the same manner without changing.
func checkFull(s *Store, taken int, refusal error) error {
	for range 3 {
		if !errors.Is(refusal, store.ErrUnavailable) {
			return fmt.Errorf("refused with %w, want ErrUnavailable", refusal)
		}
		if rows := count(s); rows != taken*50 {
			return fmt.Errorf("%d rows after %d commits, want %d", rows, taken, taken*50)
		}
		refusal = s.Update(func(w store.Writer) error {
			return w.Put(store.Objects, []byte("large"), make([]byte, 4<<20))
		})
	}
	return check(s)
}

func count(s *Store) (rows int) {
	err := s.View(func(r store.Reader) error {
		r.Scan(store.Sets, nil, nil, func(_, _ []byte) bool { rows++; return true })
		return nil
	})
	if err != nil {
		return -1
	}
	return rows
}

// check runs bbolt's complete check: a failed commit must not lose even a free page.
func check(s *Store) error {
	return s.view(func(tx *bolt.Tx) error {
		var errs []error
		for err := range tx.Check() {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// TestDiskFull fills a small file system. Mounting one requires root; for other users, TestFileSizeLimit tests the
// same.
func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: cannot mount a file system to fill; TestFileSizeLimit tests the same")
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatalf("mount a tmpfs of 8 MB on %s: %v (root in a container needs CAP_SYS_ADMIN, "+
			"or run the tests as another user)", dir, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	writeFile(t, ballast, make([]byte, 1<<20))
	path := filepath.Join(dir, "store.db")
	s := open(t, path)
	taken, err := fillUp(s, 1000)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full disk: %v, want ENOSPC", err)
	}
	if err := checkFull(s, taken, err); err != nil {
		t.Fatal(err)
	}
	// The store can be opened while the disk is full,
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if rows := count(s); rows != taken*50 {
		t.Errorf("%d rows after opening on a full disk, want %d", rows, taken*50)
	}
	// and takes changes again when there is space.
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, rowKey(taken, 0), nil) })
	if rows := count(s); rows != taken*50+1 {
		t.Errorf("%d rows after there was space again, want %d", rows, taken*50+1)
	}
	if err := check(s); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	readOnlyDisk(t, dir, path, taken*50+1)
}

// readOnlyDisk opens the store on a read-only file system.
func readOnlyDisk(t *testing.T, dir, path string, rows int) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	defer s.Close()
	if got := count(s); got != rows {
		t.Errorf("%d rows on a read-only disk, want %d", got, rows)
	}
	err := s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("k"), nil) })
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("Update on a read-only disk = %v, want ErrUnavailable that says so", err)
	}
	if _, err := Open(filepath.Join(dir, "new.db"), Options{}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Open of a new store on a read-only disk = %v, want EROFS", err)
	}
}

var _ = addChild("limit", childLimit) // it needs Linux

// TestFileSizeLimit runs childLimit in a child, because the limit applies to a whole process.
func TestFileSizeLimit(t *testing.T) {
	out, err := child(t, "limit", filepath.Join(t.TempDir(), "store.db")).Output()
	if err != nil || string(out) != "ok" {
		t.Errorf("child: %v\n%s", err, out)
	}
}

// childLimit fills a store up to the file size limit of the process, and then raises the limit.
func childLimit(path string) {
	if err := limited(path); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	fmt.Print("ok")
}

func limited(path string) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	before := limit.Cur
	limit.Cur = 20 << 20
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	taken, refusal := fillUp(s, 1000)
	if err := checkFull(s, taken, refusal); err != nil {
		return err
	}
	limit.Cur = before
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := s.Update(func(w store.Writer) error { return w.Put(store.Sets, rowKey(taken, 0), nil) }); err != nil {
		return err
	}
	if rows := count(s); rows != taken*50+1 {
		return fmt.Errorf("%d rows after the limit was raised, want %d", rows, taken*50+1)
	}
	return errors.Join(check(s), s.Close())
}

// TestUndo checks a commit that fails after its meta page was written: Update fails, but the commit is in the file. No
// reader may see it, now or after a restart, and the store must continue without it.
func TestUndo(t *testing.T) {
	path, _ := sample(t)
	s := open(t, path)
	rows := count(s)
	add := func(key string) error {
		return s.Update(func(w store.Writer) error {
			for i := range 200 {
				if err := w.Put(store.Sets, fmt.Appendf(nil, "%s/%d", key, i), make([]byte, 100)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 3 {
		s.commit = func(tx *bolt.Tx) error { return errors.Join(tx.Commit(), syscall.EIO) }
		if err := add("failed"); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("Update = %v, want ErrUnavailable by EIO", err)
		}
		s.commit = (*bolt.Tx).Commit
		if got := count(s); got != rows {
			t.Fatalf("%d rows after the failed commit, want %d", got, rows)
		}
		for _, key := range []string{"a", "b"} {
			if err := add(key); err != nil {
				t.Fatalf("Update after the failed one: %v", err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, path)
		rows = count(s)
		if err := check(s); err != nil {
			t.Fatal(err)
		}
		err := s.View(func(r store.Reader) error {
			if r.Get(store.Sets, []byte("failed/0")) != nil || r.Get(store.Sets, []byte("b/199")) == nil {
				return errors.New("the failed commit is there, or a good one is not")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUndoLater checks that the store refuses Updates while a failed commit cannot be undone, and that the first Update
// after the undo succeeds.
func TestUndoLater(t *testing.T) {
	path, _ := sample(t)
	s := open(t, path)
	rows, file := count(s), s.file
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	s.commit = func(tx *bolt.Tx) error { return errors.Join(tx.Commit(), syscall.EIO) }
	s.file = readOnly // makes the undo fail
	for range 2 {
		err := s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("failed"), nil) })
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("Update = %v, want ErrUnavailable", err)
		}
	}
	s.commit, s.file = (*bolt.Tx).Commit, file
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("good"), nil) })
	if got := count(s); got != rows+1 {
		t.Errorf("%d rows, want %d", got, rows+1)
	}
	if err := errors.Join(check(s), s.Close()); err != nil {
		t.Error(err)
	}
}

// TestDropCaches reads a whole store, which makes it resident, and releases the memory.
func TestDropCaches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	const size = 32 << 20
	mustUpdate(t, s, func(w store.Writer) error {
		for i := range size / 1000 {
			if err := w.Put(store.Sets, rowKey(i, 0), make([]byte, 1000)); err != nil {
				return err
			}
		}
		return nil
	})
	s.DropCaches()
	start := residentFile(t)
	count(s)
	read := residentFile(t)
	s.DropCaches()
	end := residentFile(t)
	t.Logf("resident file pages: %d KB, after a scan of %d KB %d KB, after DropCaches %d KB",
		start>>10, s.Size()>>10, read>>10, end>>10)
	if read-start < size || end-start > size/10 {
		t.Errorf("resident file pages went from %d to %d to %d, want up by the size of the store and down again",
			start, read, end)
	}
	if rows := count(s); rows != size/1000 {
		t.Errorf("%d rows after DropCaches, want %d", rows, size/1000)
	}
}

// residentFile returns how many bytes of mapped files are resident in this process.
func residentFile(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var total, resident, shared int
	if _, err := fmt.Sscan(string(b), &total, &resident, &shared); err != nil {
		t.Fatal(err)
	}
	return shared * os.Getpagesize()
}
