package mecapi

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestChangeLimits(t *testing.T) {
	var p changeLimits
	now := time.Unix(1_700_000_000, 0)
	for i := range changeBurst {
		if _, ok := p.take("a", now); !ok {
			t.Fatalf("change %d of a burst was refused", i)
		}
	}
	wait, ok := p.take("a", now)
	if ok || wait <= 0 || wait > changeInterval {
		t.Errorf("behind a burst: wait %v, %v", wait, ok)
	}
	if _, ok := p.take("b", now); !ok {
		t.Error("another application pays too")
	}
	if _, ok := p.take("a", now.Add(wait)); !ok {
		t.Error("refused after the wait that take returned")
	}
	if _, ok := p.take("a", now.Add(wait)); ok {
		t.Error("the wait paid for two changes")
	}
	for i := range 2 * maxLimiters {
		p.take(fmt.Sprint(i), now.Add(time.Duration(i)*time.Second))
	}
	if len(p.apps) > maxLimiters {
		t.Errorf("%d applications are remembered", len(p.apps))
	}
}

// TestChangeLimitsConcurrent makes changes from many goroutines. Refused changes use no tokens.
func TestChangeLimitsConcurrent(t *testing.T) {
	var p changeLimits
	now := time.Unix(1_700_000_000, 0)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 * changeBurst {
				p.take("a", now)
			}
		})
	}
	all.Wait()
	if wait, ok := p.take("a", now.Add(changeInterval)); !ok {
		t.Errorf("refused changes have to be waited for: %v more", wait)
	}
}
