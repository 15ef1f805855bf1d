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
	// stretch is how much faster than its age the stored lifetime of a stable address grows: 5 s, 16 s, then the lease.
	stretch = 4
	// turns is the longest time before the end of a stored lifetime at which a replica renews it.
	turns = 15 * time.Second
)

// change is what becomes of an entry.
type change struct {
	entry   Entry
	changed bool
	remove  bool
	due     time.Time // when it must be looked at again; zero: not before the next lesson
}

// apply brings what m knows into e. turn is this replica's place among others, from 0 to 1: it decides how early it renews, so
// that others see its write before they make theirs.
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
// tells when: all that is gained by an earlier write is another write.
func (r Rules) renew(c *change, m *Memory, turn float64, now time.Time) (due time.Time) {
	for _, a := range slices.SortedFunc(maps.Keys(m.addrs), netip.Addr.Compare) {
		p := m.addrs[a]
		if !p.until.After(now) {
			continue
		}
		i := c.entry.find(a)
		if i < 0 {
			c.entry.Addrs = append(c.entry.Addrs, hold(a, p.until, now))
			c.changed = true
			continue
		}
		h := c.entry.Addrs[i]
		if !p.until.After(h.Until().Add(slack)) {
			continue
		}
		if at := h.Until().Add(-window(h, turn)); at.After(now) && !c.changed {
			due = earlier(due, at)
			continue
		}
		c.entry.Addrs[i] = hold(a, later(p.until, now.Add(r.stretched(p, now))), now)
		c.changed = true
	}
	return due
}

// stretched is for how long an address that is in every answer may be taken for granted.
func (r Rules) stretched(p promise, now time.Time) time.Duration {
	if r.Lease == 0 || p.since.IsZero() {
		return 0
	}
	return min(stretch*now.Sub(p.since), r.Lease+turns)
}

// window is how long before the end of h a replica renews it.
func window(h Held, turn float64) time.Duration {
	w := min(max(time.Duration(h.TTL)*time.Second/4, time.Second), turns)
	return time.Duration((0.35 + 0.65*turn) * float64(w))
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
