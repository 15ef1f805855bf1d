package dnsnameresolver

import (
	"maps"
	"slices"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

const (
	// Names and addresses remembered for one object; others live by their leases. They are far more than a status has room
	// for, and bound what an authority that makes up addresses can fill. Addresses of all objects together are bounded, too: whoever makes
	// rules may have thousands of objects. One takes 255 octets.
	maxMemories, maxKnown, maxKnownTotal = 8192, 65536, 4 * maxKnown
	sweepEvery                           = 10 * time.Second
)

// memory is what is known of one name.
type memory struct {
	learn.Memory
	dirty bool
	due   time.Time
}

// roomLocked makes room for the memory of one more name and of so many addresses, if it can, and reports whether there is some for
// the addresses.
func (o *object) roomLocked(addrs int, now time.Time) bool {
	room := func() bool { return o.known+addrs <= maxKnown && o.total.Load()+int64(addrs) <= maxKnownTotal }
	if len(o.names) < maxMemories && room() {
		return true
	}
	if now.Before(o.lastSweep.Add(time.Second)) { // there may be nothing to be had, and questions wait
		return room()
	}
	o.sweepLocked(now)
	return room()
}

// sweepLocked forgets what is of no use any more.
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

// countLocked counts addresses that are remembered, or no longer.
func (o *object) countLocked(n int) {
	o.known += n
	o.total.Add(int64(n))
}

// drop forgets all: nobody will inherit it.
func (o *object) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countLocked(-o.known)
	o.names, o.dropped = map[string]*memory{}, true
}

// inUse is how much is remembered, if there is an address that clients may use.
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

// inherit takes what was known for an object of the same name that was deleted: clients still use those addresses.
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

// sweep lets objects that nobody asks for forget what is of no use, while there is much of it.
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
