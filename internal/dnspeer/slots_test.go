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

// TestSlots: of eight slots a client has two, and so has a project, from however many addresses it comes.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8)
		ctx := t.Context()
		took := func(by parties) bool { return s.take(ctx, by, time.Nanosecond) }
		for i := range 3 {
			if took(one) != (i < 2) {
				t.Fatalf("a client of two gets slot %d: %v", i, i >= 2)
			}
		}
		late := make(chan bool)
		go func() { late <- s.take(ctx, one, time.Minute) }()
		synctest.Wait()
		if took(parties{two.client, one.project}) || took(parties{one.client, two.project}) {
			t.Error("a project gets a third slot from another address, or a client with another project's zone")
		}
		if !took(two) { // past the one in line, whose share is used up
			t.Error("another client waits for one that has its share")
		}
		time.Sleep(time.Second)
		s.give(one)
		if !<-late {
			t.Error("a free slot was not given on")
		}
		for range 2 {
			s.give(one)
		}
		s.give(two)
		if s.running != 0 || len(s.clients) != 0 || len(s.projects) != 0 || len(s.line) != 0 {
			t.Errorf("in the end %+v", s)
		}
	})
}

// TestSlotsInAll: whoever they are for, there are no more than there are.
func TestSlotsInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8)
		for i := range byte(9) {
			by := parties{client: netip.AddrFrom4([4]byte{192, 0, 2, i})} // the operator's
			if s.take(t.Context(), by, time.Nanosecond) != (i < 8) {
				t.Errorf("slot %d", i)
			}
		}
	})
}

func TestSlotsEndWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4)
		s.take(t.Context(), one, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan bool)
		go func() { late <- s.take(ctx, one, time.Hour) }()
		synctest.Wait()
		cancel()
		if <-late || len(s.line) != 0 {
			t.Error("waits on")
		}
	})
}
