package boltstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

const (
	testPage   = 4096
	testSector = 512 // the unit that a disk writes atomically
)

// contents returns all rows of Sets.
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

// randomUpdate changes some rows in the store and in the model.
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

// cut returns the file as a power cut during a commit can leave it. before and after are the file around the commit,
// and meta is the offset of the meta page that the commit wrote. bbolt writes all other pages and syncs them; then it
// writes the meta page and syncs it. Until a sync returns, the disk has any subset of the sectors written since the
// previous sync.
func cut(before, after []byte, meta int, pagesSynced bool, rnd *rand.Rand) []byte {
	out := make([]byte, len(after)) // the new part has zeros
	copy(out, before)
	for at := 0; at < len(out); at += testSector {
		inMeta := at >= meta && at < meta+testPage
		arrived := pagesSynced || rnd.IntN(2) == 0
		if inMeta {
			arrived = pagesSynced && rnd.IntN(2) == 0
		}
		if arrived {
			copy(out[at:at+testSector], after[at:])
		}
	}
	return out
}

// TestPowerCut simulates a power cut at both steps of many commits. The store must open with the last acknowledged
// commit, or with the commit in progress, and bbolt's own check must find no error.
func TestPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	rnd := rand.New(rand.NewPCG(1, 7))
	var before []byte
	meta := 0
	s.commit = func(tx *bolt.Tx) error {
		meta = tx.ID() % 2 * testPage
		before = readFile(t, path)[:s.Size()]
		return tx.Commit()
	}
	model := map[string]string{}
	kept := 0
	for range 40 {
		acknowledged := maps.Clone(model)
		randomUpdate(t, s, rnd, model)
		after := readFile(t, path)[:s.Size()]
		for _, pagesSynced := range []bool{false, true} {
			crashed := filepath.Join(t.TempDir(), "store.db")
			writeFile(t, crashed, cut(before, after, meta, pagesSynced, rnd))
			again := open(t, crashed)
			got := contents(t, again)
			switch {
			case pagesSynced && maps.Equal(got, model):
				kept++
			case !maps.Equal(got, acknowledged):
				t.Fatalf("after a power cut there are %d rows, want %d, or they differ", len(got), len(acknowledged))
			}
			mustCheck(t, again)
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if kept < 5 || kept > 35 {
		t.Errorf("the commit in progress was kept in %d of 40 cuts: the test covers too little", kept)
	}
}
