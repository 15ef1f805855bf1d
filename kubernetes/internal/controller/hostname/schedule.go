package hostname

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// schedule has the time at which each hostname is checked next. A hostname whose objects changed is checked at once,
// before those that are only due. While both wait they take turns: a tenant that changes objects all the time must not
// stop the checks of others. A hostname is never checked twice at the same time.
type schedule struct {
	mu     sync.Mutex // guards the following
	slots  map[Key]*slot
	urgent []*slot // in the order of their changes
	timed  slots   // by time
	turn   bool    // the next one is taken from timed, if one is due
	wake   chan struct{}
}

// slot is the entry of a hostname.
type slot struct {
	key     Key
	due     time.Time
	at      int  // position in timed; -1: not there
	queued  bool // in urgent
	running bool
	again   bool // its objects changed while it was running
}

func newSchedule() *schedule {
	return &schedule{slots: map[Key]*slot{}, wake: make(chan struct{}, 1)}
}

// now schedules a hostname for the next free worker.
func (s *schedule) now(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.slotLocked(key)
	switch {
	case e.running:
		e.again = true
	case !e.queued:
		if e.at >= 0 {
			heap.Remove(&s.timed, e.at)
		}
		e.queued = true
		s.urgent = append(s.urgent, e)
		s.wakeLocked()
	}
}

// at schedules a hostname for a time, unless it waits for an earlier one.
func (s *schedule) at(key Key, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atLocked(s.slotLocked(key), due)
}

func (s *schedule) atLocked(e *slot, due time.Time) {
	switch {
	case e.running || e.queued:
		return
	case e.at < 0:
		e.due = due
		heap.Push(&s.timed, e)
	case due.Before(e.due):
		e.due = due
		heap.Fix(&s.timed, e.at)
	}
	s.wakeLocked()
}

func (s *schedule) slotLocked(key Key) *slot {
	e := s.slots[key]
	if e == nil {
		e = &slot{key: key, at: -1}
		s.slots[key] = e
	}
	return e
}

func (s *schedule) wakeLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next blocks until a hostname is due, and returns it. The caller must call done. ok is false when ctx ends.
func (s *schedule) next(ctx context.Context) (key Key, ok bool) {
	for {
		e, wait := s.take(time.Now())
		if e != nil {
			return e.key, true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return Key{}, false
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// idle is the time after which next examines the schedule if nothing is in it.
const idle = time.Hour

// take returns the hostname to check now, or the time until the next one is due.
func (s *schedule) take(now time.Time) (*slot, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := len(s.timed) > 0 && !s.timed[0].due.After(now)
	var e *slot
	switch {
	case len(s.urgent) > 0 && !(due && s.turn):
		e, s.urgent, s.turn = s.urgent[0], s.urgent[1:], true
		e.queued = false
	case due:
		e = heap.Pop(&s.timed).(*slot)
		s.turn = false
	case len(s.timed) > 0:
		return nil, s.timed[0].due.Sub(now)
	default:
		return nil, idle
	}
	e.running = true
	s.wakeLocked() // another worker may find more
	return e, 0
}

// done ends the check of a hostname. It is checked again at due, or at once if its objects changed meanwhile. With a
// zero time the hostname is dropped.
func (s *schedule) done(key Key, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.slots[key]
	e.running = false
	switch {
	case e.again:
		e.again, e.queued = false, true
		s.urgent = append(s.urgent, e)
		s.wakeLocked()
	case due.IsZero():
		delete(s.slots, key)
	default:
		s.atLocked(e, due)
	}
}

// slots is a heap by time.
type slots []*slot

func (h slots) Len() int           { return len(h) }
func (h slots) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h slots) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is called by package heap.
func (h *slots) Push(x any) {
	e := x.(*slot)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop is called by package heap.
func (h *slots) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h, e.at = old[:len(old)-1], -1
	return e
}
