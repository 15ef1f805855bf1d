package dnsnameresolver

import (
	"maps"
	"slices"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

const (
	// Maximum number of names and addresses that are remembered for one object. Further ones are allowed by leases only.
	// The limits are far above the room of a status, and bound the memory that a server can fill by inventing addresses.
	// There is also a limit for all objects together, because a client that creates rules may create thousands of objects.
	// An address takes 255 bytes.
	maxMemories, maxKnown, maxKnownTotal = 8192, 65536, 4 * maxKnown
	sweepEvery                           = 10 * time.Second
)

// memory is the Memory of one name and its schedule.
type memory struct {
	learn.Memory
	dirty bool
	due   time.Time
}

// roomLocked makes room for one more name and the given number of addresses, if possible. It reports whether there is
// room for the addresses.
func (o *object) roomLocked(addrs int, now time.Time) bool {
	room := func() bool { return o.known+addrs <= maxKnown && o.total.Load()+int64(addrs) <= maxKnownTotal }
	if len(o.names) < maxMemories && room() {
		return true
	}
	if now.Before(o.lastSweep.Add(time.Second)) { // do not sweep for every query: there may be nothing to free
		return room()
	}
	o.sweepLocked(now)
	return room()
}

// sweepLocked deletes the memories that are no longer needed.
func (o *object) sweepLocked(now time.Time) {
	o.lastSweep = now
	for n, m := range o.names {
		if !m.dirty && m.Idle(now) {
			o.forgetLocked(n)
		}
	}
}

func (o *object) forgetLocked(name string) {
	o.countLocked(-o.names[name].Known())
	delete(o.names, name)
}

// countLocked adds n to the number of remembered addresses.
func (o *object) countLocked(n int) {
	o.known += n
	o.total.Add(int64(n))
}

// drop deletes all memories. No other object will inherit them.
func (o *object) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countLocked(-o.known)
	o.names, o.dropped = map[string]*memory{}, true
}

// inUse returns the number of remembered names and addresses, or 0 if no client may use any of them.
func (o *object) inUse(now time.Time) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.names {
		if m.Alive(now) {
			return o.known + len(o.names)
		}
	}
	return 0
}

// inherit takes over the memories of a deleted object with the same pattern: clients still use those addresses.
func (o *object) inherit(old *object, now time.Time) (inherited bool) {
	old.mu.Lock()
	names := old.names
	old.countLocked(-old.known)
	old.names, old.dropped, old.successor = map[string]*memory{}, true, o
	old.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, m := range names {
		if m.Alive(now) && o.names[n] == nil {
			o.names[n] = m
			o.countLocked(m.Known())
			m.MarkUnwritten()
			m.dirty, inherited = true, true
			o.gen++
		}
	}
	return inherited
}

// sweep deletes unneeded memories of objects that receive no queries, if the total is large.
func (e *engine) sweep(now time.Time) {
	if e.known.Load() < maxKnownTotal/2 {
		return
	}
	e.mu.Lock()
	e.forgetLocked()
	objects := slices.Collect(maps.Values(e.objects))
	e.mu.Unlock()
	for _, o := range objects {
		o.mu.Lock()
		o.sweepLocked(now)
		o.mu.Unlock()
	}
}
