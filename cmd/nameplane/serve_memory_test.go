package main

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTidyMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var allocated, freed atomic.Uint64
		m := tidyMemory{allocated: allocated.Load, free: func() { freed.Add(1) }}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.run(ctx) }()
		want := func(n uint64, when string) {
			t.Helper()
			synctest.Wait()
			if got := freed.Load(); got != n {
				t.Errorf("%s: freed %d times, want %d", when, got, n)
			}
		}
		time.Sleep(time.Minute)
		want(1, "with nothing to do after the start")
		for range 40 { // work
			allocated.Add(tidyWorth)
			time.Sleep(tidyPeriod / 2)
		}
		want(1, "while it works")
		time.Sleep(3 * tidyPeriod)
		want(2, "at rest")
		allocated.Add(tidyWorth / 2)
		time.Sleep(time.Minute)
		want(2, "after little work")
		allocated.Add(tidyWorth)
		time.Sleep(time.Minute)
		want(3, "at rest again")
		stop()
		<-ended
	})
}
