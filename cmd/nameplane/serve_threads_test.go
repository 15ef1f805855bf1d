package main

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/store"
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

func TestSpareThreadLate(t *testing.T) {
	// commit is told of n changes in a row that took a time.
	commit := func(s *spareThread, n int, took time.Duration) {
		for range n {
			made := time.Now()
			time.Sleep(took)
			s.changed([]store.Change{{Time: made}})
		}
	}
	spareTest(t, false, func(s *spareThread, want func(int, string)) {
		commit(s, 2000, lateTime/5)
		want(0, "while changes are quick")
		for range 10 {
			commit(s, lateRow-1, 2*lateTime)
			commit(s, 1, lateTime/5)
		}
		want(0, "when some are late")
		commit(s, lateRow, 2*lateTime)
		want(1, "when they are late in a row")
		commit(s, 1000, lateTime/5)
		want(1, "soon after")
		commit(s, int(2*spareRetry/lateTime), lateTime)
		want(0, "when it is tried without again")
		commit(s, lateRow, 2*lateTime)
		time.Sleep(3 * spareTime)
		want(0, "when changes stay away")
	})
}
