package access

import (
	"net/netip"
	"sync"
	"time"
)

// throttle slows down clients that fail repeatedly. After free failures, each further failure makes the client wait:
// first for the duration first, then twice as long each time, up to longest. A success clears the failures. So does a
// period of longest without an attempt.
type throttle struct {
	free    int
	first   time.Duration
	longest time.Duration

	mu      sync.Mutex // guards entries
	entries map[string]throttled
}

type throttled struct {
	failures int // attempts that failed, or whose result is not known yet
	last     time.Time
}

// maxThrottled bounds the memory: about 100 bytes for each entry.
const maxThrottled = 16384

// wait returns how long key must still wait, or 0 when it may try now.
func (t *throttle) wait(key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, time.Until(t.until(t.entries[key])))
}

// attempt counts an attempt of key as a failure, or returns how long key must wait before the next attempt. An attempt
// is counted before its result is known: otherwise all concurrent attempts would be free.
func (t *throttle) attempt(key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Now()
	e := t.entries[key]
	if wait := t.until(e).Sub(at); wait > 0 {
		return wait
	}
	if at.Sub(e.last) > t.longest {
		e.failures = 0
	}
	if t.entries == nil {
		t.entries = map[string]throttled{}
	}
	if len(t.entries) >= maxThrottled {
		t.makeRoomLocked(at)
	}
	t.entries[key] = throttled{e.failures + 1, at}
	return 0
}

// undo removes one attempt that did not fail. The failures of other clients with the same key stay counted.
func (t *throttle) undo(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[key]; e.failures > 1 {
		t.entries[key] = throttled{e.failures - 1, e.last}
	} else {
		delete(t.entries, key)
	}
}

// succeeded clears the failures of key.
func (t *throttle) succeeded(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, key)
}

// until returns the time at which the wait of an entry ends.
func (t *throttle) until(e throttled) time.Time {
	over := e.failures - t.free
	if over < 0 {
		return e.last
	}
	return e.last.Add(min(t.longest, t.first<<min(over, 20)))
}

// makeRoomLocked inspects some entries, in the random order of the map, and deletes the stale ones, or else the one
// whose wait ends first. Inspecting all entries would make each failure cost more, at the time of an attack. The caller
// holds mu.
func (t *throttle) makeRoomLocked(at time.Time) {
	var victim string
	var first time.Time
	room, looked := false, 0
	for k, e := range t.entries {
		if looked++; looked > 32 {
			break
		}
		if until := t.until(e); at.Sub(e.last) > t.longest {
			delete(t.entries, k)
			room = true
		} else if victim == "" || until.Before(first) {
			victim, first = k, until
		}
	}
	if !room {
		delete(t.entries, victim)
	}
}

// perAddress returns the throttle for failures of an address. It allows more than the one for failures of a user,
// because several people may share an address.
func perAddress() *throttle {
	return &throttle{free: 20, first: time.Second, longest: time.Minute}
}

// Failures counts invalid tokens, sessions and JWTs by the address that sent them, and returns how long the address
// must wait. Valid ones need not wait: nobody can guess one, to check one takes microseconds, and a faulty client must
// not lock out the others behind its NAT or proxy.
type Failures struct{ addrs *throttle }

// NewFailures returns an empty Failures.
func NewFailures() *Failures { return &Failures{perAddress()} }

// Count counts a failure of an address and returns 0, or returns how long the address must wait. It counts loopback
// addresses too, unlike Password, because it locks nobody out.
func (f *Failures) Count(from netip.Addr) time.Duration { return f.addrs.attempt(network(from)) }

// network returns the key by which failures of an address are counted: the address, or for IPv6 its /64, all of which
// one client can use.
func network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64) // 64 is a valid prefix length
		return p.String()
	}
	return a.String()
}
