package learn

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// slack is the minimum difference between the stored end and the end of a new answer that is worth a write. Answers
	// from a cache have TTLs in whole seconds, so two answers with the same record differ by up to a second.
	slack = time.Second
	// Grace is the time for which an address stays programmed after its end. Readers of the API rely on it.
	Grace = 5 * time.Second
	// stretch is the factor by which the stored lifetime of a stable address exceeds its age: 5 s, about 20 s, then the
	// lease.
	stretch = 4
	// renewWindow is the longest time before the end of a stored lifetime in which replicas renew it.
	renewWindow = 15 * time.Second
)

// change is the new state of an entry.
type change struct {
	entry   Entry
	changed bool
	remove  bool
	due     time.Time // when to merge it again; zero means not before the next observation
}

// apply merges m into e. rank is the position of this replica among all replicas, from 0 to 1.
func (r Rules) apply(e Entry, m *Memory, rank float64, now time.Time) change {
	c := change{entry: Entry{Name: e.Name, Addrs: slices.Clone(e.Addrs), Failures: e.Failures, Degraded: e.Degraded}}
	if m.failure != 0 {
		if e.Failures >= r.Threshold && e.expired(now) {
			c.remove, c.changed = true, true
			return c
		}
		r.fail(&c.entry, m, now)
		c.changed = true
	}
	c.changed = r.shrink(&c.entry, m, now) || c.changed
	if m.success {
		if cond := condition(c.entry.Degraded, 0, now); cond != c.entry.Degraded || c.entry.Failures != 0 {
			c.entry.Degraded, c.entry.Failures, c.changed = cond, 0, true
		}
	}
	c.due = r.renew(&c, m, rank, now) // last, so that renewals join a write that happens anyway
	return c
}

// fail counts a failure. Addresses about to end are extended by MinTTL until the threshold is reached. Without that
// limit each failure would renew the addresses, and the entry would never be removed.
func (r Rules) fail(e *Entry, m *Memory, now time.Time) {
	for i, h := range e.Addrs {
		if e.Failures < r.Threshold && !h.Until().After(now.Add(Grace)) {
			e.Addrs[i] = storedUntil(h.Addr, now.Add(r.MinTTL), now)
		}
	}
	e.Failures++
	e.Degraded = condition(e.Degraded, m.failure, now)
}

// shrink corrects the end of addresses that were stored with a longer lifetime than clients may use them for. After an
// answer without the address, its end becomes the true one. After a failed lookup, it becomes MinTTL. Addresses that
// this replica never saw, and those that another replica stored without stretching, are left to other replicas.
func (r Rules) shrink(e *Entry, m *Memory, now time.Time) bool {
	changed := false
	for i, h := range e.Addrs {
		p, known := m.addrs[h.Addr]
		if !known || !p.since.IsZero() {
			continue
		}
		end := p.until
		if !p.absent {
			end = later(end, now.Add(r.MinTTL))
		} else if time.Duration(h.TTL)*time.Second <= p.ttl+slack {
			continue
		}
		if h.Until().After(end.Add(2 * slack)) {
			e.Addrs[i], changed = storedEnding(h.Addr, end, now), true
		}
	}
	return changed
}

// storedEnding returns the stored form of an address that ends at end, which may be in the past.
func storedEnding(a netip.Addr, end, now time.Time) StoredAddress {
	if end.After(now) {
		return storedUntil(a, end, now)
	}
	return StoredAddress{Addr: a, Last: end.Add(time.Second - 1).Truncate(time.Second)}
}

// renew adds new addresses. It also extends addresses whose stored end is before the time for which clients may use
// them. It does so shortly before the stored end and returns that time until then, because an earlier renewal would
// only add writes. If anything is written, all addresses are renewed with that write, so that they are due together the
// next time.
func (r Rules) renew(c *change, m *Memory, rank float64, now time.Time) (due time.Time) {
	known := slices.SortedFunc(maps.Keys(m.addrs), netip.Addr.Compare)
	addrs := slices.DeleteFunc(slices.Clone(known), func(a netip.Addr) bool { return !m.addrs[a].until.After(now) })
	// A replica that does not know all addresses would renew only some of them, and cause a second write by another
	// replica.
	whole := !slices.ContainsFunc(c.entry.Addrs,
		func(h StoredAddress) bool { return !m.Knows(h.Addr) && h.Until().After(now) })
	find := c.entry.finder(len(m.addrs))
	for _, a := range addrs {
		p, i := m.addrs[a], find(a)
		if i < 0 {
			c.entry.Addrs = append(c.entry.Addrs, storedUntil(a, p.until, now))
			c.changed = true
			continue
		}
		if h := c.entry.Addrs[i]; r.end(p, now).After(h.Until().Add(slack)) {
			at := r.renewal(h, p, rank, whole)
			c.changed = c.changed || !at.After(now)
			due = earlier(due, at)
		}
	}
	if !c.changed {
		return due
	}
	find = c.entry.finder(len(m.addrs))
	for _, a := range known {
		i, p := find(a), m.addrs[a]
		if i < 0 || !p.until.After(now) && !p.justEnded(now) {
			continue
		}
		if end := r.end(p, now); end.After(c.entry.Addrs[i].Until().Add(slack)) {
			c.entry.Addrs[i] = storedUntil(a, end, now)
		}
	}
	return time.Time{}
}

// justEnded reports whether a stable address ended within the last Grace. The resolver queries such an address again
// when it has ended. Without justEnded, a renewal in between would leave it out and cause a second write.
func (p promise) justEnded(now time.Time) bool {
	return !p.since.IsZero() && now.Sub(p.until) < Grace
}

// end returns the end to store for an address: the time until which clients may use it, or later if every answer
// contains the address.
func (r Rules) end(p promise, now time.Time) time.Time {
	if r.Lease == 0 || p.since.IsZero() {
		return p.until
	}
	return later(p.until, now.Add(min(stretch*max(p.fresh.Sub(p.since), 0), r.Lease+renewWindow)))
}

// renewal returns the time at which this replica renews h, whose new end is that of p. All replicas renew in the last
// quarter of the lifetime, at most renewWindow before its end. The replica that stored h is first, if it can renew the
// whole entry. The other replicas see that write in their watch. If it does not happen, they follow one after the
// other. They first wait a moment, because all of them may have learned the same address at once.
func (r Rules) renewal(h StoredAddress, p promise, rank float64, whole bool) time.Time {
	life := time.Duration(h.TTL) * time.Second
	w := float64(min(max(life/4, time.Second), renewWindow))
	if whole && p.wrote.Addr == h.Addr && p.wrote.TTL == h.TTL && p.wrote.Last.Equal(h.Last) {
		if r.CoRenew {
			return h.Until().Add(-life / 2)
		}
		return h.Until().Add(-time.Duration((0.6 + 0.3*rank) * w))
	}
	patience := time.Duration((0.3 + 0.5*rank) * float64(time.Second))
	return later(h.Until().Add(-time.Duration((0.2+0.3*rank)*w)), earlier(p.fresh.Add(patience), h.Until().Add(Grace/2)))
}

// earlier returns the earlier of two times. The zero time means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
