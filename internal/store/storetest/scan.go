package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/store"
)

// keysOf collects the keys of one scan.
func keysOf(scan func(store.Table, []byte, []byte, func(k, v []byte) bool), prefix, from []byte) []string {
	var keys []string
	scan(store.Sets, prefix, from, func(k, _ []byte) bool {
		keys = append(keys, string(k))
		return true
	})
	return keys
}

func wantKeys(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// testScan checks prefixes and start keys, also with 0xff bytes, for which the next larger prefix is shorter.
func testScan(t *testing.T, open Opener) {
	s := openNew(t, open)
	all := []string{"\x00", "a", "a\x00", "a\xff", "a\xff\xff", "b", "ba", "bb", "bbb", "bc", "c", "\xff", "\xff\x00",
		"\xff\xff", "\xff\xff\x01"}
	update(t, s, func(w store.Writer) {
		for i := range all {
			// The rows are written in reverse order: a store that returns them as written fails.
			put(t, w, store.Sets, all[len(all)-1-i], "x")
		}
		put(t, w, store.SetIDs, "b", "another table")
	})
	tests := []struct {
		name          string
		prefix, from  []byte
		forward, back []string
	}{
		{"all", nil, nil, all, all},
		{"empty prefix", []byte{}, nil, all, all},
		{"prefix", []byte("b"), nil, []string{"b", "ba", "bb", "bbb", "bc"}, []string{"b", "ba", "bb", "bbb", "bc"}},
		{"prefix of one key", []byte("bbb"), nil, []string{"bbb"}, []string{"bbb"}},
		{"prefix of no key", []byte("bd"), nil, nil, nil},
		{"prefix after all", []byte("\xff\xff\xff"), nil, nil, nil},
		{"prefix before all", []byte("\x00\x00"), nil, nil, nil},
		{"prefix ends in ff", []byte("a\xff"), nil, []string{"a\xff", "a\xff\xff"}, []string{"a\xff", "a\xff\xff"}},
		{"prefix is ff", []byte("\xff"), nil, all[11:], all[11:]},
		{"prefix is ff ff", []byte("\xff\xff"), nil, all[13:], all[13:]},
		{"from a key", nil, []byte("bb"), all[7:], all[:8]},
		{"from between keys", nil, []byte("bba"), all[8:], all[:8]},
		{"from before all", nil, []byte("\x00"), all, all[:1]},
		{"from after all", nil, []byte("\xff\xff\xff"), nil, all},
		{"from empty, not nil", nil, []byte{}, all, nil},
		{"from inside the prefix", []byte("b"), []byte("bb"), []string{"bb", "bbb", "bc"}, []string{"b", "ba", "bb"}},
		{"from between keys of the prefix", []byte("b"), []byte("bab"), []string{"bb", "bbb", "bc"}, []string{"b", "ba"}},
		{"from is the prefix", []byte("b"), []byte("b"), []string{"b", "ba", "bb", "bbb", "bc"}, []string{"b"}},
		{"from is past the prefix's keys", []byte("b"), []byte("bz"), nil, []string{"b", "ba", "bb", "bbb", "bc"}},
		{"from before the prefix", []byte("b"), []byte("a"), []string{"b", "ba", "bb", "bbb", "bc"}, nil},
		{"from a shorter prefix", []byte("bb"), []byte("b"), []string{"bb", "bbb"}, nil},
		{"from after the prefix", []byte("b"), []byte("c"), nil, []string{"b", "ba", "bb", "bbb", "bc"}},
		{"from inside an ff prefix", []byte("\xff"), []byte("\xff\xff"), all[13:], all[11:14]},
		{"from after, prefix ends in ff", []byte("a\xff"), []byte("b"), nil, []string{"a\xff", "a\xff\xff"}},
	}
	for _, tt := range tests {
		back := slices.Clone(tt.back)
		slices.Reverse(back)
		check := func(where string, r store.Reader) {
			t.Helper()
			wantKeys(t, tt.name+": Scan in "+where, tt.forward, keysOf(r.Scan, tt.prefix, tt.from))
			wantKeys(t, tt.name+": ScanBack in "+where, back, keysOf(r.ScanBack, tt.prefix, tt.from))
		}
		view(t, s, func(r store.Reader) { check("View", r) })
		// An Update reads through its own buffer of changes, which is other code than the View in most stores.
		update(t, s, func(w store.Writer) { check("Update", w) })
	}
}

// testScanStops checks that a scan ends when its function returns false.
func testScanStops(t *testing.T, open Opener) {
	s := openNew(t, open)
	update(t, s, func(w store.Writer) {
		for i := range 1000 {
			put(t, w, store.Sets, fmt.Sprintf("%04d", i), "x")
		}
	})
	view(t, s, func(r store.Reader) {
		// Three of a thousand: a store that reads rows in blocks must stop inside a block.
		n := 0
		three := func(_, _ []byte) bool { n++; return n < 3 }
		r.Scan(store.Sets, nil, nil, three)
		if n != 3 {
			t.Errorf("Scan went on: %d calls, want 3", n)
		}
		n = 0
		r.ScanBack(store.Sets, nil, nil, three)
		if n != 3 {
			t.Errorf("ScanBack went on: %d calls, want 3", n)
		}
	})
}

// testScanEmptiedPages scans inside an Update that has deleted long runs of keys. Whole pages of a tree are then empty,
// and stay in the tree until the commit.
func testScanEmptiedPages(t *testing.T, open Opener) {
	// 5000 rows of 46 bytes fill about 60 pages of 4 KiB, so that pages in the middle become empty.
	const keys = 5000
	key := func(i int) string { return fmt.Sprintf("%06d", i) }
	tests := []struct {
		name string
		keep func(i int) bool
	}{
		{"none left", func(int) bool { return false }},
		{"first left", func(i int) bool { return i == 0 }},
		{"last left", func(i int) bool { return i == keys-1 }},
		{"ends left", func(i int) bool { return i == 0 || i == keys-1 }},
		{"middle left", func(i int) bool { return i == keys/2 }},
		{"middle gone", func(i int) bool { return i < 10 || i > keys-10 }},
		{"islands left", func(i int) bool { return i%1000 < 3 }},
	}
	s := openNew(t, open)
	for _, tt := range tests {
		update(t, s, func(w store.Writer) {
			for i := range keys {
				put(t, w, store.Sets, key(i), "0123456789012345678901234567890123456789")
			}
		})
		var want, back []string
		update(t, s, func(w store.Writer) {
			for i := range keys {
				if tt.keep(i) {
					want, back = append(want, key(i)), append([]string{key(i)}, back...)
				} else {
					del(t, w, store.Sets, key(i))
				}
			}
			wantKeys(t, tt.name+": Scan", want, keysOf(w.Scan, nil, nil))
			// The start is missing, behind all keys, or the last key: each finds its first page differently.
			for _, from := range [][]byte{nil, []byte("999999"), []byte(key(keys - 1))} {
				wantKeys(t, fmt.Sprintf("%s: ScanBack from %q", tt.name, from), back, keysOf(w.ScanBack, nil, from))
			}
			wantKeys(t, tt.name+": ScanBack of a prefix", back, keysOf(w.ScanBack, []byte("00"), nil))
		})
		view(t, s, func(r store.Reader) {
			wantKeys(t, tt.name+": ScanBack after the commit", back, keysOf(r.ScanBack, nil, nil))
		})
	}
}
