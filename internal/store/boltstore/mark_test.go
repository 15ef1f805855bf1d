package boltstore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// copyStore copies a store as it is, which is what kill -9 leaves of it.
func copyStore(t *testing.T, from string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	writeFile(t, path, readFile(t, from))
	if log, err := os.ReadFile(walPath(from)); err == nil {
		writeFile(t, walPath(path), log)
	}
	return path
}

// TestLostLog: a log that is gone after a crash is reported, and what is there is left as it is; when it is put back, or the
// operator does without it, the store opens.
func TestLostLog(t *testing.T) {
	other, _ := crashed(t)
	for _, test := range []struct {
		name string
		lose func(log string) error
		want string
	}{
		{"emptied", func(log string) error { return os.Truncate(log, 0) }, "is empty"},
		{"missing", os.Remove, "is missing"},
		{"zeros", func(log string) error { return os.WriteFile(log, make([]byte, testWAL), 0o600) }, "has no header"},
		{"text", func(log string) error { return os.WriteFile(log, []byte("discarded?"), 0o600) }, "has no header"},
		{"of another store", func(log string) error { return os.WriteFile(log, ended(t, other), 0o600) }, "is the log of another store"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path, _ := crashed(t)
			log := readFile(t, walPath(path))
			if err := test.lose(walPath(path)); err != nil {
				t.Fatal(err)
			}
			left, _ := os.ReadFile(walPath(path))
			wantDamaged(t, path, "its log "+walPath(path)+" "+test.want)
			wantDamaged(t, path, "echo discard > "+walPath(path))
			if now, _ := os.ReadFile(walPath(path)); !bytes.Equal(now, left) {
				t.Error("Open changed what is in the place of the log")
			}
			back := copyStore(t, path)
			writeFile(t, walPath(back), log)
			wantRows(t, back, 3)
			writeFile(t, walPath(path), []byte("discard\n"))
			wantRows(t, path, 0)
			wantRows(t, path, 0) // the word is still there, and nothing was written
			goOn(t, path, 1)
		})
	}
}

// ended is the log of a store, with a header that needs nothing.
func ended(t *testing.T, path string) []byte {
	t.Helper()
	path = copyStore(t, path)
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, walPath(path))
}

// wantRows opens a store, counts its rows and closes it.
func wantRows(t *testing.T, path string, want int) {
	t.Helper()
	s := open(t, path)
	defer s.Close()
	if got := len(contents(t, s)); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
}

// goOn writes a row to a store, has it crash, and wants to find so many.
func goOn(t *testing.T, path string, want int) {
	t.Helper()
	s := open(t, path)
	defer s.Close()
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("later"), []byte("v")) })
	wantRows(t, copyStore(t, path), want)
}

// TestCutAtMark cuts a store off before and after every commit of the file, and around every header of the log, from its making
// to its end: what is left always opens, with all that was acknowledged.
func TestCutAtMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	s.maxRound, s.maxPending = 1, 2 // a commit and a header for every other Update
	acknowledged, begun := 0, 0
	look := func(path string) {
		t.Helper()
		s := open(t, path)
		defer s.Close()
		if got := len(contents(t, s)); got < acknowledged || got > begun {
			t.Errorf("%d rows, want %d to %d", got, acknowledged, begun)
		}
	}
	cut := func() {
		t.Helper()
		look(copyStore(t, path))
		if s.wal != nil { // the next header is being written
			torn := copyStore(t, path)
			log := readFile(t, walPath(torn))
			copy(log[(s.wal.seq+1)%2*walSlot:][:walSlot], bytes.Repeat([]byte("torn"), walHeadSize/8))
			writeFile(t, walPath(torn), log)
			look(torn)
		}
	}
	s.commit = func(tx *bolt.Tx) error {
		cut()
		err := tx.Commit()
		cut()
		return err
	}
	put := func(key string) {
		mustUpdate(t, s, func(w store.Writer) error {
			cut() // the header of this round is there, and no entry of this Update
			begun++
			return w.Put(store.Sets, []byte(key), []byte("v"))
		})
		acknowledged++
		cut()
	}
	put("a")
	put("b")
	s.commit, s.maxRound = (*bolt.Tx).Commit, maxRound
	put("c")
	s.commit = func(tx *bolt.Tx) error {
		err := tx.Commit()
		cut()
		return err
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.wal = nil
	cut()
}

// TestCutInMaking: a crash while the log is made leaves a part of it, and nothing is lost with that.
func TestCutInMaking(t *testing.T) {
	for name, log := range map[string][]byte{
		"no octet": {},
		"a part":   make([]byte, 5000),
		"zeros":    make([]byte, testWAL),
		"a header": append([]byte(walMagic+"\x01"), make([]byte, testWAL)...)[:testWAL],
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			if err := open(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			writeFile(t, walPath(path), log)
			wantRows(t, path, 0)
			goOn(t, path, 1)
		})
	}
}

// TestMarkEnds: a store that was closed in order, and a backup, say nothing of a log.
func TestMarkEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("k"), []byte("v")) })
	backup := filepath.Join(t.TempDir(), "backup.db")
	var b bytes.Buffer
	if err := s.Backup(&b); err != nil {
		t.Fatal(err)
	}
	writeFile(t, backup, b.Bytes())
	alone := filepath.Join(t.TempDir(), "store.db") // what cp makes of a store in use
	writeFile(t, alone, readFile(t, path))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantDamaged(t, alone, "is missing")
	wantRows(t, backup, 1)
	goOn(t, backup, 2)
	for range 2 { // the second was closed without an Update
		if err := os.WriteFile(walPath(path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		wantRows(t, path, 1)
	}
	goOn(t, path, 2)
}

// TestCutLogInUse cuts the log of a store that is open. Closed in order, nothing is missing; after a crash, it is said.
func TestCutLogInUse(t *testing.T) {
	for _, size := range []int64{0, walSlot, walSlot + 600, walEntries} {
		for rounds := range 2 { // either header is the newest
			path := filepath.Join(t.TempDir(), "store.db")
			s := open(t, path)
			mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("k"), []byte("v")) })
			if err := s.drain(); err != nil {
				t.Fatal(err)
			}
			for range rounds {
				if err := s.checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Truncate(walPath(path), size); err != nil {
				t.Fatal(err)
			}
			mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("l"), []byte("v")) })
			after := copyStore(t, path)
			if err := os.Truncate(walPath(after), size); err != nil {
				t.Fatal(err)
			}
			wantDamaged(t, after, "its log "+walPath(after))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			wantRows(t, path, 2)
			goOn(t, path, 3)
		}
	}
}

// TestLogOfOlderVersion: neither the file nor its log says which log that is. After the first Update both do.
func TestLogOfOlderVersion(t *testing.T) {
	for _, rows := range []int{0, 1, 3} {
		path := older(t, rows)
		s := open(t, path)
		if got := len(contents(t, s)); got != rows {
			t.Fatalf("%d rows, want %d", got, rows)
		}
		mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("later"), []byte("v")) })
		after := copyStore(t, path)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantRows(t, copyStore(t, after), rows+1)
		if err := os.Truncate(walPath(after), 0); err != nil {
			t.Fatal(err)
		}
		wantDamaged(t, after, "is empty")
	}
}

// older makes a store as the version before the mark left it after a crash: with so many rows in the log, or a log that needs
// nothing.
func older(t *testing.T, rows int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := readMeta(f)
	if err != nil {
		t.Fatal(err)
	}
	w, err := createWAL(path, testWAL)
	if err != nil {
		t.Fatal(err)
	}
	if rows > 0 {
		if err := w.begin(readFile(t, path)[m.txid%2*testPage:][:walMetaSize]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rows {
		var log opLog
		log.add(opPut, store.Sets, []byte{byte(i)}, []byte("v"))
		if err := w.append(log.b, false); err != nil {
			t.Fatal(err)
		}
		w.keep(log.b)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	log := readFile(t, walPath(path))
	for slot := range 2 {
		clear(log[slot*walSlot+walSizeEnd : slot*walSlot+walIDEnd])
	}
	writeFile(t, walPath(path), log)
	return path
}
