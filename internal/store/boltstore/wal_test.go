package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	if p.s.wal.seq != p.seq { // nothing was committed since the checkpoint
		p.seq, p.sure = p.s.wal.seq, now
	}
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
	s.maxPending = 100 // a commit every few updates,
	s.maxRound = 100   // and a checkpoint every few commits
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
	if err := again.drain(); err != nil {
		t.Fatal(err)
	}
	applied := readFile(t, path)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	// The file has the log applied; the end of the log did not make it.
	writeFile(t, path, applied)
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

// TestCommitFailsBehindTheLog: entries are durable, and then the pages cannot be written. What was acknowledged is seen, is
// there after a crash, and is in the file as soon as it can be; nothing else is taken until then.
func TestCommitFailsBehindTheLog(t *testing.T) {
	for _, after := range []bool{false, true} { // the commit fails before or after readers see it
		t.Run(fmt.Sprint(after), func(t *testing.T) { testCommitFails(t, after) })
	}
}

func testCommitFails(t *testing.T, after bool) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	s.maxPending = 3
	put := func(k string) error {
		return s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte(k), []byte("v")) })
	}
	p := newPower(t, s, 40)
	want := map[string]string{}
	good := func(k string) {
		t.Helper()
		if err := put(k); err != nil {
			t.Fatalf("Update(%s): %v", k, err)
		}
		want[k] = "v"
	}
	good("a")
	good("b")
	commit := s.commit
	s.commit = func(tx *bolt.Tx) error {
		if after {
			return errors.Join(errors.New("no space"), commit(tx))
		}
		return errors.Join(errors.New("no space"), tx.Rollback())
	}
	good("c") // in the log; its commit fails
	refused := put("bad")
	if !after && !errors.Is(refused, store.ErrUnavailable) {
		t.Fatalf("Update = %v, want ErrUnavailable", refused)
	}
	if refused == nil {
		want["bad"] = "v"
	}
	check2 := func(when string, s *Store) {
		t.Helper()
		if got := contents(t, s); !same(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	check2("while commits fail", s)
	crashed := open(t, p.cut(t))
	check2("after a crash", crashed)
	if err := crashed.Close(); err != nil {
		t.Error(err)
	}
	s.commit = commit
	good("d")
	check2("when commits are made again", s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	defer again.Close()
	check2("after a restart", again)
}

// TestOverlay compares what Views read with a model, with some rows in the file and some over it, and Views that began
// earlier with what they saw then.
func TestOverlay(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	s.maxPending = 150
	rnd := rand.New(rand.NewPCG(50, 51))
	model := map[string]string{}
	for range 60 {
		randomUpdate(t, s, rnd, model)
		keys := slices.Sorted(maps.Keys(model))
		err := s.View(func(r store.Reader) error {
			for range 20 {
				prefix := []string{"", "key-", "key-0", "key-1", "key-19", "x"}[rnd.IntN(6)]
				var from []byte
				if rnd.IntN(2) == 0 {
					from = fmt.Appendf(nil, "key-%04d", rnd.IntN(2100))
				}
				compareScan(t, r, model, keys, prefix, from)
			}
			k := fmt.Sprintf("key-%04d", rnd.IntN(2000))
			want, ok := model[k]
			if got := r.Get(store.Sets, []byte(k)); (got != nil) != ok || string(got) != want {
				t.Errorf("Get(%s) = %q, want %q, %v", k, got, want, ok)
			}
			before := maps.Clone(model)
			randomUpdate(t, s, rnd, model)
			compareScan(t, r, before, keys, "", nil)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func compareScan(t *testing.T, r store.Reader, model map[string]string, keys []string, prefix string, from []byte) {
	t.Helper()
	var up, down []string
	for _, k := range keys {
		if !strings.HasPrefix(k, prefix) {
			continue
		}
		if from == nil || k >= string(from) {
			up = append(up, k+"="+model[k])
		}
		if from == nil || k <= string(from) {
			down = append(down, k+"="+model[k])
		}
	}
	slices.Reverse(down)
	read := func(scan func(store.Table, []byte, []byte, func(k, v []byte) bool), want []string) {
		t.Helper()
		var got []string
		limit := len(want) / 2
		for _, n := range []int{len(want) + 1, limit} {
			got = got[:0]
			scan(store.Sets, []byte(prefix), from, func(k, v []byte) bool {
				got = append(got, string(k)+"="+string(v))
				return len(got) < n
			})
			if w := want[:min(max(n, 1), len(want))]; !slices.Equal(got, w) {
				t.Errorf("scan of %q from %q: %d rows, want %d", prefix, from, len(got), len(w))
			}
		}
	}
	read(r.Scan, up)
	read(r.ScanBack, down)
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

// TestLargeUpdateFails: an Update that is too long for the log is in the file, and then the log cannot be started anew. It
// must not be seen.
func TestLargeUpdateFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	put := func(k string, size int) error {
		return s.Update(func(w store.Writer) error { return w.Put(store.Sets, []byte(k), make([]byte, size)) })
	}
	if err := put("good", 1); err != nil {
		t.Fatal(err)
	}
	readOnly, err := os.Open(walPath(path))
	if err != nil {
		t.Fatal(err)
	}
	s.wal.f = readOnly
	if err := put("large", maxEntry+1); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Update = %v, want ErrUnavailable", err)
	}
	if got := contents(t, s); len(got) != 1 {
		t.Errorf("%d rows after the failed update, want 1", len(got))
	}
	if err := put("later", 1); err != nil {
		t.Fatal(err)
	}
	p := &power{s: s, rnd: rand.New(rand.NewPCG(1, 1))}
	after := open(t, p.cut(t))
	defer after.Close()
	if got := contents(t, after); len(got) != 2 || got["good"] == "" || got["later"] == "" {
		t.Errorf("%d rows after a crash, want good and later", len(got))
	}
}

// TestViewsDuringCommits reads beside a writer whose every Update is followed by a commit: a View sees whole Updates, and
// all that were acknowledged before it began.
func TestViewsDuringCommits(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	s.maxPending = 2
	var acked atomic.Int64
	var readers sync.WaitGroup
	stop := make(chan struct{})
	number := func(b []byte) int64 {
		n, _ := strconv.ParseInt(string(b), 10, 64)
		return n
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := acked.Load()
				err := s.View(func(r store.Reader) error {
					a, b := number(r.Get(store.Sets, []byte("k"))), number(r.Get(store.Zones, []byte("k")))
					if a != b || a < least {
						return fmt.Errorf("a View saw %d and %d after %d was acknowledged", a, b, least)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := int64(1); n <= 1500; n++ {
		mustUpdate(t, s, func(w store.Writer) error {
			v := strconv.AppendInt(nil, n, 10)
			return errors.Join(w.Put(store.Sets, []byte("k"), v), w.Put(store.Zones, []byte("k"), v))
		})
		acked.Store(n)
	}
	close(stop)
	readers.Wait()
}
