package learn

import (
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// Memory is what one replica knows about a name beyond what is stored: until when answers that it let pass are good, and
// what of that has still to be written. The zero Memory knows nothing.
type Memory struct {
	addrs   map[netip.Addr]promise
	ok      [2]time.Time // when IPv4 and IPv6 addresses were last given
	counted time.Time    // when a failure was last counted
	failure int          // the response code to be counted; 0: none
	success bool         // a success is to be noted
	answers int          // that were noted
	own     bool         // a lookup of the name itself succeeded, as opposed to addresses folded into it
}

// maxRemembered is how many addresses of one name are remembered. A server that makes up a new one with a long TTL for each
// question must not fill the memory; addresses beyond live by their leases alone.
const maxRemembered = 4096

// promise is an address that clients were given.
type promise struct {
	until  time.Time // the latest moment one of them may use it, to a second
	since  time.Time // it was in every answer since then; zero: an answer came without it, or none did
	absent bool      // an answer came without it
	answer int       // the last that it was in
	// kept is until when the promise is remembered: as long as something longer may be stored for it, because it was stable.
	// Who had forgotten it could not take that back.
	kept  time.Time
	ttl   time.Duration // the longest it was given with
	fresh time.Time     // when an answer last let it live longer: others are from a cache, and prove nothing
	wrote Held          // as this replica stored it last
}

// Rules are the constants of the arithmetic.
type Rules struct {
	MinTTL    time.Duration // for answers with TTL 0, and how long addresses live on when a lookup fails
	MaxTTL    time.Duration // replaces larger TTLs of answers; at most LongestTTL
	Threshold int32         // failures after which an entry without valid addresses goes
	// Lease is for how long a stable address is not written again. Zero: its TTL is stored as it is.
	Lease time.Duration
	// Along says that a write is made anyway: this replica's own addresses that are past half of their stored lifetime go with it. Names
	// of a wildcard that were learned one after the other are due together from then on, and are one write instead of many.
	Along bool
	// MaxNames and MaxBytes bound the status of one object; zero: not at all.
	MaxNames, MaxBytes int
}

// Note takes a lesson into m. e is what is stored of the name.
func (r Rules) Note(m *Memory, e Entry, l Lesson, now time.Time) {
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
		// A cache gives the rest of a TTL in whole seconds, rounded up: each such answer would let the address live a little longer.
		if end := now.Add(a.TTL); !end.Before(p.until.Add(slack)) {
			p.fresh, p.until = now, end
		}
		p.absent, p.answer = false, m.answers
		if p.since.IsZero() {
			p.since = now
		}
		p.kept = p.until
		if r.Lease > 0 && now.After(p.since) {
			p.kept = p.until.Add(r.Lease + turns)
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

// noteAbsent marks the addresses that an answer should have had. Hints of HTTPS records are a choice, and a reply that was cut
// is not the whole answer. What nobody may use any more is forgotten.
func (m *Memory) noteAbsent(l Lesson, now time.Time) {
	v4, v6 := l.Family()
	whole := !l.Partial && v4 != v6
	for a, p := range m.addrs {
		if whole && a.Is4() == v4 && p.answer != m.answers {
			p.since, p.absent = time.Time{}, true
			m.addrs[a] = p
		}
		if p.since.IsZero() && !p.kept.After(now) {
			delete(m.addrs, a)
		}
	}
}

// noteFailure decides whether a failure says something about the name.
//
//   - One of a single family (a server that cannot do AAAA) says nothing while the other family's addresses are valid.
//     NXDOMAIN is about the name as a whole (RFC 8020), but servers that give it for AAAA only exist, so it does not count right
//     after a success of the other family.
//   - Clients that ask again and again must not use up the failures in a second, so that one is counted in MinTTL.
func (r Rules) noteFailure(m *Memory, e Entry, l Lesson, now time.Time) {
	v4, _ := l.Family()
	other := 0
	if v4 {
		other = 1
	}
	if now.Sub(m.ok[other]) < r.MinTTL {
		return
	}
	if l.Rcode != dns.RcodeNameError && slices.ContainsFunc(e.Addrs, func(h Held) bool { return family(h.Addr) == other && h.Until().After(now) }) {
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

// Pending is what of a Memory is being written.
type Pending struct {
	failure int
	success bool
}

// Take gives what is to be written away, so that what comes meanwhile is told from it.
func (m *Memory) Take() Pending {
	p := Pending{m.failure, m.success}
	m.failure, m.success = 0, false
	return p
}

// Put gives back what could not be written. What was learned since then is newer.
func (m *Memory) Put(p Pending) {
	if m.failure == 0 && !m.success {
		m.failure, m.success = p.failure, p.success
	}
}

// Counted takes in what somebody else made of an entry. Several replicas see the same failure when they are asked at once: who counts it first
// counts it for all, or the failures that a name has would be used up as many times as fast as there are replicas.
func (m *Memory) Counted(was, is Entry, now time.Time) {
	if is.Failures > was.Failures {
		m.counted, m.failure = now, 0
	}
}

// Wrote notes that this replica stored e. Who stored an address last is the first to renew it.
func (m *Memory) Wrote(e Entry) {
	find := e.finder(len(m.addrs))
	for a, p := range m.addrs {
		if i := find(a); i >= 0 {
			p.wrote = e.Addrs[i]
			m.addrs[a] = p
		}
	}
}

// Cut reports whether an entry that somebody else made of another one ends, for an address that clients may use, before they may not:
// then it must be looked at again.
func (m *Memory) Cut(was, is Entry, now time.Time) bool {
	if slices.Equal(was.Addrs, is.Addrs) { // as most of a status are
		return false
	}
	before, after := was.finder(len(m.addrs)), is.finder(len(m.addrs))
	for a, p := range m.addrs {
		if !p.until.After(now) {
			continue
		}
		i, j := before(a), after(a)
		if i >= 0 && (j < 0 || is.Addrs[j].Until().Before(was.Addrs[i].Until()) && p.until.After(is.Addrs[j].Until().Add(slack))) {
			return true
		}
	}
	return false
}

// only is what m knows of the addresses of an entry.
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

// Known is of how many addresses m knows, and Knows whether a is one of them.
func (m *Memory) Known() int { return len(m.addrs) }

// Knows is told at Known.
func (m *Memory) Knows(a netip.Addr) bool { _, ok := m.addrs[a]; return ok }

// Again lets all that is known be written once more, into a status that has nothing of it.
func (m *Memory) Again() { m.success = m.success || m.failure == 0 }

// Failing reports whether a failure is to be counted.
func (m *Memory) Failing() bool { return m.failure != 0 }

// Idle reports whether m is of no more use: nothing to write, no client with a valid address, and nothing to take back.
func (m *Memory) Idle(now time.Time) bool {
	if m.failure != 0 || m.success {
		return false
	}
	for _, p := range m.addrs {
		if p.kept.After(now) {
			return false
		}
	}
	return true
}

// Alive reports whether an address of m may still be in use.
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
