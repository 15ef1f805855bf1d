package boltstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/storetest"
)

// TestStage runs the contract of Stages with syncs beside the next Update and without, whatever processors there are.
func TestStage(t *testing.T) {
	for _, hold := range []bool{true, false} {
		t.Run(fmt.Sprint(hold), func(t *testing.T) {
			storetest.RunStage(t, func(t *testing.T, dir string) store.Store {
				s := open(t, filepath.Join(dir, "store.db"))
				s.hold, s.maxPending = hold, 40
				return s
			})
		})
	}
}

// TestStageFails: the log cannot be written while the next Stage runs. Both fail, nothing of either is seen, also after a
// crash, and when the log can be written again things go on from what was durable.
func TestStageFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer s.Close()
	s.hold = true
	put := func(k string) func(store.Writer) error {
		return func(w store.Writer) error { return w.Put(store.Sets, []byte(k), []byte("v")) }
	}
	good, err := s.Stage(put("good"))
	if err != nil || good.Err() != nil {
		t.Fatal(err, good.Err())
	}
	file := s.wal.f
	readOnly, err := os.Open(walPath(path))
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	s.wal.f = readOnly
	first, err := s.Stage(put("first"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Stage(func(w store.Writer) error {
		if w.Get(store.Sets, []byte("first")) == nil {
			t.Error("a Stage does not see the one before")
		}
		return put("second")(w)
	})
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(first.Err(), store.ErrUnavailable) {
		t.Fatalf("Stages = %v and %v, want ErrUnavailable of both", first.Err(), err)
	}
	want := map[string]string{"good": "v"}
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Fatalf("after the failure (-want +got):\n%s", diff)
	}
	s.wal.f = file
	later, err := s.Stage(put("later"))
	if err != nil || later.Err() != nil {
		t.Fatal(err, later.Err())
	}
	want["later"] = "v"
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Errorf("when it works again (-want +got):\n%s", diff)
	}
	p := &power{s: s, sure: readFile(t, path), rnd: rand.New(rand.NewPCG(1, 1))}
	after := open(t, p.cut(t))
	defer after.Close()
	if diff := cmp.Diff(want, contents(t, after)); diff != "" {
		t.Errorf("after a crash (-want +got):\n%s", diff)
	}
}

// TestHoldsThreadBeside: a change lands inside the Stage of the next one, and who is told of it may ask.
func TestHoldsThreadBeside(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	s.hold = true
	_, err := s.Stage(func(store.Writer) error {
		answered := make(chan bool, 1)
		go func() { answered <- s.HoldsThread() }()
		select {
		case held := <-answered:
			if !held {
				t.Error("it holds no thread")
			}
		case <-time.After(10 * time.Second):
			t.Error("it waits for the Stage that asks")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
