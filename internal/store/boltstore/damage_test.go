package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// sample creates a store with tables of several pages, a value that overflows, and free pages. It returns the bytes of
// the file.
func sample(t *testing.T) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	for round := range 3 {
		mustUpdate(t, s, func(w store.Writer) error {
			for i := range 500 {
				if err := w.Put(store.Sets, fmt.Appendf(nil, "%05d", i*(round+1)), make([]byte, 100)); err != nil {
					return err
				}
			}
			return w.Put(store.Objects, []byte("big"), make([]byte, 10_000))
		})
	}
	size := s.Size()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The tests do not need the space that bbolt reserved for growth.
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path, readFile(t, path)
}

func mustUpdate(t testing.TB, s *Store, fn func(store.Writer) error) {
	t.Helper()
	if err := s.Update(fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantDamaged opens the file and checks that Open refuses it and does not change it.
func wantDamaged(t *testing.T, path, reason string) {
	t.Helper()
	before := readFile(t, path)
	s, err := Open(path, Options{})
	var damaged *store.DamagedError
	if !errors.As(err, &damaged) {
		if err == nil {
			err = s.Close()
		}
		t.Fatalf("Open = %v, want a DamagedError", err)
	}
	if damaged.Path != path || !strings.Contains(err.Error(), reason) {
		t.Errorf("Open = %q, want it to name %s and %q", err, path, reason)
	}
	if !bytes.Equal(before, readFile(t, path)) {
		t.Error("Open changed the damaged file")
	}
}

func TestOpenDamaged(t *testing.T) {
	path, intact := sample(t)
	meta, err := func() (meta, error) {
		f, err := os.Open(path)
		if err != nil {
			return meta{}, err
		}
		defer f.Close()
		m, _, err := readMeta(f)
		return m, err
	}()
	if err != nil {
		t.Fatal(err)
	}
	root, free := int(meta.root)*4096, int(meta.freelist)*4096
	tests := []struct {
		name, reason string
		damage       func(b []byte) []byte
	}{
		{"text", "ends inside", func([]byte) []byte { return []byte("this is not a store") }},
		{"long text", "magic", func([]byte) []byte { return bytes.Repeat([]byte("not a store "), 5000) }},
		{"zeros", "magic", func(b []byte) []byte { return make([]byte, len(b)) }},
		{"one byte", "ends inside", func(b []byte) []byte { return b[:1] }},
		{"first page only", "truncated", func(b []byte) []byte { return b[:4096] }},
		{"half", "truncated", func(b []byte) []byte { return b[:len(b)/2] }},
		{"one byte short", "truncated", func(b []byte) []byte { return b[:len(b)-1] }},
		{"both checksums", "checksum", func(b []byte) []byte { b[70] ^= 1; b[4096+70] ^= 1; return b }},
		{"format version", "file format 9", func(b []byte) []byte { b[20], b[4096+20] = 9, 9; return b }},
		{"root page type", "type 0x4", func(b []byte) []byte { b[root+8] = 4; return b }},
		{"root page id", "says it is page", func(b []byte) []byte { b[root]++; return b }},
		{"element count", "elements", func(b []byte) []byte { b[root+10], b[root+11] = 0xff, 0xff; return b }},
		{"element position", "points outside", func(b []byte) []byte { b[root+16+7] = 0x7f; return b }},
		{"table name", "there is no table \"zournal\"",
			func(b []byte) []byte { copy(b[root+bytes.Index(b[root:], []byte("journal")):], "z"); return b }},
		{"page used twice", "used twice", func(b []byte) []byte {
			copy(b[root+bytes.Index(b[root:], []byte("sets"))+4:], b[root:root+8])
			return b
		}},
		{"overflow", "past the end", func(b []byte) []byte { b[root+14] = 1; return b }},
		{"free page in use", "is in use", func(b []byte) []byte { copy(b[free+16:], b[root:root+8]); return b }},
		{"free page twice", "is in use", func(b []byte) []byte { copy(b[free+24:free+32], b[free+16:]); return b }},
		{"free list too long", "does not fit", func(b []byte) []byte { b[free+10], b[free+11] = 0xff, 0xfe; return b }},
		{"free list type", "not the list", func(b []byte) []byte { b[free+8] = 2; return b }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			writeFile(t, path, tt.damage(bytes.Clone(intact)))
			wantDamaged(t, path, tt.reason)
		})
	}
}

// TestOpenRandomDamage writes random bytes to random pages. Open must refuse the file, or the store must have all its
// rows and work. Open must never crash, and must never change a file that it refuses.
func TestOpenRandomDamage(t *testing.T) {
	path, intact := sample(t)
	s := open(t, path)
	want := allRows(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	path = filepath.Join(t.TempDir(), "store.db")
	refused := 0
	for range 400 {
		b := bytes.Clone(intact)
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(len(b))
			for i := at; i < min(at+1<<rnd.IntN(13), len(b)); i++ {
				b[i] = byte(rnd.Uint32())
			}
		}
		writeFile(t, path, b)
		s, err := Open(path, Options{})
		if err != nil {
			refused++
			wantDamaged(t, path, "")
			continue
		}
		if !allRows(t, s).equal(want, store.Tables...) {
			t.Error("rows were lost or changed without a report")
		}
		use(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if refused < 100 {
		t.Errorf("refused %d of 400 damaged files; the check does not read the pages", refused)
	}
}

// use reads and writes all parts of the store.
func use(t *testing.T, s *Store) {
	t.Helper()
	err := s.View(func(r store.Reader) error {
		for _, table := range store.Tables {
			r.Scan(table, nil, nil, func(_, v []byte) bool { return bytes.Count(v, []byte{0}) >= 0 })
			r.ScanBack(table, nil, nil, func(_, v []byte) bool { return bytes.Count(v, []byte{0}) >= 0 })
		}
		return nil
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	mustUpdate(t, s, func(w store.Writer) error {
		for i := range 100 {
			if err := w.Put(store.Sets, fmt.Appendf(nil, "%05d", i*17), make([]byte, 120)); err != nil {
				return err
			}
		}
		return nil
	})
	mustCheck(t, s)
}

// mustCheck runs bbolt's own consistency check.
func mustCheck(t *testing.T, s *Store) {
	t.Helper()
	err := s.view(func(tx *bolt.Tx) error {
		var errs []error
		for err := range tx.Check() {
			// A list of free pages that lost some pages is harmless, and TestOpenRandomDamage creates such lists.
			if !strings.Contains(err.Error(), "unreachable unfreed") {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatalf("bbolt's check: %v", err)
	}
}

// TestOpenTornMeta checks that a power cut during the write of a meta page is not damage: the other meta page has the
// previous commit.
func TestOpenTornMeta(t *testing.T) {
	for page := range 2 {
		path, b := sample(t)
		copy(b[page*4096:], make([]byte, 4096))
		writeFile(t, path, b)
		s := open(t, path)
		use(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	writeFile(t, path, nil)
	s := open(t, path)
	use(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenMode(t *testing.T) {
	path, _ := sample(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode of the file = %v, want 0600", got)
	}
	if _, err := Open(filepath.Dir(path), Options{}); err == nil {
		t.Error("Open of a directory returned nil")
	}
}

// TestOpenWritesNothing checks that opening and closing an intact store changes no byte of the file.
func TestOpenWritesNothing(t *testing.T) {
	path, before := sample(t)
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, readFile(t, path)) {
		t.Error("Open and Close changed the file")
	}
}

func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	_, err := Open(path, Options{LockTimeout: 1})
	want := fmt.Sprintf("open store: another nameplane serve is using %s (process %d); "+
		"stop it, or start with another --data directory",
		path, os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("second Open = %v, want %s", err, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTruncatedInUse truncates the file while it is mapped: then reading is a bus error. The View or Update must return
// it as an error, wherever the fault occurs, but must not swallow a panic of the caller.
func TestTruncatedInUse(t *testing.T) {
	path, _ := sample(t)
	s := open(t, path)
	var damaged *store.DamagedError
	err := s.View(func(r store.Reader) error {
		held := r.Get(store.Objects, []byte("big"))
		if err := os.Truncate(path, 2*4096); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, c := range held {
			sum += int(c)
		}
		return fmt.Errorf("read the value after the file was truncated: %d", sum)
	})
	if !errors.As(err, &damaged) {
		t.Errorf("View that reads a slice = %v, want a DamagedError", err)
	}
	err = s.View(func(r store.Reader) error {
		r.Scan(store.Sets, nil, nil, func(_, _ []byte) bool { return true })
		return nil
	})
	if !errors.As(err, &damaged) {
		t.Errorf("View that scans = %v, want a DamagedError", err)
	}
	err = s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("k"), nil) })
	if !errors.As(err, &damaged) {
		t.Errorf("Update = %v, want a DamagedError", err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		// Now even the meta pages are missing, and bbolt faults while it holds its locks.
		if err := s.View(func(store.Reader) error { return nil }); !errors.As(err, &damaged) {
			t.Errorf("View without meta pages = %v, want a DamagedError", err)
		}
		if err := s.Update(func(store.Writer) error { return nil }); !errors.As(err, &damaged) {
			t.Errorf("Update without meta pages = %v, want a DamagedError", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// TestFaultInCommit checks a file that breaks during a commit. There must be no further commits, but Views must work,
// and Close must not wait for the writer lock that bbolt holds.
func TestFaultInCommit(t *testing.T) {
	path, _ := sample(t)
	s := open(t, path)
	s.commit = func(*bolt.Tx) error { panic("page 7 already freed") }
	for range 2 {
		err := s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("new"), nil) })
		var damaged *store.DamagedError
		if !errors.As(err, &damaged) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Update = %v, want a DamagedError that is ErrUnavailable", err)
		}
		s.commit = (*bolt.Tx).Commit
	}
	err := s.View(func(r store.Reader) error {
		if diff := cmp.Diff([]byte(nil), r.Get(store.Sets, []byte("new"))); diff != "" {
			t.Errorf("the failed commit is visible (-want +got):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Errorf("View = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}
