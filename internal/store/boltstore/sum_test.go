package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

// leafOf finds the leaf page that contains a text. It returns the offsets of the page and of the text.
func leafOf(t *testing.T, b []byte, text string) (page, at int) {
	t.Helper()
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(text))
		if i < 0 {
			t.Fatalf("no page has %q", text)
		}
		at = from + i
		page = at / testPage * testPage
		if order.Uint64(b[page:]) == uint64(page/testPage) && order.Uint16(b[page+8:]) == flagLeaf {
			return page, at
		}
		from = at + 1
	}
}

// oneCommitStore creates a store in one commit, so that it has no stale pages. It has 100 record sets in several leaf
// pages, 20 changes and one object.
func oneCommitStore(t *testing.T) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	if err := store.Init(s); err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, s, func(w store.Writer) error {
		for i := range 100 {
			key := fmt.Appendf(nil, "set%02d0", i)
			err := errors.Join(w.Put(store.Sets, key, bytes.Repeat(key, 30)),
				w.Put(store.Journal, key, fmt.Appendf(nil, "change %d", i)))
			if err != nil {
				return err
			}
		}
		return w.Put(store.Objects, []byte("object"), []byte("value of the object"))
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, readFile(t, path)
}

// TestAimedDamage makes damage that a check of bbolt's structure cannot detect, because the structure stays valid.
func TestAimedDamage(t *testing.T) {
	path, intact := oneCommitStore(t)
	element := func(b []byte, page, i int) []byte { return b[page+headerSize+i*elementSize:] }
	tests := []struct {
		name, reason string
		damage       func(t *testing.T, b []byte)
	}{
		{"a value", "the checksum of row \"set420\" of table sets is wrong", func(t *testing.T, b []byte) {
			_, at := leafOf(t, b, "set420set420")
			b[at+8] ^= 1
		}},
		{"a key", "of table sets is wrong", func(t *testing.T, b []byte) {
			_, at := leafOf(t, b, "set420set420")
			b[at+5] ^= 1 // the key is still between set410 and set430
		}},
		{"the last row of a leaf", "rows are missing", func(t *testing.T, b []byte) {
			page, _ := leafOf(t, b, "set100set100")
			order.PutUint16(b[page+10:], order.Uint16(b[page+10:])-1)
		}},
		{"all rows of a leaf", "rows are missing", func(t *testing.T, b []byte) {
			page, _ := leafOf(t, b, "set420set420")
			order.PutUint16(b[page+10:], 0)
		}},
		{"the last leaf of a branch", "rows are missing", func(t *testing.T, b []byte) {
			page := branchOver(t, b, "set420set420")
			order.PutUint16(b[page+10:], order.Uint16(b[page+10:])-1)
		}},
		{"the key of a branch", "its first key is not the one", func(t *testing.T, b []byte) {
			page := branchOver(t, b, "set420set420")
			e := element(b, page, 1)
			key := e[order.Uint32(e):]
			key[4]-- // set420 becomes set415, which is still after all keys of the previous leaf
			key[5] = '5'
		}},
		{"the border of key and value", "of table objects is wrong", func(t *testing.T, b []byte) {
			page, at := leafOf(t, b, "objectvalue")
			for i := page; i < at; i++ {
				if order.Uint32(b[i:]) == 6 && order.Uint32(b[i+4:]) == 19+sumSize {
					order.PutUint32(b[i:], 7)
					order.PutUint32(b[i+4:], 18+sumSize)
					return
				}
			}
			t.Fatal("no element of the object")
		}},
		{"the name of a table", "there is no table \"setz\"", func(t *testing.T, b []byte) {
			root := newestRoot(t, path)
			b[root+bytes.Index(b[root:], []byte("sets"))+3] = 'z'
		}},
		{"the last table", "table zones is missing", func(t *testing.T, b []byte) {
			root := newestRoot(t, path)
			order.PutUint16(b[root+10:], order.Uint16(b[root+10:])-1)
		}},
		{"all tables", "is missing", func(t *testing.T, b []byte) {
			order.PutUint16(b[newestRoot(t, path)+10:], 0)
		}},
		{"a row that poses as a table", "has type 0x1", func(t *testing.T, b []byte) {
			page, _ := leafOf(t, b, "set420set420")
			order.PutUint32(element(b, page, 0), bucketElement)
		}},
		{"an inline page with a number", "the page of table", func(t *testing.T, b []byte) {
			root := newestRoot(t, path)
			at := root + bytes.Index(b[root:], []byte("objects")) + len("objects")
			order.PutUint64(b[at+bucketHeader:], 5)
		}},
		{"a format that claims to be of an older version", "is wrong", func(t *testing.T, b []byte) {
			page := newestRoot(t, path)
			for i := page; i < page+testPage-8; i++ {
				if order.Uint32(b[i:]) == 6 && order.Uint32(b[i+4:]) == 1+sumSize {
					order.PutUint32(b[i+4:], 1)
					return
				}
			}
			t.Fatal("no element of the format")
		}},
		{"the sum of a table", "the sum over its", func(t *testing.T, b []byte) {
			root := newestRoot(t, path)
			b[root+bytes.Index(b[root:], []byte("objects"))+len("objects")+8] ^= 1
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := bytes.Clone(intact)
			tt.damage(t, b)
			if bytes.Equal(b, intact) {
				t.Fatal("nothing was damaged")
			}
			path := filepath.Join(t.TempDir(), "store.db")
			writeFile(t, path, b)
			wantDamaged(t, path, tt.reason)
		})
	}
}

// newestRoot returns the offset of the page that lists all tables.
func newestRoot(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, _, err := readMeta(f)
	if err != nil {
		t.Fatal(err)
	}
	return int(m.root) * testPage
}

// branchOver finds the branch page above the leaf with a text.
func branchOver(t *testing.T, b []byte, text string) int {
	t.Helper()
	leaf, _ := leafOf(t, b, text)
	for page := 2 * testPage; page < len(b); page += testPage {
		if order.Uint64(b[page:]) != uint64(page/testPage) || order.Uint16(b[page+8:]) != flagBranch {
			continue
		}
		for i := range int(order.Uint16(b[page+10:])) {
			if order.Uint64(b[page+headerSize+i*elementSize+8:]) == uint64(leaf/testPage) {
				return page
			}
		}
	}
	t.Fatal("no branch page refers to the leaf")
	return 0
}

// TestHistoryDamaged damages a row of the table Journal. The served zones do not need it: the store must open, be
// readable, refuse changes, and report the damage.
func TestHistoryDamaged(t *testing.T) {
	path, b := oneCommitStore(t)
	at := bytes.Index(b, []byte("set420change"))
	b[at+10] ^= 1
	writeFile(t, path, b)
	s := open(t, path)
	defer s.Close()
	for _, err := range []error{s.Damage(), s.Refusal(), s.Update(func(store.Writer) error { return nil })} {
		if err == nil || !strings.Contains(err.Error(), `row "set420" of table journal`) ||
			!strings.Contains(err.Error(), "restore a backup") {
			t.Errorf("the report is %v", err)
		}
	}
	if !errors.Is(s.Refusal(), store.ErrUnavailable) {
		t.Errorf("Refusal = %v, want ErrUnavailable", s.Refusal())
	}
	got := allRows(t, s)
	if len(got[store.Sets]) != 100 || got[store.Journal]["set420"] != "" || got[store.Journal]["set430"] == "" {
		t.Errorf("%d record sets, changes %q and %q", len(got[store.Sets]), got[store.Journal]["set420"],
			got[store.Journal]["set430"])
	}
}

// TestDamagedInUse changes a row in the file of an open store. Reading the row, overwriting it, and a scrub must report
// the damage; the other rows must be usable.
func TestDamagedInUse(t *testing.T) {
	path, b := oneCommitStore(t)
	s := open(t, path)
	defer s.Close()
	if rows, err := s.Scrub(); err != nil || rows < 200 || s.Damage() != nil {
		t.Fatalf("Scrub of an intact store = %d, %v, damage %v", rows, err, s.Damage())
	}
	_, at := leafOf(t, b, "set420set420")
	if err := flip(path, int64(at+20)); err != nil {
		t.Fatal(err)
	}
	use := map[string]func() error{
		"Get": func() error {
			return s.View(func(r store.Reader) error { r.Get(store.Sets, []byte("set420")); return nil })
		},
		"Scan": func() error {
			return s.View(func(r store.Reader) error {
				r.Scan(store.Sets, nil, nil, func(_, _ []byte) bool { return true })
				return nil
			})
		},
		"ScanBack": func() error {
			return s.View(func(r store.Reader) error {
				r.ScanBack(store.Sets, nil, nil, func(_, _ []byte) bool { return true })
				return nil
			})
		},
		"Put": func() error {
			return s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("set420"), nil) })
		},
		"Delete": func() error {
			return s.Update(func(w store.Writer) error { return w.Delete(store.Sets, []byte("set420")) })
		},
		"Scrub": func() error { _, err := s.Scrub(); return err },
	}
	for name, fn := range use {
		err := fn()
		if !errors.As(err, new(*store.DamagedError)) || !strings.Contains(err.Error(), `row "set420" of table sets`) {
			t.Errorf("%s = %v, want a DamagedError that names the row", name, err)
		}
	}
	if s.Damage() == nil {
		t.Error("Damage = nil")
	}
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Objects, []byte("other"), nil) })
}

// TestScrubBesideCommits checks that a scrub reads one state while commits continue.
func TestScrubBesideCommits(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	done := make(chan error)
	go func() {
		for range 20 {
			if _, err := s.Scrub(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for n := uint64(1); ; n++ {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
			mustUpdate(t, s, func(w store.Writer) error { return writeNumber(w, n) })
		}
	}
}

// TestCheck verifies files that no server uses.
func TestCheck(t *testing.T) {
	path, b := oneCommitStore(t)
	if rows, err := Check(path); err != nil || rows < 200 {
		t.Errorf("Check = %d, %v", rows, err)
	}
	_, at := leafOf(t, b, "set420set420")
	if err := flip(path, int64(at+20)); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(path); !errors.As(err, new(*store.DamagedError)) || !strings.Contains(err.Error(), "set420") {
		t.Errorf("Check of a damaged store = %v", err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(path); err == nil {
		t.Error("Check of an empty file = nil")
	}
	if _, err := Check(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Check of no file = %v", err)
	}
}
