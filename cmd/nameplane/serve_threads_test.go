package main

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/zone"
)

// spareTest calls fn with a running spareThread, in a bubble.
func spareTest(t *testing.T, held bool, fn func(s *spareThread, want func(threads int, when string))) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	synctest.Test(t, func(t *testing.T) {
		s := newSpareThread(func() bool { return held })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.run(ctx) }()
		fn(s, func(spare int, when string) {
			t.Helper()
			if got := runtime.GOMAXPROCS(0); got != before+spare {
				t.Errorf("%s: %d threads, want %d", when, got, before+spare)
			}
		})
		cancel()
		<-ended
	})
}

func TestSpareThreadHeld(t *testing.T) {
	spareTest(t, true, func(s *spareThread, want func(int, string)) {
		want(0, "at first")
		for range 40 {
			s.changed(nil)
			want(1, "while changes come")
			time.Sleep(spareTime / 4)
		}
		time.Sleep(3 * spareTime)
		want(0, "when they stay away")
		s.changed(nil)
		want(1, "when one comes again")
	})
}

func TestSpareThreadFree(t *testing.T) {
	spareTest(t, false, func(s *spareThread, want func(int, string)) {
		for range 40 {
			s.changed(nil)
			want(0, "when no change holds a thread")
			time.Sleep(spareTime)
		}
	})
}

// TestBetween: with one processor that is never free, whoever waits for a descriptor is found between queries.
func TestBetween(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	zones := zone.NewSnapshot()
	between := newSpareThread(nil).between(func() *zone.Snapshot { return zones })
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var read atomic.Int64
	go func() {
		for b := make([]byte, 1); ; read.Add(1) {
			if _, err := in.Read(b); err != nil {
				return
			}
		}
	}()
	defer out.Close()
	atOnce := 0 // not always: Go's own watchman may just have found it
	for sent := range int64(20) {
		if _, err := out.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); time.Since(begin) <= lookTime; {
		}
		if got := between(); got != zones {
			t.Fatalf("the zones are %v, want %v", got, zones)
		}
		if read.Load() == sent+1 {
			atOnce++
		}
		for read.Load() != sent+1 {
			runtime.Gosched()
		}
	}
	if atOnce < 15 {
		t.Errorf("%d of 20 octets were read at once", atOnce)
	}
}
