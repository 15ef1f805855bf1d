package iterate

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(Options{InFlight: 2}.withDefaults())
		began, last := time.Now(), time.Duration(0)
		done := make(chan time.Duration)
		for i := range 6 { // six servers, a second each, two at a time
			go func() {
				if err := b.acquire(t.Context(), netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				b.release()
				done <- time.Since(began)
			}()
		}
		for range 6 {
			last = max(last, <-done)
		}
		if last != 3*time.Second {
			t.Errorf("took %v, want 3s", last)
		}
	})
}
