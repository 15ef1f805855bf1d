package boltstore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

// rows is the content of a store.
type rows map[store.Table]map[string]string

// served lists the tables that answers need: all except Journal.
var served = []store.Table{store.Meta, store.Zones, store.Names, store.Sets, store.SetIDs, store.Objects}

func allRows(t *testing.T, s *Store) rows { return rowsOf(t, s, store.Tables) }

func rowsOf(t *testing.T, s *Store, tables []store.Table) rows {
	t.Helper()
	out := rows{}
	err := s.View(func(r store.Reader) error {
		for _, table := range tables {
			out[table] = map[string]string{}
			r.Scan(table, nil, nil, func(k, v []byte) bool { out[table][string(k)] = string(v); return true })
		}
		return nil
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	return out
}

func (r rows) equal(other rows, tables ...store.Table) bool {
	for _, t := range tables {
		if !maps.Equal(r[t], other[t]) {
			return false
		}
	}
	return true
}

// change writes and deletes rows of all tables, in the store and in the model.
func change(t *testing.T, s *Store, model rows, rnd *rand.Rand, n int) {
	t.Helper()
	mustUpdate(t, s, func(w store.Writer) error {
		for range n {
			table := store.Tables[rnd.IntN(len(store.Tables))]
			key := fmt.Sprintf("%s-%05d", strings.Repeat("k", 1+rnd.IntN(20)), rnd.IntN(600))
			if model[table] == nil {
				model[table] = map[string]string{}
			}
			if rnd.IntN(4) == 0 {
				delete(model[table], key)
				if err := w.Delete(table, []byte(key)); err != nil {
					return err
				}
				continue
			}
			size := rnd.IntN(120)
			if rnd.IntN(200) == 0 {
				size = 9000 // several pages
			}
			value := strings.Repeat(string(rune('a'+rnd.IntN(26))), size)
			model[table][key] = value
			if err := w.Put(table, []byte(key), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// manyCommitStore creates a store in many commits. It returns the bytes of the file after Close, and as a crash leaves
// them, with its rows and the rows of the previous commit.
func manyCommitStore(t *testing.T) (closed, crashed []byte, model, before rows) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	if err := store.Init(s); err != nil {
		t.Fatal(err)
	}
	model = allRows(t, s)
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		change(t, s, model, rnd, 300)
	}
	before = allRows(t, s)
	change(t, s, model, rnd, 20)
	crashed = readFile(t, path)[:s.Size()]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, path)[:len(crashed)], crashed, model, before
}

// damageBytes flips a bit or zeroes a sector. Half of the positions are in the structures that bbolt follows.
func damageBytes(b []byte, rnd *rand.Rand) string {
	at := rnd.IntN(len(b))
	if rnd.IntN(2) == 0 {
		at = at/testPage*testPage + rnd.IntN(300)
	}
	if rnd.IntN(3) == 0 {
		at = at / testSector * testSector
		clear(b[at : at+testSector])
		return fmt.Sprintf("zeroed sector at %d of page %d", at%testPage, at/testPage)
	}
	bit := rnd.IntN(8)
	b[at] ^= 1 << bit
	return fmt.Sprintf("flipped bit %d at %d of page %d", bit, at%testPage, at/testPage)
}

// tally counts the outcomes of trials.
type tally struct{ harmless, reported, refused int }

// trial opens a damaged file. Open must refuse it with an error that says what to do, or the store must have the rows
// of one of the models. For all models except the first, the store must report damage.
func (n *tally) trial(t *testing.T, what string, damaged []byte, rnd *rand.Rand, models ...rows) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	defer os.Remove(path)
	writeFile(t, path, damaged)
	s, err := Open(path, Options{})
	if err != nil {
		if !errors.As(err, new(*store.DamagedError)) || !strings.Contains(err.Error(), "restore a backup") {
			t.Errorf("%s: Open = %v, want an error that says what to do", what, err)
		}
		n.refused++
		return
	}
	defer s.Close()
	tables := store.Tables
	if s.Refusal() != nil { // the table Journal is damaged
		tables = served
	}
	got := rowsOf(t, s, tables)
	switch {
	case got.equal(models[0], tables...):
	case s.Damage() == nil:
		t.Errorf("%s: rows were lost or changed without a report", what)
		return
	case len(models) < 2 || !got.equal(models[1], tables...):
		t.Errorf("%s: rows were lost or changed, and the report is %v", what, s.Damage())
		return
	}
	if n.harmless++; s.Damage() != nil {
		n.harmless--
		n.reported++
	}
	if s.Refusal() == nil {
		useDamaged(t, what, s, path, rnd)
	}
}

// useDamaged uses a store that opened in spite of damage: the damage must not cause errors later.
func useDamaged(t *testing.T, what string, s *Store, path string, rnd *rand.Rand) {
	t.Helper()
	model := allRows(t, s)
	for range 3 {
		change(t, s, model, rnd, 100)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, Options{})
	if err != nil {
		t.Errorf("%s: after more changes: %v", what, err)
		return
	}
	defer again.Close()
	if !allRows(t, again).equal(model, store.Tables...) || again.Damage() != nil {
		t.Errorf("%s: after more changes the rows are different or damaged: %v", what, again.Damage())
	}
}

// TestDamageTrials flips bits and zeroes sectors at random positions, in the file of a closed store and of a store that
// crashed. test/hostile runs 500 trials with the whole program.
func TestDamageTrials(t *testing.T) {
	closed, crashed, model, before := manyCommitStore(t)
	rnd := rand.New(rand.NewPCG(7, 8))
	var n tally
	for range 30 {
		b := append([]byte(nil), closed...)
		what := damageBytes(b, rnd)
		n.trial(t, "closed, "+what, b, rnd, model)
		b = append([]byte(nil), crashed...)
		what = damageBytes(b, rnd)
		n.trial(t, "crashed, "+what, b, rnd, model, before)
	}
	t.Logf("%d harmless, %d reported, %d refused", n.harmless, n.reported, n.refused)
	if n.refused < 10 || n.harmless < 3 {
		t.Errorf("%+v: the trials cover too little", n)
	}
}

// TestMetaDamaged damages each meta page. After a clean shutdown, the loss of one costs nothing. After a crash it can
// cost the last commit, and this must be reported.
func TestMetaDamaged(t *testing.T) {
	closed, crashed, model, before := manyCommitStore(t)
	rnd := rand.New(rand.NewPCG(7, 8))
	lost := 0
	for page := range 2 {
		for _, harm := range []func(b []byte){func(b []byte) { clear(b) }, func(b []byte) { b[headerSize+20] ^= 4 }} {
			b := append([]byte(nil), closed...)
			harm(b[page*testPage:][:testSector])
			n := tally{}
			n.trial(t, "closed", b, rnd, model)
			b = append([]byte(nil), crashed...)
			harm(b[page*testPage:][:testSector])
			n.trial(t, "crashed", b, rnd, model, before)
			if n.reported != 2 {
				t.Errorf("page %d: %+v, want two reports", page, n)
			}
			path := filepath.Join(t.TempDir(), "store.db")
			writeFile(t, path, b)
			copy(b[page*testPage:][:testSector], crashed[page*testPage:])
			s := open(t, path)
			if allRows(t, s).equal(before, store.Tables...) {
				lost++
			}
			if err := s.Damage(); err == nil || !strings.Contains(err.Error(), "its last change may be missing") {
				t.Errorf("page %d: the report is %v", page, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lost != 2 {
		t.Errorf("the last commit was lost %d times: want 2, for the damages of the newest page", lost)
	}
}
