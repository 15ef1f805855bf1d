// Package storetest tests implementations of store.Store: its tests are the contract of the interface.
//
// Start with Run in storetest.go, which every implementation calls. Count in count.go wraps a store to count row reads.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

// Opener opens the store in dir, and creates it when there is none.
type Opener func(t *testing.T, dir string) store.Store

// Run runs all tests of the contract on the stores that open returns.
// A property that callers rely on belongs here and not into the tests of one implementation.
func Run(t *testing.T, open func(t *testing.T, dir string) store.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, Opener)
	}{
		{"GetPutDelete", testGetPutDelete},
		{"EmptyValue", testEmptyValue},
		{"ValuesStay", testValuesStay},
		{"TablesAreApart", testTablesAreApart},
		{"BuffersAreTheCallers", testBuffers},
		{"Scan", testScan},
		{"ScanStops", testScanStops},
		{"ScanEmptiedPages", testScanEmptiedPages},
		{"ReadYourWrites", testReadYourWrites},
		{"RollbackOnError", testRollbackOnError},
		{"RollbackOnPanic", testRollbackOnPanic},
		{"RollbackOnGoexit", testRollbackOnGoexit},
		{"ViewPassesErrorsAndPanics", testViewPasses},
		{"ViewSeesOneMoment", testViewSeesOneMoment},
		{"ViewNeverWaits", testViewNeverWaits},
		{"BatchesAreWhole", testBatchesAreWhole},
		{"UpdatesRunAlone", testUpdatesRunAlone},
		{"Durable", testDurable},
		{"BackupWhileWriting", testBackupWhileWriting},
		{"BackupPassesErrors", testBackupPassesErrors},
		{"BigTransaction", testBigTransaction},
		{"Model", testModel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open) })
	}
}

// openNew opens a store in a new directory, for tests that need no restart.
func openNew(t *testing.T, open Opener) store.Store {
	t.Helper()
	return openIn(t, open, t.TempDir())
}

// openIn opens the store in dir and closes it at the end of the test. Close reports the errors of writes that the
// store has put off, so the test checks its error.
func openIn(t *testing.T, open Opener, dir string) store.Store {
	t.Helper()
	s := open(t, dir)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// update runs an Update that must succeed. A failure ends only the calling goroutine, so a test that waits for another
// goroutine must be able to go on without it.
func update(t *testing.T, s store.Store, fn func(store.Writer)) {
	t.Helper()
	err := s.Update(func(w store.Writer) error {
		fn(w)
		return nil
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func view(t *testing.T, s store.Store, fn func(store.Reader)) {
	t.Helper()
	err := s.View(func(r store.Reader) error {
		fn(r)
		return nil
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}
}

func put(t *testing.T, w store.Writer, table store.Table, key, value string) {
	t.Helper()
	if err := w.Put(table, []byte(key), []byte(value)); err != nil {
		t.Fatalf("Put(%s, %q): %v", table, key, err)
	}
}

func del(t *testing.T, w store.Writer, table store.Table, key string) {
	t.Helper()
	if err := w.Delete(table, []byte(key)); err != nil {
		t.Fatalf("Delete(%s, %q): %v", table, key, err)
	}
}

// content returns the rows of a table as "key=value".
// The order is that of the store: tests compare it with sorted rows.
func content(r store.Reader, table store.Table) []string {
	var all []string
	r.Scan(table, nil, nil, func(k, v []byte) bool {
		all = append(all, fmt.Sprintf("%s=%s", k, v))
		return true
	})
	return all
}

func wantContent(t *testing.T, s store.Store, table store.Table, want ...string) {
	t.Helper()
	view(t, s, func(r store.Reader) {
		wantKeys(t, "content of "+string(table), want, content(r, table))
	})
}

// testGetPutDelete checks that the last Put wins, and that deleting a missing key is not an error.
func testGetPutDelete(t *testing.T, open Opener) {
	s := openNew(t, open)
	for _, table := range store.Tables {
		view(t, s, func(r store.Reader) {
			if got := r.Get(table, []byte("k")); got != nil {
				t.Errorf("Get from an empty %s = %q, want nil", table, got)
			}
		})
		update(t, s, func(w store.Writer) { put(t, w, table, "k", "old") })
		update(t, s, func(w store.Writer) { put(t, w, table, "k", "new") })
		wantContent(t, s, table, "k=new")
		update(t, s, func(w store.Writer) {
			del(t, w, table, "k")
			del(t, w, table, "never there")
		})
		wantContent(t, s, table)
	}
}

// testEmptyValue checks that an empty or nil value is stored as empty, and is different from a missing key.
func testEmptyValue(t *testing.T, open Opener) {
	s := openNew(t, open)
	check := func(r store.Reader) {
		t.Helper()
		for _, key := range []string{"empty", "nil"} {
			if got := r.Get(store.Meta, []byte(key)); got == nil || len(got) != 0 {
				t.Errorf("Get(%q) = %#v, want empty and not nil", key, got)
			}
		}
		r.Scan(store.Meta, nil, nil, func(k, v []byte) bool {
			if v == nil {
				t.Errorf("Scan gave nil for %q, want empty and not nil", k)
			}
			return true
		})
		if got := r.Get(store.Meta, []byte("absent")); got != nil {
			t.Errorf("Get(absent) = %#v, want nil", got)
		}
	}
	update(t, s, func(w store.Writer) {
		for key, value := range map[string][]byte{"empty": {}, "nil": nil} {
			if err := w.Put(store.Meta, []byte(key), value); err != nil {
				t.Fatal(err)
			}
		}
		check(w)
	})
	view(t, s, func(r store.Reader) { check(r) })
}

// testTablesAreApart checks that equal keys of different tables are independent.
func testTablesAreApart(t *testing.T, open Opener) {
	s := openNew(t, open)
	update(t, s, func(w store.Writer) {
		for _, table := range store.Tables {
			put(t, w, table, "k", string(table))
		}
		// One deletion is enough to show a store that keeps all tables in one tree and deletes by key only.
		del(t, w, store.Names, "k")
	})
	for _, table := range store.Tables {
		if table == store.Names {
			wantContent(t, s, table)
			continue
		}
		wantContent(t, s, table, "k="+string(table))
	}
}

// testValuesStay checks that a slice that was read does not change while its key is overwritten many times, among many
// other writes.
func testValuesStay(t *testing.T, open Opener) {
	s := openNew(t, open)
	update(t, s, func(w store.Writer) {
		for i := range 100 {
			put(t, w, store.Sets, fmt.Sprintf("%03d", i), "old")
		}
	})
	update(t, s, func(w store.Writer) {
		var had [][]byte
		for i := range 100 {
			had = append(had, w.Get(store.Sets, fmt.Appendf(nil, "%03d", i)))
		}
		// Three rounds: an implementation may hold the first overwrites in memory and move rows only later.
		for round := range 3 {
			for i := range 1000 {
				put(t, w, store.Sets, fmt.Sprintf("%03d", i*7%1000), "new")
			}
			del(t, w, store.Sets, fmt.Sprintf("%03d", round))
			content(w, store.Sets) // a scan makes the store write the rows that it has buffered
		}
		for i, v := range had {
			if string(v) != "old" {
				t.Fatalf("value %d that was read before has become %q", i, v)
			}
		}
	})
}

// testBuffers checks that a caller may reuse its slices once Put or Delete has returned.
func testBuffers(t *testing.T, open Opener) {
	s := openNew(t, open)
	update(t, s, func(w store.Writer) {
		key, value := make([]byte, 1), make([]byte, 1)
		for c := byte('a'); c <= 'c'; c++ {
			key[0], value[0] = c, c-'a'+'0'
			if err := w.Put(store.Sets, key, value); err != nil {
				t.Fatal(err)
			}
		}
		key[0] = 'b'
		if err := w.Delete(store.Sets, key); err != nil {
			t.Fatal(err)
		}
		// The commit happens after this line: a store that kept the slices would write x.
		key[0], value[0] = 'x', 'x'
	})
	wantContent(t, s, store.Sets, "a=0", "c=2")
}

// testReadYourWrites checks that an Update reads its own writes, before they are committed.
func testReadYourWrites(t *testing.T, open Opener) {
	s := openNew(t, open)
	update(t, s, func(w store.Writer) {
		put(t, w, store.Sets, "a", "1")
		put(t, w, store.Sets, "b", "1")
	})
	update(t, s, func(w store.Writer) {
		put(t, w, store.Sets, "b", "2")
		put(t, w, store.Sets, "c", "2")
		del(t, w, store.Sets, "a")
		wantKeys(t, "inside the Update", []string{"b=2", "c=2"}, content(w, store.Sets))
		if got := w.Get(store.Sets, []byte("a")); got != nil {
			t.Errorf("Get of a deleted key = %q, want nil", got)
		}
		if got := w.Get(store.Sets, []byte("c")); !bytes.Equal(got, []byte("2")) {
			t.Errorf("Get of a new key = %q, want 2", got)
		}
	})
}

var errCaller = errors.New("the caller's own error")

// testRollbackOnError checks that nothing of an Update is kept when its function returns an error.
func testRollbackOnError(t *testing.T, open Opener) {
	s := openNew(t, open)
	update(t, s, func(w store.Writer) { put(t, w, store.Sets, "kept", "1") })
	err := s.Update(func(w store.Writer) error {
		put(t, w, store.Sets, "kept", "2")
		put(t, w, store.Sets, "lost", "2")
		put(t, w, store.Zones, "lost", "2")
		return errCaller
	})
	if !errors.Is(err, errCaller) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Update = %v, want the caller's error", err)
	}
	wantContent(t, s, store.Sets, "kept=1")
	wantContent(t, s, store.Zones)
	update(t, s, func(w store.Writer) { put(t, w, store.Sets, "next", "3") })
	wantContent(t, s, store.Sets, "kept=1", "next=3")
}

// recovered runs fn and returns the value of its panic.
func recovered(fn func()) (p any) {
	defer func() { p = recover() }()
	fn()
	return nil
}

// testRollbackOnPanic checks that a panic in an Update reaches the caller, and that nothing of the Update is kept.
func testRollbackOnPanic(t *testing.T, open Opener) {
	s := openNew(t, open)
	got := recovered(func() {
		_ = s.Update(func(w store.Writer) error {
			put(t, w, store.Sets, "lost", "1")
			// The store must not replace the value, because callers recover their own values by identity.
			panic(errCaller)
		})
	})
	if got != errCaller {
		t.Errorf("Update panicked with %v, want the caller's own value", got)
	}
	got = recovered(func() {
		_ = s.Update(func(w store.Writer) error {
			put(t, w, store.Sets, "lost", "1")
			w.Scan(store.Sets, nil, nil, func(_, _ []byte) bool { panic(errCaller) })
			return nil
		})
	})
	if got != errCaller {
		t.Errorf("Update panicked out of Scan with %v, want the caller's own value", got)
	}
	update(t, s, func(w store.Writer) { put(t, w, store.Sets, "next", "2") })
	wantContent(t, s, store.Sets, "next=2")
}

// testRollbackOnGoexit checks that t.Fatal inside an Update, which ends the goroutine, does not block the store.
func testRollbackOnGoexit(t *testing.T, open Opener) {
	s := openNew(t, open)
	goexit(func() {
		_ = s.Update(func(w store.Writer) error {
			put(t, w, store.Sets, "lost", "1")
			runtime.Goexit()
			return nil
		})
	})
	goexit(func() {
		_ = s.View(func(store.Reader) error {
			runtime.Goexit()
			return nil
		})
	})
	update(t, s, func(w store.Writer) { put(t, w, store.Sets, "next", "2") })
	wantContent(t, s, store.Sets, "next=2")
}

// testViewPasses checks that View returns the error of its function and does not swallow a panic.
func testViewPasses(t *testing.T, open Opener) {
	s := openNew(t, open)
	if err := s.View(func(store.Reader) error { return errCaller }); !errors.Is(err, errCaller) {
		t.Errorf("View = %v, want the caller's error", err)
	}
	got := recovered(func() {
		_ = s.View(func(store.Reader) error { panic(errCaller) })
	})
	if got != errCaller {
		t.Errorf("View panicked with %v, want the caller's own value", got)
	}
	var none *int
	got = recovered(func() {
		_ = s.View(func(store.Reader) error { *none = 1; return nil })
	})
	if got == nil {
		t.Error("a nil pointer in the caller's function did not panic")
	}
	wantContent(t, s, store.Sets)
}
