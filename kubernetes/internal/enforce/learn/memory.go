package learn

import (
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// Memory is the knowledge of one replica about a name that is not stored in the status. It contains the time until
// which clients may use each address, and the results that are not written yet. The zero Memory is empty.
type Memory struct {
	addrs   map[netip.Addr]promise
	ok      [2]time.Time // when the last IPv4 and IPv6 addresses were seen
	counted time.Time    // when the last failure was counted
	failure int          // response code of a failure that is not written yet; 0 if none
	success bool         // a success is not written yet
	answers int          // number of answers noted
	own     bool         // a lookup of the name itself succeeded; false if it has only folded addresses
}

// maxRemembered is the maximum number of addresses that are remembered for one name. It bounds the memory that a server
// can fill by inventing an address with a long TTL for each query. Further addresses are allowed by leases only.
const maxRemembered = 4096

// promise is an address that clients received.
type promise struct {
	until  time.Time // the latest time at which a client may use it, to a second
	since  time.Time // it was in every answer since then; zero if an answer or a lookup came without it
	absent bool      // an answer came without it
	answer int       // number of the last answer that contained it
	// keptUntil is the time until which the promise is remembered. A stable address may be stored with a longer end than
	// until. A replica that had forgotten the promise could not correct that end.
	keptUntil time.Time
	ttl       time.Duration // the longest TTL it was seen with
	fresh     time.Time     // when an answer last extended until; answers from a cache do not extend it, and prove nothing
	wrote     StoredAddress // the form in which this replica stored it last
}

// Rules are the parameters for reading replies and merging them.
type Rules struct {
	MinTTL    time.Duration // replaces a TTL of 0, and extends addresses after a failed lookup
	MaxTTL    time.Duration // replaces larger TTLs; at most LongestTTL
	Threshold int32         // number of failures after which an entry without valid addresses is removed
	// Lease is the time for which a stable address is not written again. Zero means that the TTL is stored as it is.
	Lease time.Duration
	// CoRenew means that a write happens anyway. Addresses that this replica stored itself are then renewed once half of
	// their stored lifetime has passed. Names of a wildcard that were learned one after the other are due together after
	// that, and need one write instead of many.
	CoRenew bool
	// MaxNames and MaxBytes bound the status of one object; zero means no bound.
	MaxNames, MaxBytes int
}

// Note adds an observation to m. e is the stored entry of the name.
func (r Rules) Note(m *Memory, e Entry, l Observation, now time.Time) {
	if l.Failed {
		r.noteFailure(m, e, l, now)
		return
	}
	if m.addrs == nil {
		m.addrs = map[netip.Addr]promise{}
	}
	m.answers++
	for _, a := range l.Addrs {
		p, known := m.addrs[a.Addr]
		if !known && len(m.addrs) >= maxRemembered {
			continue
		}
		p.ttl = max(p.ttl, a.TTL)
		// A cache rounds the remaining TTL up to whole seconds, so each answer would extend the address a little.
		if end := now.Add(a.TTL); !end.Before(p.until.Add(slack)) {
			p.fresh, p.until = now, end
		}
		p.absent, p.answer = false, m.answers
		if p.since.IsZero() {
			p.since = now
		}
		p.keptUntil = p.until
		if r.Lease > 0 && now.After(p.since) {
			p.keptUntil = p.until.Add(r.Lease + renewWindow)
		}
		m.addrs[a.Addr] = p
		m.ok[family(a.Addr)] = now
	}
	m.noteAbsent(l, now)
	if len(l.Addrs) > 0 {
		m.failure = 0
		m.success, m.own = true, true
	}
}

// noteAbsent marks the addresses that are missing in an answer. Hints of HTTPS records are optional, and a truncated
// reply is incomplete: neither marks anything. noteAbsent also deletes promises that have ended.
func (m *Memory) noteAbsent(l Observation, now time.Time) {
	v4, v6 := l.Family()
	whole := !l.Partial && v4 != v6
	for a, p := range m.addrs {
		if whole && a.Is4() == v4 && p.answer != m.answers {
			p.since, p.absent = time.Time{}, true
			m.addrs[a] = p
		}
		if p.since.IsZero() && !p.keptUntil.After(now) {
			delete(m.addrs, a)
		}
	}
}

// noteFailure decides whether a failure says something about the name.
//
//   - A failure of one address family (a server that cannot answer AAAA) is ignored while addresses of the other family
//     are valid. NXDOMAIN is about the name as a whole (RFC 8020), but some servers return it for AAAA only. It is
//     therefore ignored right after a success of the other family.
//   - At most one failure is counted per MinTTL, so that clients that retry quickly do not reach the threshold in a
//     second.
func (r Rules) noteFailure(m *Memory, e Entry, l Observation, now time.Time) {
	v4, _ := l.Family()
	other := 0
	if v4 {
		other = 1
	}
	if now.Sub(m.ok[other]) < r.MinTTL {
		return
	}
	if l.Rcode != dns.RcodeNameError &&
		slices.ContainsFunc(e.Addrs, func(h StoredAddress) bool { return family(h.Addr) == other && h.Until().After(now) }) {
		return
	}
	for a, p := range m.addrs {
		p.since = time.Time{}
		m.addrs[a] = p
	}
	if now.Sub(m.counted) < r.MinTTL {
		return
	}
	m.counted, m.failure, m.success = now, l.Rcode, false
}

// Pending is the part of a Memory that is being written.
type Pending struct {
	failure int
	success bool
}

// TakePending returns the results to be written and resets them, so that later results are kept apart.
func (m *Memory) TakePending() Pending {
	p := Pending{m.failure, m.success}
	m.failure, m.success = 0, false
	return p
}

// RestorePending restores results that could not be written, unless there are newer ones.
func (m *Memory) RestorePending(p Pending) {
	if m.failure == 0 && !m.success {
		m.failure, m.success = p.failure, p.success
	}
}

// NoteCounted notes that another replica changed an entry from was to is. Several replicas may see the same failure.
// The first one counts it for all: otherwise a name would reach the threshold faster with each additional replica.
func (m *Memory) NoteCounted(was, is Entry, now time.Time) {
	if is.Failures > was.Failures {
		m.counted, m.failure = now, 0
	}
}

// NoteWritten notes that this replica stored e. The replica that stored an address last is the first to renew it.
func (m *Memory) NoteWritten(e Entry) {
	find := e.finder(len(m.addrs))
	for a, p := range m.addrs {
		if i := find(a); i >= 0 {
			p.wrote = e.Addrs[i]
			m.addrs[a] = p
		}
	}
}

// Shortened reports whether another replica stored an earlier end for an address than clients may use it for. The name
// must then be merged again.
func (m *Memory) Shortened(was, is Entry, now time.Time) bool {
	if slices.Equal(was.Addrs, is.Addrs) { // true for most entries of a status
		return false
	}
	before, after := was.finder(len(m.addrs)), is.finder(len(m.addrs))
	for a, p := range m.addrs {
		if !p.until.After(now) {
			continue
		}
		i, j := before(a), after(a)
		if i >= 0 && (j < 0 || is.Addrs[j].Until().Before(was.Addrs[i].Until()) &&
			p.until.After(is.Addrs[j].Until().Add(slack))) {
			return true
		}
	}
	return false
}

// only returns a copy of m with only the addresses that e contains.
func (m *Memory) only(e Entry) *Memory {
	out := *m
	out.addrs = make(map[netip.Addr]promise, len(e.Addrs))
	for _, h := range e.Addrs {
		if p, ok := m.addrs[h.Addr]; ok {
			out.addrs[h.Addr] = p
		}
	}
	return &out
}

// Known returns the number of addresses in m.
func (m *Memory) Known() int { return len(m.addrs) }

// Knows reports whether m contains the address a.
func (m *Memory) Knows(a netip.Addr) bool { _, ok := m.addrs[a]; return ok }

// MarkUnwritten marks m as not written, so that all of it is written to a status that does not contain it.
func (m *Memory) MarkUnwritten() { m.success = m.success || m.failure == 0 }

// Failing reports whether m has a failure that is not written yet.
func (m *Memory) Failing() bool { return m.failure != 0 }

// Idle reports whether m is no longer needed: there is nothing to write, no client has a valid address, and no stored
// end to correct.
func (m *Memory) Idle(now time.Time) bool {
	if m.failure != 0 || m.success {
		return false
	}
	for _, p := range m.addrs {
		if p.keptUntil.After(now) {
			return false
		}
	}
	return true
}

// Alive reports whether a client may still use an address of m.
func (m *Memory) Alive(now time.Time) bool {
	for _, p := range m.addrs {
		if p.until.After(now) {
			return true
		}
	}
	return false
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}
