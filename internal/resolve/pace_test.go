package resolve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var paced = netip.MustParseAddr("192.0.2.53")

// TestPace checks that many callers that share a pace get the rate of one, in the order of their arrival.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := &Pace{Rate: 4}, time.Now()
		var mu sync.Mutex
		var order []string
		var at []time.Duration
		var all sync.WaitGroup
		for i := range 6 {
			for j := range 3 {
				all.Go(func() {
					if err := p.wait(t.Context(), paced); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order, at = append(order, fmt.Sprintf("%d%d", i, j)), append(at, time.Since(began))
				})
				synctest.Wait() // fix the order of arrival
			}
		}
		other := time.Now()
		if err := p.wait(t.Context(), netip.MustParseAddr("192.0.2.54")); err != nil || time.Since(other) > 0 {
			t.Errorf("another server: %v after %v", err, time.Since(other))
		}
		all.Wait()
		for i := range at {
			if i >= 4 && at[i]-at[i-4] < time.Second {
				t.Errorf("queries were allowed at %v: more than 4 in a second", at[i-4:i+1])
			}
		}
		if last := at[len(at)-1]; last != 4*time.Second {
			t.Errorf("18 queries took %v, want 4s", last)
		}
		if !slices.IsSorted(order) {
			t.Errorf("queries were allowed in the order %s", strings.Join(order, " "))
		}
	})
}

// TestPaceGivenUp checks that callers that give up neither use up queries nor delay the others.
func TestPaceGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := &Pace{Rate: 1}, time.Now()
		if err := p.wait(t.Context(), paced); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				if err := p.wait(ctx, paced); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("after the deadline: %v", err)
				}
			})
		}
		synctest.Wait()
		if err := p.wait(t.Context(), paced); err != nil || time.Since(began) != time.Second {
			t.Errorf("the caller without a deadline: %v after %v, want 1s", err, time.Since(began))
		}
		all.Wait()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.wait(over, paced); !errors.Is(err, context.Canceled) {
			t.Errorf("with a canceled context: %v", err)
		}
		if err := p.wait(t.Context(), paced); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("after that: %v after %v, want 2s", err, time.Since(began))
		}
	})
}

// TestPaceBounded checks that the number of lanes is limited, and that the rate limit still applies to each server.
func TestPaceBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pace{Rate: 1}
		for i := range 3 * maxLanes {
			if err := p.wait(t.Context(), netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.lanes); n > maxLanes {
			t.Errorf("%d lanes", n)
		}
		if len(p.lanes) == 0 {
			t.Error("there are no lanes for the servers of the last second")
		}
	})
}
