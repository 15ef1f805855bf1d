package storetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

// goexit runs fn in a goroutine of its own and waits until it ends.
func goexit(fn func()) {
	var wg sync.WaitGroup
	wg.Go(fn)
	wg.Wait()
}

// testViewSeesOneMoment keeps a View open while Updates of many sizes commit. Pages that the View reads become free and
// could be used again, and the file grows.
func testViewSeesOneMoment(t *testing.T, open Opener) {
	s := openNew(t, open)
	const keys = 2000
	write := func(value string) {
		t.Helper()
		update(t, s, func(w store.Writer) {
			for i := range keys {
				put(t, w, store.Sets, fmt.Sprintf("%06d", i), value)
			}
		})
	}
	// 2000 keys take several pages, so the later commits must copy and free pages that the open View still reads.
	write("first")
	view(t, s, func(r store.Reader) {
		for i := range 5 {
			// The values grow with each commit, so a freed page of one size is not simply used again for the same
			// row.
			goexit(func() { write(fmt.Sprintf("later-%d-%0*d", i, 10*(i+1), i)) })
			n := 0
			r.Scan(store.Sets, nil, nil, func(k, v []byte) bool {
				n++
				if string(v) != "first" {
					t.Fatalf("after commit %d the open View sees %s=%s", i, k, v)
				}
				return true
			})
			if n != keys {
				t.Fatalf("after commit %d the open View sees %d keys, want %d", i, n, keys)
			}
		}
	})
	view(t, s, func(r store.Reader) {
		if got := r.Get(store.Sets, []byte("000000")); !bytes.HasPrefix(got, []byte("later-4")) {
			t.Errorf("a new View sees %q, want the last commit", got)
		}
	})
}

// testViewNeverWaits runs Views while an Update is inside its function. If they waited for the Update, this test would
// hang. The first View stays open, so that the file must grow while it is in use.
func testViewNeverWaits(t *testing.T, open Opener) {
	s := openNew(t, open)
	// The channels have no buffer: each send proves that the other side has reached that point.
	inside, leave, done := make(chan bool), make(chan bool), make(chan error)
	go func() {
		done <- s.Update(func(w store.Writer) error {
			for i := range 20000 {
				if err := w.Put(store.Sets, fmt.Appendf(nil, "%06d", i), make([]byte, 100)); err != nil {
					return err
				}
			}
			inside <- true
			<-leave
			return nil
		})
	}()
	<-inside
	view(t, s, func(r store.Reader) {
		wantContent(t, s, store.Sets)
		leave <- true
		if err := <-done; err != nil {
			t.Errorf("Update beside an open View: %v", err)
		}
		if got := content(r, store.Sets); len(got) != 0 {
			t.Errorf("the View that was open sees %d keys of the Update, want none", len(got))
		}
	})
	view(t, s, func(r store.Reader) {
		if got := content(r, store.Sets); len(got) != 20000 {
			t.Errorf("a new View sees %d keys, want 20000", len(got))
		}
	})
}

// testBatchesAreWhole writes one number to many keys and tables in each Update. A View must never see two numbers.
func testBatchesAreWhole(t *testing.T, open Opener) {
	s := openNew(t, open)
	write := func(n int) {
		update(t, s, func(w store.Writer) {
			for i := range 50 {
				put(t, w, store.Tables[i%len(store.Tables)], strconv.Itoa(i), strconv.Itoa(n))
			}
		})
	}
	write(0)
	stop := make(chan bool)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			// Commits are ordered: a reader that saw one commit must not see an older one later.
			for last := 0; ; {
				select {
				case <-stop:
					return
				default:
				}
				n := wholeBatch(t, s)
				if n < last {
					t.Errorf("saw commit %d after commit %d", n, last)
				}
				last = n
			}
		})
	}
	for n := range 100 {
		write(n)
	}
	close(stop)
	readers.Wait()
	if n := wholeBatch(t, s); n != 99 {
		t.Errorf("last commit is %d, want 99", n)
	}
}

// values counts the keys of all tables by value.
func values(t *testing.T, s store.Store) map[string]int {
	t.Helper()
	seen := map[string]int{}
	view(t, s, func(r store.Reader) {
		for _, table := range store.Tables {
			r.Scan(table, nil, nil, func(_, v []byte) bool {
				seen[string(v)]++
				return true
			})
		}
	})
	return seen
}

// wholeBatch returns the number that all keys have.
func wholeBatch(t *testing.T, s store.Store) int {
	seen := values(t, s)
	var number int
	for v := range seen {
		number, _ = strconv.Atoi(v)
	}
	if len(seen) != 1 || seen[strconv.Itoa(number)] != 50 {
		t.Errorf("a View sees half a batch: %v", seen)
	}
	return number
}

// testUpdatesRunAlone checks that concurrent read-modify-write loses nothing.
func testUpdatesRunAlone(t *testing.T, open Opener) {
	s := openNew(t, open)
	// Four writers are enough: with a lost update, two that read the same number already show it.
	const writers, each = 4, 25
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				update(t, s, func(w store.Writer) {
					n, _ := strconv.Atoi(string(w.Get(store.Meta, []byte("n"))))
					put(t, w, store.Meta, "n", strconv.Itoa(n+1))
				})
			}
		})
	}
	wg.Wait()
	wantContent(t, s, store.Meta, fmt.Sprintf("n=%d", writers*each))
}

// testDurable reopens the store after each Update: committed rows must be there, and rolled back rows must not.
func testDurable(t *testing.T, open Opener) {
	dir := t.TempDir()
	for i := range 5 {
		s := open(t, dir)
		view(t, s, func(r store.Reader) {
			if got := len(content(r, store.Sets)); got != i {
				t.Errorf("open %d: %d keys, want %d", i, got, i)
			}
		})
		update(t, s, func(w store.Writer) { put(t, w, store.Sets, strconv.Itoa(i), "x") })
		// A rolled back Update as the last one before Close: an implementation that writes its buffer on Close
		// would keep it.
		_ = s.Update(func(w store.Writer) error {
			put(t, w, store.Sets, "lost", "x")
			return errCaller
		})
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

// testBackupWhileWriting takes backups during writes, and opens each of them. A backup must hold one whole commit.
func testBackupWhileWriting(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := openIn(t, open, dir)
	write := func(n int) {
		update(t, s, func(w store.Writer) {
			for i := range 50 {
				put(t, w, store.Tables[i%len(store.Tables)], strconv.Itoa(i), strconv.Itoa(n))
			}
			for i := range 500 {
				// Rows that come and go move pages between commits, which a backup of the file could mix.
				put(t, w, store.Journal, fmt.Sprintf("%d/%d", n, i), strconv.Itoa(n))
			}
			for i := range 500 {
				del(t, w, store.Journal, fmt.Sprintf("%d/%d", n-1, i))
			}
		})
	}
	write(0)
	stop := make(chan bool)
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				write(n)
			}
		}
	})
	for range 5 {
		var b bytes.Buffer
		if err := s.Backup(&b); err != nil {
			t.Fatalf("Backup: %v", err)
		}
		checkBackup(t, open, b.Bytes(), fileName(t, dir))
	}
	close(stop)
	writer.Wait()
}

// fileName returns the name of the store's file in dir: the names of all other files, such as logs, begin with it.
func fileName(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("store directory holds %v (%v), want a file", files, err)
	}
	name := files[0].Name()
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), name) {
			t.Fatalf("store directory holds %v, want one file and its logs", files)
		}
	}
	return name
}

// checkBackup opens a backup and checks that it holds one whole commit and takes changes.
func checkBackup(t *testing.T, open Opener, backup []byte, name string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), backup, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, open, dir)
	seen := values(t, s)
	if len(seen) != 1 {
		t.Errorf("the backup holds parts of several commits: %v", seen)
	}
	for _, n := range seen {
		if n != 550 {
			t.Errorf("the backup holds %d keys, want 550", n)
		}
	}
	update(t, s, func(w store.Writer) { put(t, w, store.Meta, "after", "restore") })
}

// failingWriter is a full disk.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errCaller }

// testBackupPassesErrors checks that Backup returns the error of its writer, and that the store still works.
func testBackupPassesErrors(t *testing.T, open Opener) {
	s := openNew(t, open)
	if err := s.Backup(failingWriter{}); err == nil {
		t.Error("Backup to a writer that fails returned nil")
	}
	update(t, s, func(w store.Writer) { put(t, w, store.Sets, "k", "v") })
	wantContent(t, s, store.Sets, "k=v")
}
