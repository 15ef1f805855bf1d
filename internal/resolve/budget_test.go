package resolve

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestBudgetInFlight queries 65 servers that take a second each: only 64 queries are in flight at a time.
func TestBudgetInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100, 10, nil)
		began, last := time.Now(), time.Duration(0)
		done := make(chan time.Duration)
		for i := range inFlight + 1 {
			go func() {
				if err := b.Acquire(t.Context(), netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				b.Release()
				done <- time.Since(began)
			}()
		}
		for range inFlight + 1 {
			last = max(last, <-done)
		}
		if last != 2*time.Second {
			t.Errorf("took %v, want 2s", last)
		}
	})
}

// TestBudgetParts checks that queries of a part count against the whole, and that those of Separate do not.
func TestBudgetParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(5, 2, nil)
		part, separate := b.Part(3), b.Separate(1)
		wait := func(b *Budget) error { return b.Wait(t.Context(), paced) }
		for _, step := range []struct {
			of              *Budget
			err             error
			whole, of3, of1 int
		}{
			{part, nil, 4, 2, 1}, {separate, nil, 4, 2, 0}, {separate, ErrBudget, 4, 2, 0},
			{b, nil, 3, 2, 0}, {b, nil, 2, 2, 0},
			{b, nil, 1, 1, 0}, {part, nil, 0, 0, 0}, {part, ErrBudget, 0, 0, 0}, {b, ErrBudget, 0, 0, 0},
		} {
			err := wait(step.of)
			if !errors.Is(err, step.err) || b.Left() != step.whole || part.Left() != step.of3 || separate.Left() != step.of1 {
				t.Errorf("%v: %d, %d and %d are left, want %+v", err, b.Left(), part.Left(), separate.Left(), step)
			}
		}
		began := time.Now()
		if err := wait(b.Separate(1)); err != nil || time.Since(began) != time.Second {
			t.Errorf("a separate budget waited %v, %v; want 1s: the pace is shared", time.Since(began), err)
		}
	})
}

// TestBudgetShared checks that two runs take turns at one server, although the first one queued all its queries
// before.
func TestBudgetShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &Pace{Rate: 2}
		first, second := NewBudget(20, 2, shared), NewBudget(20, 2, shared)
		ctx, cancel := context.WithCancel(t.Context())
		for range 20 {
			go func() { _ = first.Wait(ctx, paced) }()
		}
		synctest.Wait()
		began := time.Now()
		if err := second.Wait(ctx, paced); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("the second run waited %v, %v", time.Since(began), err)
		}
		cancel()
	})
}
