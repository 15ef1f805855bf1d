package boltstore

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// The files in testdata/earlier were written by the last version that kept a log, commit 9fc176b. They have a zone with
// three addresses, created in four commits, and one object. The server was stopped (closed) or killed (killed); backup
// is the output of its Backup. Zeros at the ends of the files are left out.
const (
	earlierFile = 16805888 // original sizes of the files
	earlierLog  = 32 << 20
)

// earlier copies a store of the older version and its log, and returns its path. An empty name means no log.
func earlier(t *testing.T, file, log string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	unpack(t, file, path, earlierFile)
	if log != "" {
		unpack(t, log, logPath(path), earlierLog)
	}
	return path
}

func unpack(t *testing.T, name, path string, size int64) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "earlier", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, b)
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// wantEarlier opens a store of the older version and checks that it has all its rows, before and after an Update.
func wantEarlier(t *testing.T, path string) {
	t.Helper()
	want := []string{"zone example.org. serial ok", "set example.org. NS", "set example.org. SOA", "set n1.example.org. A",
		"set n2.example.org. A", "set n3.example.org. A", `change 4 of group 4 "create 3" with 2 sets`,
		`change 3 of group 3 "create 2" with 2 sets`, `change 2 of group 2 "create 1" with 2 sets`,
		`change 1 of group 1 "" with 2 sets`, "zones 7"}
	for range 2 {
		s := open(t, path)
		if diff := cmp.Diff(want, describeRows(t, s)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Meta, []byte("new"), []byte("row")) })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func describeRows(t *testing.T, s *Store) (rows []string) {
	t.Helper()
	err := s.View(func(r store.Reader) error {
		v := store.NewView(r)
		err := v.Zones(func(z zone.Zone) (bool, error) {
			serial := "ok"
			if z.Serial == 0 {
				serial = "missing"
			}
			rows = append(rows, fmt.Sprintf("zone %s serial %s", z.Name, serial))
			if err := v.RecordSets(z.ID, func(s zone.RecordSet) (bool, error) {
				rows = append(rows, fmt.Sprintf("set %s %s", s.Name, s.Type))
				return true, nil
			}); err != nil {
				return false, err
			}
			return true, v.Changes(z.ID, 0, func(c store.Change) (bool, error) {
				rows = append(rows, fmt.Sprintf("change %d of group %d %q with %d sets", c.Commit, c.Group, c.Note, len(c.Sets)))
				return true, c.Damage
			})
		})
		var quota map[string]int
		if err == nil {
			err = v.Object("quota", "p", &quota)
		}
		rows = append(rows, fmt.Sprintf("zones %d", quota["zones"]))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestEarlierClosed checks that a store that the older version closed cleanly opens, with or without its log. Open must
// remove a log that is not in use.
func TestEarlierClosed(t *testing.T) {
	for _, log := range []string{"", "closed.db-wal"} {
		path := earlier(t, "closed.db", log)
		wantEarlier(t, path)
		if _, err := os.Stat(logPath(path)); !os.IsNotExist(err) {
			t.Errorf("log %q was not removed: %v", log, err)
		}
	}
}

// TestEarlierBackup checks that a backup of the older version opens, although its bucket has the mark of the original's
// log.
func TestEarlierBackup(t *testing.T) {
	wantEarlier(t, earlier(t, "backup.db", ""))
}

// TestNotALog checks that Open keeps a file with the name of the log that is not a log.
func TestNotALog(t *testing.T) {
	path := earlier(t, "closed.db", "")
	writeFile(t, logPath(path), []byte("notes"))
	wantEarlier(t, path)
	if got := readFile(t, logPath(path)); string(got) != "notes" {
		t.Errorf("the file with the name of the log has %q", got)
	}
}

// TestEarlierInUse checks that Open refuses a store whose newest changes are in a log, says what to do, and changes
// nothing.
func TestEarlierInUse(t *testing.T) {
	tests := []struct {
		name, file, log string
		damage          func(log string) error
	}{
		{"killed", "killed.db", "killed.db-wal", nil},
		{"killed, by a build that set no mark", "closed.db", "killed.db-wal", nil},
		{"log missing", "killed.db", "", nil},
		{"log empty", "killed.db", "killed.db-wal", func(log string) error { return os.Truncate(log, 0) }},
		{"newest header damaged", "killed.db", "killed.db-wal", func(log string) error { return flip(log, 20) }},
		{"other header damaged", "killed.db", "killed.db-wal", func(log string) error { return flip(log, logSlot+20) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := earlier(t, tt.file, tt.log)
			if tt.damage != nil {
				if err := tt.damage(logPath(path)); err != nil {
					t.Fatal(err)
				}
			}
			before := readFile(t, path)
			log, _ := os.ReadFile(logPath(path)) // nil when there is no log
			s, err := Open(path, Options{})
			if err == nil {
				_ = s.Close()
			}
			want := "open store: an older version of nameplane did not shut down cleanly and left the newest changes of " +
				path + " in " + logPath(path) + ": start and stop that version once, then start this one"
			if err == nil || err.Error() != want {
				t.Errorf("Open = %v, want %s", err, want)
			}
			if now, _ := os.ReadFile(logPath(path)); !bytes.Equal(now, log) || !bytes.Equal(readFile(t, path), before) {
				t.Error("Open changed the files")
			}
		})
	}
}

// flip inverts one bit of the byte at an offset.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 4
	_, err = f.WriteAt(b, at)
	return err
}
