package hostname

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func key(host string) Key { return Key{"shop", host} }

// TestScheduleOrder checks that changes go first, take turns with what is due, and never run twice at a time.
func TestScheduleOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule()
		now := time.Now()
		take := func(want string) {
			t.Helper()
			e, _ := s.take(time.Now())
			if e == nil && want != "" || e != nil && e.key.Host != want {
				t.Errorf("took %+v, want %s", e, want)
			}
		}
		s.at(key("due1"), now)
		s.at(key("due2"), now.Add(time.Second))
		s.at(key("later"), now.Add(time.Hour))
		s.at(key("later"), now.Add(time.Minute))
		s.at(key("later"), now.Add(2*time.Hour)) // not postponed
		time.Sleep(time.Second)
		for _, h := range []string{"a", "b", "c", "a", "due2"} {
			s.now(key(h))
		}
		for _, want := range []string{"a", "due1", "b", "c", "due2", ""} {
			take(want)
		}
		s.now(key("a")) // it is running
		take("")
		s.done(key("a"), now.Add(time.Hour))
		take("a")
		s.done(key("a"), time.Time{})
		s.done(key("b"), time.Time{})
		if len(s.slots) != 4 {
			t.Errorf("%d hostnames are left", len(s.slots))
		}
		ctx, cancel := context.WithCancel(t.Context())
		if k, ok := s.next(ctx); !ok || k.Host != "later" || time.Since(now) != time.Minute {
			t.Errorf("%v %v after %v", k, ok, time.Since(now))
		}
		time.AfterFunc(time.Second, func() { s.now(key("x")) })
		if k, ok := s.next(ctx); !ok || k.Host != "x" {
			t.Errorf("a change does not wake a worker: %v", k)
		}
		time.AfterFunc(time.Second, cancel)
		if _, ok := s.next(ctx); ok {
			t.Error("next goes on after the end")
		}
	})
}
