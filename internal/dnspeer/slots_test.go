package dnspeer

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

var (
	one = parties{netip.MustParseAddr("192.0.2.1"), "p"}
	two = parties{netip.MustParseAddr("192.0.2.2"), "q"}
)

// TestSlots checks that a client gets at most two of eight slots, and so does a project with clients at many addresses.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8)
		ctx := t.Context()
		took := func(by parties) bool { return s.acquire(ctx, by, time.Nanosecond) }
		for i := range 3 {
			if took(one) != (i < 2) {
				t.Fatalf("a client with two slots gets slot %d: %v", i, i >= 2)
			}
		}
		late := make(chan bool)
		go func() { late <- s.acquire(ctx, one, time.Minute) }()
		synctest.Wait()
		if took(parties{two.client, one.project}) || took(parties{one.client, two.project}) {
			t.Error("a project gets a third slot from another address, or a client with another project's zone")
		}
		if !took(two) { // before the waiting transfer, whose share is used up
			t.Error("another client waits for one that has its share")
		}
		time.Sleep(time.Second)
		s.release(one)
		if !<-late {
			t.Error("a free slot was not given on")
		}
		for range 2 {
			s.release(one)
		}
		s.release(two)
		if s.running != 0 || len(s.clients) != 0 || len(s.projects) != 0 || len(s.queue) != 0 {
			t.Errorf("in the end %+v", s)
		}
	})
}

// TestSlotsInAll checks the total number of slots.
func TestSlotsInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8)
		for i := range byte(9) {
			by := parties{client: netip.AddrFrom4([4]byte{192, 0, 2, i})} // a secondary of the operator
			if s.acquire(t.Context(), by, time.Nanosecond) != (i < 8) {
				t.Errorf("slot %d", i)
			}
		}
	})
}

func TestSlotsEndWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4)
		s.acquire(t.Context(), one, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan bool)
		go func() { late <- s.acquire(ctx, one, time.Hour) }()
		synctest.Wait()
		cancel()
		if <-late || len(s.queue) != 0 {
			t.Error("still waits")
		}
	})
}
