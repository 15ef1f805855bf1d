package access

import (
	"sync"
	"time"
)

// throttle slows down clients that fail again and again. After free failures each further one makes the client wait: for
// first, then twice as long each time, up to longest. A success forgets the failures, and so does longest without another.
type throttle struct {
	free    int
	first   time.Duration
	longest time.Duration

	mu      sync.Mutex // guards entries
	entries map[string]throttled
}

type throttled struct {
	failures int
	last     time.Time
	until    time.Time
}

// maxThrottled bounds the memory: some 100 bytes each.
const maxThrottled = 16384

// wait returns how long key must still wait; 0 when it may try now.
func (t *throttle) wait(key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, time.Until(t.entries[key].until))
}

// failed notes a failure of key.
func (t *throttle) failed(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil {
		t.entries = map[string]throttled{}
	}
	at := time.Now()
	e := t.entries[key]
	if t.staleLocked(e, at) {
		e = throttled{}
	}
	e.failures++
	e.last = at
	if over := e.failures - t.free; over >= 0 {
		e.until = at.Add(min(t.longest, t.first<<min(over, 20)))
	}
	if len(t.entries) >= maxThrottled {
		t.makeRoomLocked(at)
	}
	t.entries[key] = e
}

// succeeded forgets the failures of key.
func (t *throttle) succeeded(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, key)
}

func (t *throttle) staleLocked(e throttled, at time.Time) bool {
	return at.After(e.until) && at.Sub(e.last) > t.longest
}

// makeRoomLocked looks at some entries, in the map's own random order, and drops the stale ones, or else the one whose
// wait ends first. To look at all of them would make each failure cost more, just when somebody makes very many.
func (t *throttle) makeRoomLocked(at time.Time) {
	var victim string
	var first time.Time
	room, looked := false, 0
	for k, e := range t.entries {
		if looked++; looked > 32 {
			break
		}
		if t.staleLocked(e, at) {
			delete(t.entries, k)
			room = true
		} else if victim == "" || e.until.Before(first) {
			victim, first = k, e.until
		}
	}
	if !room {
		delete(t.entries, victim)
	}
}
