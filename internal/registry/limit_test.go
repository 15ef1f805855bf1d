package registry

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedTogether asks for one server from many goroutines at once, most of which are refused. Those cost nothing.
func TestRefusedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limiter
		now, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 2000 {
					l.take(now, "rdap.example.test")
				}
			})
		}
		all.Wait()
		soon, cancel := context.WithTimeout(t.Context(), 2*interval)
		defer cancel()
		if err := l.wait(soon, "rdap.example.test"); err != nil {
			t.Errorf("a server that was asked %d times cannot be asked once more: %v", burst, err)
		}
	})
}
