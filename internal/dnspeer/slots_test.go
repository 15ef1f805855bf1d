package dnspeer

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

var (
	one = netip.MustParseAddr("192.0.2.1")
	two = netip.MustParseAddr("192.0.2.2")
)

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(3, 2)
		ctx := t.Context()
		took := func(a netip.Addr) bool { return s.take(ctx, a, time.Nanosecond) }
		for i := range 3 {
			if took(one) != (i < 2) {
				t.Fatalf("a client of two gets slot %d: %v", i, i >= 2)
			}
		}
		late := make(chan bool)
		go func() { late <- s.take(ctx, one, time.Minute) }()
		synctest.Wait()
		if !took(two) { // past the one in line, whose share is used up
			t.Error("another client waits for one that has its share")
		}
		if took(two) {
			t.Error("there are more than three")
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
		if s.running != 0 || len(s.clients) != 0 || len(s.line) != 0 {
			t.Errorf("in the end %d run, %d clients, %d in line", s.running, len(s.clients), len(s.line))
		}
	})
}

func TestSlotsEndWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 1)
		s.take(t.Context(), one, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan bool)
		go func() { late <- s.take(ctx, two, time.Hour) }()
		synctest.Wait()
		cancel()
		if <-late || len(s.line) != 0 {
			t.Error("waits on")
		}
	})
}
