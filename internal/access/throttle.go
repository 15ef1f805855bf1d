package access

import (
	"sync"
	"time"
)

// Throttle slows down who fails again and again. After Free failures each further one closes the door for a while: First,
// then twice as long each time, up to Longest. A failure is forgotten after Longest without another, or by a success.
type Throttle struct {
	Free    int
	First   time.Duration
	Longest time.Duration

	mu      sync.Mutex // guards entries
	entries map[string]throttled
}

type throttled struct {
	failures int
	last     time.Time
	until    time.Time
}

// maxThrottled bounds the memory: some 100 octets each.
const maxThrottled = 16384

// Wait is how long key must still wait; 0 when it may try now.
func (t *Throttle) Wait(key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, time.Until(t.entries[key].until))
}

// Failed notes a failure of key.
func (t *Throttle) Failed(key string) {
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
	if over := e.failures - t.Free; over >= 0 {
		e.until = at.Add(min(t.Longest, t.First<<min(over, 20)))
	}
	if len(t.entries) >= maxThrottled {
		t.makeRoomLocked(at)
	}
	t.entries[key] = e
}

// Succeeded forgets the failures of key.
func (t *Throttle) Succeeded(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, key)
}

func (t *Throttle) staleLocked(e throttled, at time.Time) bool {
	return at.After(e.until) && at.Sub(e.last) > t.Longest
}

// makeRoomLocked looks at some entries, in the map's own random order, and drops the stale ones, or else the one whose
// wait ends first. To look at all of them would make each failure cost more, just when somebody makes very many.
func (t *Throttle) makeRoomLocked(at time.Time) {
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
