package learn

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// slack is how much longer than stored an answer must be good for to be worth a write. Answers from a cache have whole
	// seconds of TTL, so that two of the same record differ by up to one.
	slack = time.Second
	// Grace is how long after its end an address is still programmed. Readers of the API count on it.
	Grace = 5 * time.Second
	// stretch is how much faster than its age the stored lifetime of a stable address grows: 5 s, some 20 s, then the lease.
	stretch = 4
	// turns is the longest time before the end of a stored lifetime in which replicas renew it.
	turns = 15 * time.Second
)

// change is what becomes of an entry.
type change struct {
	entry   Entry
	changed bool
	remove  bool
	due     time.Time // when it must be looked at again; zero: not before the next lesson
}

// apply brings what m knows into e. turn is this replica's place among others, from 0 to 1.
func (r Rules) apply(e Entry, m *Memory, turn float64, now time.Time) change {
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
	c.due = r.renew(&c, m, turn, now) // last, so that renewals go with a write that is made anyway
	return c
}

// fail counts a failure. Addresses at their end get MinTTL more, until there were too many failures: an entry whose
// addresses were renewed by each failure would never go.
func (r Rules) fail(e *Entry, m *Memory, now time.Time) {
	for i, h := range e.Addrs {
		if e.Failures < r.Threshold && !h.Until().After(now.Add(Grace)) {
			e.Addrs[i] = hold(h.Addr, now.Add(r.MinTTL), now)
		}
	}
	e.Failures++
	e.Degraded = condition(e.Degraded, m.failure, now)
}

// shrink gives addresses whose stored lifetime was stretched their true one, once an answer came without them, or MinTTL once
// there was none. What this replica never saw, and what another stored without stretching it, is left to those that did.
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
			e.Addrs[i], changed = until(h.Addr, end, now), true
		}
	}
	return changed
}

// until is an address that ends at a moment, which may be past.
func until(a netip.Addr, end, now time.Time) Held {
	if end.After(now) {
		return hold(a, end, now)
	}
	return Held{Addr: a, Last: end.Add(time.Second - 1).Truncate(time.Second)}
}

// renew adds what is new, and writes addresses that clients may use for longer than is stored before that ends. Until then it
// tells when: all that is gained by an earlier write is another write. If there is one, all go with it, so that they are due together
// the next time.
func (r Rules) renew(c *change, m *Memory, turn float64, now time.Time) (due time.Time) {
	known := slices.SortedFunc(maps.Keys(m.addrs), netip.Addr.Compare)
	addrs := slices.DeleteFunc(slices.Clone(known), func(a netip.Addr) bool { return !m.addrs[a].until.After(now) })
	// Who does not know all of them would renew a part, and leave another write to who does.
	whole := !slices.ContainsFunc(c.entry.Addrs, func(h Held) bool { return !m.Knows(h.Addr) && h.Until().After(now) })
	find := c.entry.finder(len(m.addrs))
	for _, a := range addrs {
		p, i := m.addrs[a], find(a)
		if i < 0 {
			c.entry.Addrs = append(c.entry.Addrs, hold(a, p.until, now))
			c.changed = true
			continue
		}
		if h := c.entry.Addrs[i]; r.end(p, now).After(h.Until().Add(slack)) {
			at := r.renewal(h, p, turn, whole)
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
		if i < 0 || !p.until.After(now) && !p.lately(now) {
			continue
		}
		if end := r.end(p, now); end.After(c.entry.Addrs[i].Until().Add(slack)) {
			c.entry.Addrs[i] = hold(a, end, now)
		}
	}
	return time.Time{}
}

// lately reports whether an address was in every answer, of which the last has just ended: it is asked for when it has, and between the two it
// would be left to a write of its own.
func (p promise) lately(now time.Time) bool {
	return !p.since.IsZero() && now.Sub(p.until) < Grace
}

// end is until when an address may be stored: as long as clients may use it, or longer when it is in every answer.
func (r Rules) end(p promise, now time.Time) time.Time {
	if r.Lease == 0 || p.since.IsZero() {
		return p.until
	}
	return later(p.until, now.Add(min(stretch*max(p.fresh.Sub(p.since), 0), r.Lease+turns)))
}

// renewal is when a replica renews h, of which p is to be longer: in the last quarter of its lifetime, and of turns at most. The one that
// stored it is the first, if it can renew the whole entry. The others see by their watch that it did; if it does not, they follow one after the other, and not before it
// had a moment for what all of them may have learned at once.
func (r Rules) renewal(h Held, p promise, turn float64, whole bool) time.Time {
	life := time.Duration(h.TTL) * time.Second
	w := float64(min(max(life/4, time.Second), turns))
	if whole && p.wrote.Addr == h.Addr && p.wrote.TTL == h.TTL && p.wrote.Last.Equal(h.Last) {
		if r.Along {
			return h.Until().Add(-life / 2)
		}
		return h.Until().Add(-time.Duration((0.6 + 0.3*turn) * w))
	}
	patience := time.Duration((0.3 + 0.5*turn) * float64(time.Second))
	return later(h.Until().Add(-time.Duration((0.2+0.3*turn)*w)), earlier(p.fresh.Add(patience), h.Until().Add(Grace/2)))
}

// earlier is the earlier of two moments, of which the zero one is none.
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
