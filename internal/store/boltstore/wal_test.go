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

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

const testPage = 4096

// power simulates power cuts of a store: it knows what was on the disk for sure at the last checkpoint, and makes files
// as a cut can leave them, in which each page written since is there or not.
type power struct {
	s    *Store
	seq  uint64
	sure []byte // the file at the last checkpoint
	rnd  *rand.Rand
}

func newPower(t *testing.T, s *Store, seed uint64) *power {
	p := &power{s: s, rnd: rand.New(rand.NewPCG(seed, 7))}
	s.commit = func(tx *bolt.Tx) error {
		// Between the start of the log and the commit: what is in the file now was flushed.
		if s.wal != nil && s.wal.seq != p.seq {
			p.seq, p.sure = s.wal.seq, readFile(t, s.path)
		}
		return tx.Commit()
	}
	return p
}

// cut writes what a power cut would leave into a new folder, and returns the store's path there.
func (p *power) cut(t *testing.T) string {
	t.Helper()
	now := readFile(t, p.s.path)
	out := append([]byte(nil), now...)
	for at := 0; at < len(now); at += testPage {
		if p.rnd.IntN(2) == 0 {
			continue // the page made it to the disk
		}
		page := make([]byte, testPage)
		if at+testPage <= len(p.sure) {
			copy(page, p.sure[at:at+testPage])
		}
		copy(out[at:], page)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(walPath(path), readFile(t, walPath(p.s.path)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// contents is every row of a table.
func contents(t *testing.T, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := s.View(func(r store.Reader) error {
		r.Scan(store.Sets, nil, nil, func(k, v []byte) bool { out[string(k)] = string(v); return true })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// randomUpdate changes some rows and the model with them.
func randomUpdate(t *testing.T, s *Store, rnd *rand.Rand, model map[string]string) {
	t.Helper()
	mustUpdate(t, s, func(w store.Writer) error {
		for range 1 + rnd.IntN(30) {
			k := fmt.Sprintf("key-%04d", rnd.IntN(2000))
			if rnd.IntN(3) == 0 {
				delete(model, k)
				if err := w.Delete(store.Sets, []byte(k)); err != nil {
					return err
				}
				continue
			}
			v := strings.Repeat(string(rune('a'+rnd.IntN(26))), rnd.IntN(300))
			model[k] = v
			if err := w.Put(store.Sets, []byte(k), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestPowerCut cuts the power after each of many updates, with checkpoints in between: everything acknowledged is there.
func TestPowerCut(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	s.maxRound = 200 // a checkpoint every few updates
	p := newPower(t, s, 1)
	rnd := rand.New(rand.NewPCG(2, 3))
	model := map[string]string{}
	rounds := map[uint64]bool{}
	for range 40 {
		randomUpdate(t, s, rnd, model)
		rounds[s.wal.seq] = true
		after := open(t, p.cut(t))
		if !same(contents(t, after), model) {
			t.Fatalf("after a power cut there are %d rows, want %d, or they differ", len(contents(t, after)), len(model))
		}
		if err := errors.Join(check(after), after.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if len(rounds) < 3 {
		t.Errorf("only %d checkpoints were made: the test shows too little", len(rounds))
	}
}

// TestPowerCutInEntry cuts the power while an entry is being written: it is there whole or not at all.
func TestPowerCutInEntry(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	p := newPower(t, s, 4)
	rnd := rand.New(rand.NewPCG(5, 6))
	model := map[string]string{}
	for range 10 {
		randomUpdate(t, s, rnd, model)
	}
	from := s.wal.off
	before := contents(t, s)
	randomUpdate(t, s, rnd, model)
	for range 40 {
		path := p.cut(t)
		log := readFile(t, walPath(path))
		at := from + rnd.Int64N(s.wal.off-from)
		for i := at; i < s.wal.off; i++ {
			log[i] = 0
		}
		if err := os.WriteFile(walPath(path), log, 0o600); err != nil {
			t.Fatal(err)
		}
		after := open(t, path)
		if got := contents(t, after); !same(got, before) {
			t.Fatalf("an entry cut at %d of %d left %d rows, want %d", at-from, s.wal.off-from, len(got), len(before))
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPowerCutInRecovery cuts the power again while the log is applied.
func TestPowerCutInRecovery(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	p := newPower(t, s, 8)
	rnd := rand.New(rand.NewPCG(9, 10))
	model := map[string]string{}
	for range 20 {
		randomUpdate(t, s, rnd, model)
	}
	path := p.cut(t)
	log := readFile(t, walPath(path))
	again := open(t, path)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	// The file has the log applied; the end of the log did not make it.
	if err := os.WriteFile(walPath(path), log, 0o600); err != nil {
		t.Fatal(err)
	}
	again = open(t, path)
	defer again.Close()
	if !same(contents(t, again), model) {
		t.Error("applying the log twice gave something else")
	}
}

// TestLogEnds: a store that was closed in order needs its log no more.
func TestLogEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("k"), []byte("v")) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(walPath(path)); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	defer s.Close()
	if got := contents(t, s); got["k"] != "v" {
		t.Errorf("contents without the log: %v", got)
	}
}

// TestForeignLog: a backup is put in the place of a file that was not closed in order, and its log forgotten. The backup is
// as old as the log, or older.
func TestForeignLog(t *testing.T) {
	for _, round := range []int{100, maxRound} {
		t.Run(fmt.Sprint(round), func(t *testing.T) { testForeignLog(t, round) })
	}
}

func testForeignLog(t *testing.T, round int) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	s.maxRound = round
	p := newPower(t, s, 11)
	rnd := rand.New(rand.NewPCG(12, 13))
	model := map[string]string{}
	randomUpdate(t, s, rnd, model)
	var backup bytes.Buffer
	if err := s.Backup(&backup); err != nil {
		t.Fatal(err)
	}
	old := contents(t, s)
	for range 40 {
		randomUpdate(t, s, rnd, model)
	}
	path := p.cut(t)
	if err := os.WriteFile(path, backup.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, Options{})
	if err == nil || !strings.Contains(err.Error(), walPath(path)) || !strings.Contains(err.Error(), "delete the log") {
		t.Fatalf("Open = %v, want an error that names the log", err)
	}
	if !bytes.Equal(readFile(t, path), backup.Bytes()) {
		t.Fatal("the backup was changed")
	}
	if err := os.Remove(walPath(path)); err != nil {
		t.Fatal(err)
	}
	restored := open(t, path)
	defer restored.Close()
	if !same(contents(t, restored), old) {
		t.Error("the backup does not hold what it held")
	}
}

// TestLogCannotBeWritten: entries and headers fail, and later do not.
func TestLogCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	put := func(k string) error {
		return s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte(k), []byte("v")) })
	}
	if err := put("good"); err != nil {
		t.Fatal(err)
	}
	file := s.wal.f
	readOnly, err := os.Open(walPath(path))
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	for _, break1 := range []func(){
		func() { s.wal.f = readOnly },                                   // the entry, and taking it back
		func() { s.wal.off = s.walSize - maxEntry; s.wal.f = readOnly }, // the header of a new round
	} {
		break1()
		for range 2 {
			if err := put("bad"); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("Update = %v, want ErrUnavailable", err)
			}
		}
		if got := contents(t, s); got["bad"] != "" {
			t.Fatal("a refused update is seen")
		}
		s.wal.f = file
		if err := put("later"); err != nil {
			t.Fatalf("Update when the log can be written again: %v", err)
		}
	}
	p := &power{s: s, sure: readFile(t, path), rnd: rand.New(rand.NewPCG(1, 1))}
	after := open(t, p.cut(t))
	defer after.Close()
	if got := contents(t, after); got["good"] == "" || got["later"] == "" || got["bad"] != "" {
		t.Errorf("after a crash: %v", got)
	}
}

// TestCommitFailsBehindTheLog: the entry is durable, and then the pages cannot be written. The entry must not come back.
func TestCommitFailsBehindTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	put := func(k string) error {
		return s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte(k), []byte("v")) })
	}
	if err := put("good"); err != nil {
		t.Fatal(err)
	}
	s.commit = func(tx *bolt.Tx) error { return errors.Join(errors.New("no space"), tx.Rollback()) }
	if err := put("bad"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Update = %v, want ErrUnavailable", err)
	}
	s.commit = (*bolt.Tx).Commit
	p := &power{s: s, sure: readFile(t, path), rnd: rand.New(rand.NewPCG(1, 1))}
	after := open(t, p.cut(t))
	defer after.Close()
	if got := contents(t, after); got["good"] == "" || got["bad"] != "" {
		t.Errorf("after a crash: %v", got)
	}
}

// TestFlushFails: the system could not write pages. They are written again, from the log.
func TestFlushFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	rnd := rand.New(rand.NewPCG(20, 21))
	model := map[string]string{}
	for range 5 {
		randomUpdate(t, s, rnd, model)
	}
	failed := errors.New("input/output error")
	s.flushErr.Store(&failed)
	s.wal.off = s.walSize - maxEntry // so that the next Update needs a checkpoint
	off := s.wal.off
	err := s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("x"), nil) })
	if !errors.Is(err, store.ErrUnavailable) || off != s.wal.off {
		t.Fatalf("Update = %v, want ErrUnavailable", err)
	}
	randomUpdate(t, s, rnd, model)
	if !same(contents(t, s), model) {
		t.Error("rows differ after the file was opened anew")
	}
	if err := check(s); err != nil {
		t.Error(err)
	}
}

// TestLargeUpdate goes around the log, and the log goes on behind it.
func TestLargeUpdate(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	p := newPower(t, s, 30)
	rnd := rand.New(rand.NewPCG(31, 32))
	model := map[string]string{}
	for range 3 {
		randomUpdate(t, s, rnd, model)
		big := strings.Repeat("x", 1000)
		mustUpdate(t, s, func(w store.Writer) error {
			for i := range maxEntry/1000 + 10 {
				k := fmt.Sprintf("big-%05d", i)
				model[k] = big
				if err := w.Put(store.Sets, []byte(k), []byte(big)); err != nil {
					return err
				}
			}
			return nil
		})
		randomUpdate(t, s, rnd, model)
		after := open(t, p.cut(t))
		if !same(contents(t, after), model) {
			t.Fatal("rows differ after a power cut")
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTornHeader: the log could not be ended, and nobody knows which header a crash would leave. The next entry must come
// behind a new one.
func TestTornHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("good"), []byte("v")) })
	file, seq := s.wal.f, s.wal.seq
	readOnly, err := os.Open(walPath(path))
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	s.wal.f = readOnly
	err = s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte("large"), make([]byte, maxEntry+1)) })
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Update = %v, want ErrUnavailable", err)
	}
	s.wal.f = file
	mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Sets, []byte("later"), []byte("v")) })
	if s.wal.seq == seq {
		t.Error("an entry was appended behind a header that may not be the one")
	}
	if got := contents(t, s); got["good"] == "" || got["later"] == "" || got["large"] != "" {
		t.Errorf("rows: %d", len(got))
	}
}
