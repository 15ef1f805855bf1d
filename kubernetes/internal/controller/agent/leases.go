package agent

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// book is what is known of addresses besides the custom resources: leases of the stream, and addresses that names had, to which
// old connections may live on. It is not safe for concurrent use; time is an argument.
type book struct {
	keepFor time.Duration // how long an address is kept for old connections; zero: not at all
	leases  map[enforce.Pattern]map[netip.Addr]time.Time
	last    map[enforce.Pattern]map[netip.Addr]bool // what was learned when it was last looked
	kept    map[enforce.Pattern]map[netip.Addr]time.Time
	evicted int    // kept addresses that went before their time
	breathe func() // called every so many names, so that who waits for the book gets it; leases may be noted meanwhile
}

// breath is after how many names others get their turn.
const breath = 128

// maxKept bounds the addresses that are kept for one name. Beyond, the oldest go, and old connections to them with them.
const maxKept = 4096

func newBook(keepFor time.Duration) *book {
	return &book{keepFor: keepFor, leases: map[enforce.Pattern]map[netip.Addr]time.Time{},
		last: map[enforce.Pattern]map[netip.Addr]bool{}, kept: map[enforce.Pattern]map[netip.Addr]time.Time{}, breathe: func() {}}
}

// lease notes that an address is to stay for at least so long.
func (b *book) lease(p enforce.Pattern, addrs []netip.Addr, until time.Time) {
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

// until is when the lease of an address ends; zero when there is none.
func (b *book) until(p enforce.Pattern, a netip.Addr) time.Time { return b.leases[p][a] }

// remember takes what was in the database before us: learned addresses get a short lease, until plugins that lost us have
// come again, and kept ones begin anew.
func (b *book) remember(learned, kept map[enforce.Pattern][]netip.Addr, now time.Time) {
	for p, addrs := range learned {
		b.lease(p, addrs, now.Add(restartLease))
	}
	for p, addrs := range kept {
		for _, a := range addrs {
			b.keep(p, a, now)
		}
	}
}

// restartLease is longer than plugins take to connect again, and shorter than anybody would call stale.
const restartLease = 30 * time.Second

// look returns the addresses that every name of a rule has now: those of the status, and those with a lease. Addresses that a
// name had before are kept. Addresses that the policy refuses are in neither, wherever they came from. Patterns that no rule has
// are forgotten. next is when the result changes by itself; zero: never.
func (b *book) look(in reading, now time.Time) (learned, kept map[enforce.Pattern][]netip.Addr, next time.Time) {
	soon := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	learned, kept = map[enforce.Pattern][]netip.Addr{}, map[enforce.Pattern][]netip.Addr{}
	b.lapse(now, soon)
	n := 0
	for p := range in.used {
		if n++; n%breath == 0 {
			b.breathe()
		}
		have := make(map[netip.Addr]bool, len(in.status[p]))
		for _, a := range in.status[p] {
			if in.policy.Refused(a) == "" {
				have[a] = true
			}
		}
		// A lease keeps its address from being taken away, so one that the policy has refused since ends here.
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

// lapse drops leases that are over. Leases of names that no rule has stay: the rule may be on its way.
func (b *book) lapse(now time.Time, soon func(time.Time)) {
	n := 0
	for p, m := range b.leases {
		if n++; n%breath == 0 {
			b.breathe()
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

func (b *book) keep(p enforce.Pattern, a netip.Addr, now time.Time) {
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
	oldest := slices.SortedFunc(maps.Keys(m), func(x, y netip.Addr) int { return cmp.Or(m[x].Compare(m[y]), x.Compare(y)) })
	// An eighth at once, so that this is not done for each.
	for _, a := range oldest[:maxKept/8] {
		delete(m, a)
	}
	b.evicted += maxKept / 8
}

func (b *book) forget(used map[enforce.Pattern]bool) {
	maps.DeleteFunc(b.last, func(p enforce.Pattern, _ map[netip.Addr]bool) bool { return !used[p] })
	maps.DeleteFunc(b.kept, func(p enforce.Pattern, _ map[netip.Addr]time.Time) bool { return !used[p] })
}

// count tells how many leases and kept addresses there are, and how many of these went before their time since it was asked last.
func (b *book) count() (leases, kept, evicted int) {
	evicted, b.evicted = b.evicted, 0
	for _, m := range b.leases {
		leases += len(m)
	}
	for _, m := range b.kept {
		kept += len(m)
	}
	return leases, kept, evicted
}
