package registry

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedTogether queries one server from many goroutines. Most are refused, and must not use up the rate.
func TestRefusedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limiter
		now, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 2000 {
					l.reserve(now, "rdap.example.test")
				}
			})
		}
		all.Wait()
		soon, cancel := context.WithTimeout(t.Context(), 2*interval)
		defer cancel()
		if err := l.wait(soon, "rdap.example.test"); err != nil {
			t.Errorf("a server that allows %d queries cannot be queried: %v", burst, err)
		}
	})
}
