package boltstore

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

const batch = 20 // keys that one commit of childWrite changes

// childWrite commits numbers, each under many keys, and prints each number when Update has returned.
func childWrite(path string) {
	fatal := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	s, err := Open(path, Options{})
	fatal(err)
	var n uint64
	fatal(s.View(func(r store.Reader) error {
		if v := r.Get(store.Meta, []byte("n")); v != nil {
			n = binary.BigEndian.Uint64(v)
		}
		return nil
	}))
	for {
		n++
		fatal(s.Update(func(w store.Writer) error { return writeNumber(w, n) }))
		fmt.Println(n)
	}
}

func writeNumber(w store.Writer, n uint64) error {
	v := binary.BigEndian.AppendUint64(nil, n)
	for i := range uint64(batch) {
		// The keys are spread over the table, so that a commit has many pages. Lengths change, so that pages split.
		key := fmt.Appendf(nil, "%03d/%05d", i, (n*7919+i)%300)
		if err := w.Put(store.Sets, key, append(v[:8:8], make([]byte, (n+i)%200)...)); err != nil {
			return err
		}
	}
	if err := w.Put(store.Journal, v, v); err != nil {
		return err
	}
	if n > 100 {
		if err := w.Delete(store.Journal, binary.BigEndian.AppendUint64(nil, n-100)); err != nil {
			return err
		}
	}
	return w.Put(store.Meta, []byte("n"), v)
}

// TestKill kills a writer at random moments and checks the file that it left. The file must have every number that the
// writer printed, and no part of a commit without the rest.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	rnd := rand.New(rand.NewPCG(3, 4))
	var acknowledged uint64
	for cycle := range 60 {
		cmd := child(t, "write", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		// The test kills the writer after a random number of commits, at a random point of a later commit.
		for stop := rnd.IntN(40); lines.Scan(); stop-- {
			if acknowledged, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
			if stop == 0 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // the test killed it
		checkNumbers(t, cycle, path, acknowledged)
	}
	t.Logf("60 kills, %d commits acknowledged", acknowledged)
}

func checkNumbers(t *testing.T, cycle int, path string, acknowledged uint64) {
	t.Helper()
	s := open(t, path)
	defer s.Close()
	err := s.View(func(r store.Reader) error {
		n := binary.BigEndian.Uint64(r.Get(store.Meta, []byte("n")))
		if n < acknowledged {
			t.Fatalf("cycle %d: last commit is %d, but %d was acknowledged", cycle, n, acknowledged)
		}
		journal := 0
		r.Scan(store.Journal, nil, nil, func(_, _ []byte) bool { journal++; return true })
		if want := int(min(n, 100)); journal != want {
			t.Fatalf("cycle %d: commit %d left a journal of %d, want %d", cycle, n, journal, want)
		}
		sets := 0
		r.Scan(store.Sets, nil, nil, func(_, v []byte) bool {
			if got := binary.BigEndian.Uint64(v); got == n {
				sets++
			} else if got > n {
				t.Fatalf("cycle %d: part of commit %d, but the last is %d", cycle, got, n)
			}
			return true
		})
		if sets != batch {
			t.Fatalf("cycle %d: %d keys of commit %d, want %d", cycle, sets, n, batch)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, s)
}
