package safeat_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

var t0 = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// model is an authority whose links changed, and caches that queried it at random times. They behave in the least
// favourable manner that the RFCs allow: they count whole seconds, answer during the last one, and receive answers with
// a delay.
type model struct {
	rnd    *rand.Rand
	facts  safeat.Facts
	nsec   []bool
	caches [][]*cache // per resolver
	values map[safeat.TTL]uint32
}

type cache struct {
	clamps  safeat.Clamps
	pos     uint32
	neg     uint32
	entries []entry
	ranges  []time.Time // end of a negative answer that covers the link, by link
}

type entry struct {
	state safeat.State
	end   time.Time
}

var ttls = []uint32{0, 1, 5, 60, 300, 3600, 10800, 90000, 700000}

func (m *model) ttl() uint32 { return ttls[m.rnd.IntN(len(ttls))] }

// know returns a TTL whose value seconds can read back.
func (m *model) know(s uint32) safeat.TTL {
	m.values[safeat.Seconds(s)] = s
	return safeat.Seconds(s)
}

func (m *model) seconds(t safeat.TTL) uint32 { return m.values[t] }

// shown returns the time from which e is no longer returned.
func (e entry) shown() time.Time { return e.end.Add(time.Second) }

func newModel(seed uint64) *model {
	m := &model{rnd: rand.New(rand.NewPCG(seed, 6)), values: map[safeat.TTL]uint32{}}
	m.facts.Now = t0
	owner := dnsname.MustParse("www.example.org")
	for range 1 + m.rnd.IntN(3) {
		l := safeat.Link{Owner: owner, Type: rr.TypeA, Role: safeat.Data, TTL: m.know(m.ttl()), Seen: t0}
		l.Denial = safeat.Denial{TTL: m.know(min(m.ttl(), m.ttl())), Ranges: safeat.RangesNone}
		nsec := m.rnd.IntN(2) == 0
		if nsec {
			l.Denial.Ranges, l.Denial.NSEC = safeat.RangesNSEC, m.know(m.ttl())
		}
		until := t0
		for range 1 + m.rnd.IntN(3) {
			until = until.Add(-time.Duration(m.rnd.IntN(int(m.ttl())*1000+1000)) * time.Millisecond)
			v := safeat.Version{Until: until, TTL: m.know(m.ttl()), Absent: m.rnd.IntN(3) == 0}
			l.Before = append(l.Before, v)
		}
		m.facts.Links, m.nsec = append(m.facts.Links, l), append(m.nsec, nsec)
	}
	for i := range 1 + m.rnd.IntN(4) {
		r := safeat.Resolver{Name: fmt.Sprint("r", i)}
		r.Clamps = safeat.Clamps{Positive: m.know(1 + min(m.ttl(), 604799)), Negative: m.know(1 + min(m.ttl(), 604799))}
		m.facts.Resolvers = append(m.facts.Resolvers, r)
		m.caches = append(m.caches, m.fill(r.Clamps, 1+m.rnd.IntN(3)))
	}
	m.sample()
	return m
}

// fill creates n caches. Each asks for each link at times up to t0, often just before a change.
func (m *model) fill(c safeat.Clamps, n int) []*cache {
	var out []*cache
	for range n {
		k := &cache{clamps: c, entries: make([]entry, len(m.facts.Links)), ranges: make([]time.Time, len(m.facts.Links))}
		k.pos, k.neg = m.seconds(c.Positive), m.seconds(c.Negative)
		for i, l := range m.facts.Links {
			var at time.Time
			for j := len(l.Before) - 1; j >= 0; j-- { // oldest first
				at = l.Before[j].Until.Add(-time.Millisecond)
				if m.rnd.IntN(3) == 0 {
					at = at.Add(-time.Duration(m.rnd.IntN(5000)) * time.Millisecond)
				}
				if j == len(l.Before)-1 || at.After(l.Before[j+1].Until) {
					m.ask(k, i, at)
				}
			}
			if m.rnd.IntN(2) == 0 {
				m.ask(k, i, t0.Add(-time.Duration(m.rnd.IntN(3000))*time.Millisecond))
			}
		}
		out = append(out, k)
	}
	return out
}

// ask makes k resolve link i at a time, and possibly a name next to it that never existed.
func (m *model) ask(k *cache, i int, at time.Time) {
	l := m.facts.Links[i]
	v, old := safeat.Version{TTL: l.TTL}, false
	for _, b := range l.Before {
		if at.Before(b.Until) {
			v, old = b, true // Before is newest first, so the last match is the version served then
		}
	}
	arrives := at.Add(time.Duration(m.rnd.IntN(1000)) * time.Millisecond).Truncate(time.Second)
	if v.Absent && m.nsec[i] && m.rnd.IntN(2) == 0 && !k.ranges[i].After(at) {
		k.ranges[i] = arrives.Add(time.Duration(min(m.seconds(l.Denial.NSEC), max(k.pos, k.neg))) * time.Second)
	}
	e := &k.entries[i]
	switch {
	case e.state != "" && e.shown().After(at), m.nsec[i] && k.ranges[i].Add(time.Second).After(at):
	case v.Absent:
		*e = entry{safeat.Negative, arrives.Add(time.Duration(min(m.seconds(l.Denial.TTL), k.neg)) * time.Second)}
	default:
		state := safeat.Current
		if old {
			state = safeat.Old
		}
		*e = entry{state, arrives.Add(time.Duration(min(m.seconds(v.TTL), k.pos)) * time.Second)}
	}
}

// sample samples some of the caches at t0.
func (m *model) sample() {
	for ri := range m.facts.Resolvers {
		r := &m.facts.Resolvers[ri]
		for range m.rnd.IntN(9) {
			k, i := m.caches[ri][m.rnd.IntN(len(m.caches[ri]))], m.rnd.IntN(len(m.facts.Links))
			state, end := k.entries[i].state, k.entries[i].end
			if state == "" || !k.entries[i].shown().After(t0) {
				if !m.nsec[i] || !k.ranges[i].Add(time.Second).After(t0) {
					continue // it would fetch the new answer
				}
				state, end = safeat.Negative, k.ranges[i]
			}
			left := max(end.Sub(t0.Truncate(time.Second)), 0)
			r.Samples = append(r.Samples, safeat.Sample{Link: i, State: state, Left: uint32(left / time.Second), Seen: t0})
		}
	}
}

// truth returns the time from which resolver ri gives only new answers.
func (m *model) truth(ri int) time.Time {
	out := t0
	for _, k := range m.caches[ri] {
		for i, e := range k.entries {
			if e.state != safeat.Current && e.state != "" && e.shown().After(out) {
				out = e.shown()
			}
			fresh := e.state == safeat.Current && !e.shown().Before(k.ranges[i].Add(time.Second))
			if m.nsec[i] && !fresh && k.ranges[i].Add(time.Second).After(out) {
				out = k.ranges[i].Add(time.Second)
			}
		}
	}
	return out
}

const runs = 3000

func TestBoundIsNeverBroken(t *testing.T) {
	tight := 0
	for seed := range uint64(runs) {
		m := newModel(seed)
		rep := safeat.Compute(m.facts)
		for ri, p := range rep.Resolvers {
			want := m.truth(ri)
			if p.At.Before(want) {
				t.Fatalf("seed %d, %s: safe at %v, but the old answer is there until %v\n%+v", seed, p.Name, p.At, want, m.facts)
			}
			if want.After(t0) && p.At.Sub(want) <= 2*time.Second {
				tight++
			}
			if p.At.After(rep.At) || p.Latest.After(rep.Latest) || p.At.After(p.Latest) {
				t.Fatalf("seed %d: %s is later than everyone: %v %v, %v %v", seed, p.Name, p.At, p.Latest, rep.At, rep.Latest)
			}
			for _, s := range m.facts.Resolvers[ri].Samples {
				if end := s.Seen.Add(time.Duration(s.Left) * time.Second); s.State != safeat.Current && end.After(p.At) {
					t.Fatalf("seed %d: %s holds until %v, after %v", seed, p.Name, end, p.At)
				}
			}
		}
	}
	// A bound in the far future would never be broken, so check that most are tight.
	if tight < runs/4 {
		t.Errorf("only %d bounds of %d runs within 2 s of the truth", tight, runs)
	}
}
