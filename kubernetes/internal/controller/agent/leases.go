package agent

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// leaseTable has the addresses that are not in the custom resources: leases of the stream, and former addresses of
// names, to which existing connections may continue. It is not safe for concurrent use. Time is an argument.
type leaseTable struct {
	keepFor   time.Duration // time for which a former address is kept for existing connections; zero disables it
	leases    map[enforce.Pattern]map[netip.Addr]time.Time
	last      map[enforce.Pattern]map[netip.Addr]bool // addresses of the last snapshot
	kept      map[enforce.Pattern]map[netip.Addr]time.Time
	evicted   int    // kept addresses that were dropped early
	yieldLock func() // called every yieldEvery names to release the lock; leases may be added meanwhile
}

// yieldEvery is the number of names after which the lock is released.
const yieldEvery = 128

// maxKept is the maximum number of kept addresses per name. The oldest ones are dropped, and existing connections to
// them end.
const maxKept = 4096

func newLeaseTable(keepFor time.Duration) *leaseTable {
	return &leaseTable{keepFor: keepFor, leases: map[enforce.Pattern]map[netip.Addr]time.Time{},
		last: map[enforce.Pattern]map[netip.Addr]bool{}, kept: map[enforce.Pattern]map[netip.Addr]time.Time{},
		yieldLock: func() {}}
}

// lease sets the minimum time until which addresses stay.
func (b *leaseTable) lease(p enforce.Pattern, addrs []netip.Addr, until time.Time) {
	m := b.leases[p]
	if m == nil {
		m = map[netip.Addr]time.Time{}
		b.leases[p] = m
	}
	for _, a := range addrs {
		if until.After(m[a]) {
			m[a] = until
		}
	}
}

// until returns the end of the lease of an address, or the zero time.
func (b *leaseTable) until(p enforce.Pattern, a netip.Addr) time.Time { return b.leases[p][a] }

// remember adds the addresses that were in the database at the start. Learned addresses get a short lease, until the
// plugins have reconnected. Kept addresses get their full time again.
func (b *leaseTable) remember(learned, kept map[enforce.Pattern][]netip.Addr, now time.Time) {
	for p, addrs := range learned {
		b.lease(p, addrs, now.Add(restartLease))
	}
	for p, addrs := range kept {
		for _, a := range addrs {
			b.keep(p, a, now)
		}
	}
}

// restartLease is longer than plugins need to reconnect, and too short to count as stale.
const restartLease = 30 * time.Second

// snapshot returns the current addresses of every name that rules use: those of the status and those with a lease. It
// keeps former addresses of a name, and forgets patterns that no rule uses. Addresses that the policy refuses are in
// neither result, whatever their origin. next is the time at which the result changes without an event, or zero.
func (b *leaseTable) snapshot(in reading, now time.Time) (learned, kept map[enforce.Pattern][]netip.Addr,
	next time.Time) {
	soon := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	learned, kept = map[enforce.Pattern][]netip.Addr{}, map[enforce.Pattern][]netip.Addr{}
	b.expire(now, soon)
	n := 0
	for p := range in.used {
		if n++; n%yieldEvery == 0 {
			b.yieldLock()
		}
		have := make(map[netip.Addr]bool, len(in.status[p]))
		for _, a := range in.status[p] {
			if in.policy.Refused(a) == "" {
				have[a] = true
			}
		}
		// A lease protects its address from removal, so delete the leases that the policy refuses now.
		maps.DeleteFunc(b.leases[p], func(a netip.Addr, _ time.Time) bool { return in.policy.Refused(a) != "" })
		for a := range b.leases[p] {
			have[a] = true
		}
		for a := range b.last[p] {
			if !have[a] {
				b.keep(p, a, now)
			}
		}
		b.last[p] = have
		for a, until := range b.kept[p] {
			if have[a] || !until.After(now) || in.policy.Refused(a) != "" {
				delete(b.kept[p], a)
				continue
			}
			soon(until)
			kept[p] = append(kept[p], a)
		}
		for a := range have {
			learned[p] = append(learned[p], a)
		}
	}
	b.forget(in.used)
	return learned, kept, next
}

// expire deletes ended leases. Leases of names without a rule stay: the rule may arrive soon.
func (b *leaseTable) expire(now time.Time, soon func(time.Time)) {
	n := 0
	for p, m := range b.leases {
		if n++; n%yieldEvery == 0 {
			b.yieldLock()
		}
		for a, until := range m {
			if until.After(now) {
				soon(until)
				continue
			}
			delete(m, a)
		}
		if len(m) == 0 {
			delete(b.leases, p)
		}
	}
}

func (b *leaseTable) keep(p enforce.Pattern, a netip.Addr, now time.Time) {
	if b.keepFor == 0 {
		return
	}
	m := b.kept[p]
	if m == nil {
		m = map[netip.Addr]time.Time{}
		b.kept[p] = m
	}
	m[a] = now.Add(b.keepFor)
	if len(m) <= maxKept {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(m),
		func(x, y netip.Addr) int { return cmp.Or(m[x].Compare(m[y]), x.Compare(y)) })
	// Drop an eighth at once, so that the sort is not needed for each address.
	for _, a := range oldest[:maxKept/8] {
		delete(m, a)
	}
	b.evicted += maxKept / 8
}

func (b *leaseTable) forget(used map[enforce.Pattern]bool) {
	maps.DeleteFunc(b.last, func(p enforce.Pattern, _ map[netip.Addr]bool) bool { return !used[p] })
	maps.DeleteFunc(b.kept, func(p enforce.Pattern, _ map[netip.Addr]time.Time) bool { return !used[p] })
}

// count returns the number of leases and kept addresses, and the number of kept addresses dropped early since the last
// call.
func (b *leaseTable) count() (leases, kept, evicted int) {
	evicted, b.evicted = b.evicted, 0
	for _, m := range b.leases {
		leases += len(m)
	}
	for _, m := range b.kept {
		kept += len(m)
	}
	return leases, kept, evicted
}
