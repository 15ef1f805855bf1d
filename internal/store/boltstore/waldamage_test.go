package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

// crashed makes a store with some entries in its log, as a crash leaves it, and tells where they begin.
func crashed(t *testing.T) (path string, entries []int64) {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	for _, k := range []string{"a", "b", "c"} {
		err := s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte(k), []byte("value of "+k)) })
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, s.wal.off)
	}
	path = filepath.Join(t.TempDir(), "store.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := os.WriteFile(path+suffix, readFile(t, s.path+suffix), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path, append([]int64{walEntries}, entries...)
}

// TestDamagedLog: a log that no crash leaves like that is reported, and nothing is changed.
func TestDamagedLog(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(log []byte, entries []int64) []byte
		want   string // in the error; empty: it opens
		rows   int
	}{
		{"whole", func(log []byte, _ []int64) []byte { return log }, "", 3},
		{"cut behind the entries", func(log []byte, e []int64) []byte { return log[:e[3]+100] }, "has only", 0},
		{"cut in the second header", func(log []byte, _ []int64) []byte { return log[:4600] }, "has only", 0},
		{"first entry", func(log []byte, e []int64) []byte { log[e[0]+walEntryHead+3] ^= 1; return log }, "is damaged at octet 8192", 0},
		{"an entry's checksum", func(log []byte, e []int64) []byte { log[e[1]+5] ^= 1; return log }, "is damaged at octet", 0},
		{"last entry, which a crash may leave so", func(log []byte, e []int64) []byte { log[e[2]+walEntryHead+3] ^= 1; return log }, "", 2},
		{"made by an older version", func(log []byte, _ []int64) []byte {
			for slot := range 2 {
				clear(log[slot*walSlot+walHeadSize : slot*walSlot+walSizeEnd])
			}
			return log
		}, "", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			path, entries := crashed(t)
			log := test.damage(readFile(t, path+"-wal"), entries)
			if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
				t.Fatal(err)
			}
			before := readFile(t, path)
			s, err := Open(path, Options{})
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if got := len(contents(t, s)); got != test.rows {
					t.Errorf("%d rows, want %d", got, test.rows)
				}
				return
			}
			var damaged *store.DamagedError
			if !errors.As(err, &damaged) || damaged.Path != path || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a DamagedError with %q", err, test.want)
			}
			if !bytes.Equal(readFile(t, path), before) || !bytes.Equal(readFile(t, path+"-wal"), log) {
				t.Error("the files were changed")
			}
		})
	}
}

// TestFileGone: the log alone is no new store.
func TestFileGone(t *testing.T) {
	path, _ := crashed(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	log := readFile(t, walPath(path))
	for range 2 {
		if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "put the file back") {
			t.Fatalf("Open = %v", err)
		}
		if !bytes.Equal(readFile(t, walPath(path)), log) {
			t.Fatal("the log was changed")
		}
	}
}

// TestLogHeadersTellSize: both headers, whichever is the newest.
func TestLogHeadersTellSize(t *testing.T) {
	w, err := createWAL(filepath.Join(t.TempDir(), "store.db"), testWAL)
	if err != nil {
		t.Fatal(err)
	}
	defer w.f.Close()
	for range 2 {
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
	}
	log := readFile(t, w.f.Name())
	for slot := range 2 {
		if got := binary.LittleEndian.Uint64(log[slot*walSlot+walHeadSize:]); got != testWAL {
			t.Errorf("header %d tells of %d octets, want %d", slot, got, testWAL)
		}
	}
}
