package publish_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

// refusingStore runs updates and then refuses to keep them, like a full disk.
type refusingStore struct {
	store.Store
	refuse bool
}

var errFull = errors.Join(errors.New("disk full"), store.ErrUnavailable)

// Update implements store.Store.
func (s *refusingStore) Update(fn func(store.Writer) error) error {
	return s.Store.Update(func(w store.Writer) error {
		if err := fn(w); err != nil || !s.refuse {
			return err
		}
		return errFull
	})
}

func TestOnDone(t *testing.T) {
	bolt, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st := &refusingStore{Store: bolt}
	t.Cleanup(func() { bolt.Close() })
	p, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	z := newZone(t, p, "example.org.")
	www := set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.1")
	errEdit := errors.New("no")
	for _, tt := range []struct {
		name      string
		edit      func(*publish.Tx) error
		refuse    bool
		err       error
		committed bool
	}{
		{"nothing to write", func(*publish.Tx) error { return nil }, false, nil, true},
		{"the edit fails", func(*publish.Tx) error { return errEdit }, false, errEdit, false},
		{"the disk is full", func(tx *publish.Tx) error { _, err := tx.CreateSet(www); return err }, true, errFull, false},
		{"kept", func(tx *publish.Tx) error { _, err := tx.CreateSet(www); return err }, false, nil, true},
	} {
		var got []bool
		var answer string
		st.refuse = tt.refuse
		err := commit(t, p, func(tx *publish.Tx) error {
			tx.OnDone(func(committed bool) {
				got = append(got, committed)
				answer = served(p, "example.org.", "www.example.org.", rr.TypeA)
			})
			tx.OnDone(func(committed bool) { got = append(got, committed) })
			return tt.edit(tx)
		})
		if !errors.Is(err, tt.err) || !slices.Equal(got, []bool{tt.committed, tt.committed}) {
			t.Errorf("%s: Commit = %v, OnDone %v; want %v and %v twice", tt.name, err, got, tt.err, tt.committed)
		}
		if tt.name == "kept" && answer == "" {
			t.Errorf("OnDone ran before the change was served")
		}
	}
}

// TestOnDonePanics checks an edit that panics, itself or in Derive. It must panic in its caller and be reported as not
// committed, and the publisher must continue.
func TestOnDonePanics(t *testing.T) {
	derive := false
	p := open(t, publish.Options{Derive: func(*publish.Tx, []publish.Changed) error {
		if derive {
			panic("derive")
		}
		return nil
	}})
	z := newZone(t, p, "example.org.")
	for _, derive = range []bool{false, true} {
		var outcome []bool
		var raised any
		func() {
			defer func() { raised = recover() }()
			_ = commit(t, p, func(tx *publish.Tx) error {
				tx.OnDone(func(committed bool) { outcome = append(outcome, committed) })
				if !derive {
					panic("edit")
				}
				_, err := tx.CreateSet(set(t, z.ID, "a.example.org.", "A", 0, "192.0.2.1"))
				return err
			})
		}()
		if raised == nil || !slices.Equal(outcome, []bool{false}) {
			t.Errorf("derive %v: panic %v, outcome %v", derive, raised, outcome)
		}
	}
	derive = false
	newZone(t, p, "example.net.")
	if got := served(p, "example.org.", "a.example.org.", rr.TypeA); got != "" {
		t.Errorf("an edit that panicked is served: %s", got)
	}
}

// TestOnDoneGroup checks that no caller of a group continues before the outcome of every edit of the group is reported.
func TestOnDoneGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, publish.Options{})
		gate := make(chan struct{})
		var returned atomic.Bool
		early := false
		go func() {
			commit(t, p, func(tx *publish.Tx) error { <-gate; return tx.PutObject("x", "1", 1) })
			returned.Store(true)
		}()
		synctest.Wait()
		go commit(t, p, func(tx *publish.Tx) error {
			tx.OnDone(func(bool) {
				time.Sleep(time.Second) // long enough for the first caller
				early = returned.Load()
			})
			return tx.PutObject("x", "2", 2)
		})
		synctest.Wait()
		close(gate)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if early || !returned.Load() {
			t.Errorf("the first caller went on: before the second outcome %v, after it %v", early, returned.Load())
		}
	})
}
