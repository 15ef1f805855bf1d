package mecapi

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var p pace
	now := time.Unix(1_700_000_000, 0)
	for i := range paceBurst {
		if _, ok := p.take("a", now); !ok {
			t.Fatalf("change %d of a burst was refused", i)
		}
	}
	wait, ok := p.take("a", now)
	if ok || wait <= 0 || wait > pacePause {
		t.Errorf("behind a burst: wait %v, %v", wait, ok)
	}
	if _, ok := p.take("b", now); !ok {
		t.Error("another application pays too")
	}
	if _, ok := p.take("a", now.Add(wait)); !ok {
		t.Error("refused after the wait that was told")
	}
	if _, ok := p.take("a", now.Add(wait)); ok {
		t.Error("the wait paid for two changes")
	}
	for i := range 2 * maxPaced {
		p.take(fmt.Sprint(i), now.Add(time.Duration(i)*time.Second))
	}
	if len(p.apps) > maxPaced {
		t.Errorf("%d applications are remembered", len(p.apps))
	}
}

// TestPaceTogether makes changes from many connections at once. Those that are refused cost nothing.
func TestPaceTogether(t *testing.T) {
	var p pace
	now := time.Unix(1_700_000_000, 0)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 * paceBurst {
				p.take("a", now)
			}
		})
	}
	all.Wait()
	if wait, ok := p.take("a", now.Add(pacePause)); !ok {
		t.Errorf("refused changes have to be waited for: %v more", wait)
	}
}
