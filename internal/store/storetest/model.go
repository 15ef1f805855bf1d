package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/store"
)

// testBigTransaction writes many keys out of order in one Update, which is the worst order for a B+ tree.
func testBigTransaction(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := open(t, dir)
	// 100,000 rows of 80 bytes make a tree of several levels, whose pages split everywhere.
	const keys = 100_000
	value := make([]byte, 35)
	update(t, s, func(w store.Writer) {
		for i := range keys {
			// An odd factor that does not divide keys visits every key, out of order.
			if err := w.Put(store.Sets, fmt.Appendf(nil, "%045d", i*77_777%keys), value); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, open, dir)
	n := 0
	view(t, s, func(r store.Reader) {
		r.Scan(store.Sets, nil, nil, func(k, _ []byte) bool {
			if want := fmt.Sprintf("%045d", n); string(k) != want {
				t.Fatalf("key %d is %s, want %s", n, k, want)
			}
			n++
			return true
		})
	})
	if n != keys {
		t.Errorf("%d keys, want %d", n, keys)
	}
}

// model is the expected content of a store.
type model map[store.Table]map[string]string

func (m model) clone() model {
	c := model{}
	for table, rows := range m {
		c[table] = maps.Clone(rows)
	}
	return c
}

// scan returns the keys that Scan, or ScanBack, should return.
func (m model) scan(table store.Table, prefix string, from []byte, back bool) []string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(m[table])) {
		beyond := from != nil && ((!back && k < string(from)) || (back && k > string(from)))
		if strings.HasPrefix(k, prefix) && !beyond {
			keys = append(keys, k)
		}
	}
	if back {
		slices.Reverse(keys)
	}
	return keys
}

// testModel makes random changes to a store and to plain maps. Some of the changes are rolled back, some follow a
// reopen.
func testModel(t *testing.T, open Opener) {
	// Fixed numbers repeat a failure in the next run.
	rnd := rand.New(rand.NewPCG(2, 53))
	dir := t.TempDir()
	s := open(t, dir)
	m := model{}
	for _, table := range store.Tables {
		m[table] = map[string]string{}
	}
	for range 300 {
		if rnd.IntN(30) == 0 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir)
		}
		m = modelUpdate(t, rnd, s, m)
		view(t, s, func(r store.Reader) { compare(t, rnd, r, m) })
	}
	view(t, s, func(r store.Reader) {
		for _, table := range store.Tables {
			var want []string
			for _, k := range m.scan(table, "", nil, false) {
				want = append(want, k+"="+m[table][k])
			}
			wantKeys(t, string(table)+" at the end", want, content(r, table))
		}
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// modelUpdate makes one Update, and returns the expected content of the store after it.
func modelUpdate(t *testing.T, rnd *rand.Rand, s store.Store, m model) model {
	t.Helper()
	next, fail := m.clone(), rnd.IntN(5) == 0
	err := s.Update(func(w store.Writer) error {
		// Sizes are powers of two: small Updates are most of them, and some are large enough to split pages.
		for range 1 << rnd.IntN(9) {
			table := store.Tables[rnd.IntN(len(store.Tables))]
			key := randomKey(rnd)
			switch {
			case len(key) > 0 && rnd.IntN(10) < 6:
				value := strings.Repeat(key, rnd.IntN(20))
				put(t, w, table, key, value)
				next[table][key] = value
			// Deleting a whole prefix empties pages, which single deletions hardly ever do.
			case rnd.IntN(20) == 0:
				for _, k := range next.scan(table, key, nil, false) {
					del(t, w, table, k)
					delete(next[table], k)
				}
			case len(key) > 0:
				del(t, w, table, key)
				delete(next[table], key)
			}
		}
		// The Update reads its own rows before the commit, also those of an Update that is rolled back after this.
		compare(t, rnd, w, next)
		if fail {
			return errCaller
		}
		return nil
	})
	if fail == (err == nil) {
		t.Fatalf("Update = %v", err)
	}
	if fail {
		return m
	}
	return next
}

// compare compares random reads of the store with the model.
func compare(t *testing.T, rnd *rand.Rand, r store.Reader, m model) {
	t.Helper()
	for range 10 {
		table, key, prefix := store.Tables[rnd.IntN(len(store.Tables))], randomKey(rnd), randomKey(rnd)
		want, ok := m[table][key]
		if got := r.Get(table, []byte(key)); ok != (got != nil) || string(got) != want {
			t.Fatalf("Get(%s, %q) = %q, want %q, %v", table, key, got, want, ok)
		}
		var from []byte
		if rnd.IntN(3) > 0 {
			from = []byte(key)
		}
		for _, back := range []bool{false, true} {
			scan := r.Scan
			if back {
				scan = r.ScanBack
			}
			var got []string
			scan(table, []byte(prefix), from, func(k, v []byte) bool {
				if string(v) != m[table][string(k)] {
					t.Fatalf("scan of %s gave %q=%q, want %q", table, k, v, m[table][string(k)])
				}
				got = append(got, string(k))
				return true
			})
			if diff := cmp.Diff(m.scan(table, prefix, from, back), got); diff != "" {
				t.Fatalf("scan(%s, %q, %q, back %v) (-want +got):\n%s", table, prefix, from, back, diff)
			}
		}
	}
}

// randomKey returns a short key of few different letters, so that keys repeat. It is empty at times, and contains 0xff.
func randomKey(rnd *rand.Rand) string {
	// 0x00 and 0xff are the lowest and the highest byte: they are the limits of ranges that scans compute.
	letters := "ab\x00\xff"
	key := make([]byte, rnd.IntN(7))
	for i := range key {
		key[i] = letters[rnd.IntN(len(letters))]
	}
	return string(key)
}
