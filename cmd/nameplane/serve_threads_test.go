package main

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpareThread(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	synctest.Test(t, func(t *testing.T) {
		s := newSpareThread()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.run(ctx) }()
		want := func(n int, when string) {
			t.Helper()
			if got := runtime.GOMAXPROCS(0); got != n {
				t.Errorf("%s: %d threads, want %d", when, got, n)
			}
		}
		want(before, "at first")
		for range 20 {
			s.changed(nil)
			want(before+1, "while changes come")
			time.Sleep(spareTime / 4)
		}
		time.Sleep(3 * spareTime)
		want(before, "when they stay away")
		s.changed(nil)
		want(before+1, "when one comes again")
		cancel()
		<-ended
	})
}
