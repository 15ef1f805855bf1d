package resolve

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestBudgetInFlight has 65 servers that take a second each: 64 are asked at a time.
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

// TestBudgetParts sees that a part counts for the whole, and what is beside does not.
func TestBudgetParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(5, 2, nil)
		part, beside := b.Part(3), b.Beside(1)
		turn := func(b *Budget) error { return b.Turn(t.Context(), paced) }
		for _, step := range []struct {
			of              *Budget
			err             error
			whole, of3, of1 int
		}{
			{part, nil, 4, 2, 1}, {beside, nil, 4, 2, 0}, {beside, ErrBudget, 4, 2, 0}, {b, nil, 3, 2, 0}, {b, nil, 2, 2, 0},
			{b, nil, 1, 1, 0}, {part, nil, 0, 0, 0}, {part, ErrBudget, 0, 0, 0}, {b, ErrBudget, 0, 0, 0},
		} {
			if err := turn(step.of); !errors.Is(err, step.err) || b.Left() != step.whole || part.Left() != step.of3 || beside.Left() != step.of1 {
				t.Errorf("%v: %d, %d and %d are left, want %+v", err, b.Left(), part.Left(), beside.Left(), step)
			}
		}
		began := time.Now()
		if err := turn(b.Beside(1)); err != nil || time.Since(began) != time.Second {
			t.Errorf("what is beside waits %v, %v; the server has its pace", time.Since(began), err)
		}
	})
}

// TestBudgetShared sees that two runs get turns at one server evenly, although the first asked for all of its turns before.
func TestBudgetShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &Pace{Rate: 2}
		first, second := NewBudget(20, 2, shared), NewBudget(20, 2, shared)
		ctx, cancel := context.WithCancel(t.Context())
		for range 20 {
			go func() { _ = first.Turn(ctx, paced) }()
		}
		synctest.Wait()
		began := time.Now()
		if err := second.Turn(ctx, paced); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("the second run waited %v, %v", time.Since(began), err)
		}
		cancel()
	})
}
