package learn_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// simulation is a set of replicas that learn the same addresses. Each one sees the writes of the others after a delay.
type simulation struct {
	rules    learn.Rules
	now      time.Time
	stored   []learn.Entry
	version  int
	replicas []*replica
	writes   []time.Time
	lost     int // writes of a replica that had not seen the previous one
}

type replica struct {
	rank    float64
	memory  learn.Memory
	entries []learn.Entry
	version int
	coming  []time.Time // when later versions become visible; nil if all are visible
	due     time.Time
}

const watchLag = 200 * time.Millisecond

func newSimulation(ranks ...float64) *simulation {
	w := &simulation{rules: learn.Rules{MinTTL: minTTL, Threshold: 5, Lease: time.Minute}, now: start}
	for _, t := range ranks {
		w.replicas = append(w.replicas, &replica{rank: t})
	}
	return w
}

func (w *simulation) learns(r *replica, answer ...learn.Observation) {
	for _, l := range answer {
		w.rules.Note(&r.memory, learn.Entry{}, l, w.now)
	}
	w.write(r)
}

func (w *simulation) write(r *replica) {
	o := learn.Object{Name: "a.example.com.", Rank: func(string) float64 { return r.rank }}
	for range 2 {
		res := w.rules.Merge(r.entries, o, map[string]*learn.Memory{"a.example.com.": &r.memory}, w.now)
		r.due = res.Due
		if !res.Changed {
			break
		}
		r.coming = nil
		if r.version != w.version {
			w.lost++
			r.entries, r.version = w.stored, w.version
			continue
		}
		w.version++
		w.stored = res.Entries
		w.writes = append(w.writes, w.now)
		r.entries, r.version = w.stored, w.version
		r.memory.NoteWritten(res.Entries[0])
		for _, other := range w.replicas {
			if other != r {
				other.coming = append(other.coming, w.now.Add(watchLag))
			}
		}
		break
	}
	r.memory.TakePending()
}

// run advances the time. Every second, all given replicas are queried at the same moment.
func (w *simulation) run(t *testing.T, d time.Duration, observations []learn.Observation, part ...*replica) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(50 * time.Millisecond) {
		for _, r := range part {
			if n := len(r.coming); n > 0 && !r.coming[n-1].After(w.now) {
				r.entries, r.version, r.coming = w.stored, w.version, nil
			}
			switch {
			case w.now.Sub(start)%time.Second == 0:
				ttl := 5*time.Second - w.now.Sub(start)%(5*time.Second) // from a cache that all replicas fill at the same time
				w.learns(r, at(observations, ttl)...)
			case !r.due.IsZero() && !r.due.After(w.now):
				w.write(r)
			}
		}
		for _, h := range w.stored[0].Addrs {
			if over := w.now.Sub(h.Until()); over > learn.Grace-time.Second {
				t.Fatalf("at %v %v ended %v ago", w.now.Sub(start), h.Addr, over)
			}
		}
	}
}

func at(observations []learn.Observation, ttl time.Duration) []learn.Observation {
	var out []learn.Observation
	for _, l := range observations {
		l.Addrs = []learn.Address{{Addr: l.Addrs[0].Addr, TTL: ttl}}
		out = append(out, l)
	}
	return out
}

func observation(qtype uint16, addr string) learn.Observation {
	return learn.Observation{Name: "a.example.com.", Type: qtype,
		Addrs: []learn.Address{{Addr: netip.MustParseAddr(addr)}}}
}

// TestOneReplicaRenews checks that one of several replicas that learn the same at the same moment writes, less than
// once a minute. When that replica stops, another one writes. Two replicas never write at once.
func TestOneReplicaRenews(t *testing.T) {
	both := []learn.Observation{observation(dns.TypeA, "192.0.2.1"), observation(dns.TypeAAAA, "2001:db8::1")}
	for _, ranks := range [][]float64{{0, 0.5, 0.9}, {0.9, 0.5, 0}, {0.5, 0.1, 0.8}} {
		w := newSimulation(ranks...)
		w.learns(w.replicas[0], at(both, 5*time.Second)...)
		w.now = w.now.Add(time.Second) // all replicas would write new addresses at the same time
		w.run(t, 2*time.Minute, both, w.replicas...)
		for _, part := range [][]*replica{w.replicas, w.replicas[1:], w.replicas[2:], w.replicas} {
			n := len(w.writes)
			w.run(t, 5*time.Minute, both, part...)
			if got := len(w.writes) - n; got < 4 || got > 5 {
				t.Errorf("turns %v, %d replicas: %d writes in 5 minutes: %v", ranks, len(part), got, w.writes[n:])
			}
		}
		if w.lost > 0 {
			t.Errorf("turns %v: %d writes met another one", ranks, w.lost)
		}
	}
}

// TestOneReplicaRenewsBothFamilies checks that there are no further writes when one replica is queried for both types
// and the others for one.
func TestOneReplicaRenewsBothFamilies(t *testing.T) {
	both := []learn.Observation{observation(dns.TypeA, "192.0.2.1"), observation(dns.TypeAAAA, "2001:db8::1")}
	w := newSimulation(0.2, 0.6)
	w.learns(w.replicas[1], at(both[:1], 5*time.Second)...)
	w.now = w.now.Add(time.Second)
	w.replicas[0].entries, w.replicas[0].version, w.replicas[0].coming = w.stored, w.version, nil
	w.learns(w.replicas[0], at(both, 4*time.Second)...)
	n := 0
	for i := range 7 * 60 {
		w.run(t, time.Second, both[:1], w.replicas[1])
		w.now = w.now.Add(-time.Second)
		w.run(t, time.Second, both, w.replicas[0])
		if i == 2*60 {
			n = len(w.writes)
		}
	}
	if got := len(w.writes) - n; got > 5 {
		t.Errorf("%d writes in 5 minutes: %v", got, w.writes[n:])
	}
}

// TestRenewalBetweenAnswers checks that an address is renewed with the others between its end and the
// next query.
func TestRenewalBetweenAnswers(t *testing.T) {
	four, six := observation(dns.TypeA, "192.0.2.1"), observation(dns.TypeAAAA, "2001:db8::1")
	for rank := range 10 {
		w := newSimulation(float64(rank) / 10)
		r, n := w.replicas[0], 0
		for ; w.now.Sub(start) < 22*time.Minute; w.now = w.now.Add(50 * time.Millisecond) {
			age := w.now.Sub(start)
			switch {
			case age%(6*time.Second) == 0:
				w.learns(r, at([]learn.Observation{four, six}, 5*time.Second)...)
			case age%time.Second == 0:
				w.learns(r, at([]learn.Observation{four}, 5*time.Second)...)
			case !r.due.IsZero() && !r.due.After(w.now):
				w.write(r)
			}
			if age == 2*time.Minute {
				n = len(w.writes)
			}
		}
		if got := len(w.writes) - n; got > 20 {
			t.Errorf("turn %d: %d writes in 20 minutes", rank, got)
		}
	}
}

// TestShortened checks that a replica merges again when another one stored an earlier end than clients received.
func TestShortened(t *testing.T) {
	a := netip.MustParseAddr("192.0.2.1")
	entry := func(ttl int32) learn.Entry {
		return learn.Entry{Name: "a.example.com.", Addrs: []learn.StoredAddress{{Addr: a, TTL: ttl, Last: start}}}
	}
	var m learn.Memory
	rules := learn.Rules{MinTTL: minTTL, Lease: time.Minute}
	rules.Note(&m, learn.Entry{}, learn.Observation{Name: "a.example.com.", Type: dns.TypeA,
		Addrs: []learn.Address{{Addr: a, TTL: time.Minute}}}, start)
	for _, tc := range []struct {
		name    string
		was, is learn.Entry
		after   time.Duration
		cut     bool
	}{
		{"longer", entry(60), entry(75), 0, false},
		{"shorter, but not than the reported end", entry(90), entry(60), 0, false},
		{"shorter than the reported end", entry(60), entry(30), 0, true},
		{"taken away", entry(60), learn.Entry{}, 0, true},
		{"taken away when it was over", entry(60), learn.Entry{}, time.Minute, false},
		{"never stored", learn.Entry{}, learn.Entry{}, 0, false},
	} {
		if got := m.Shortened(tc.was, tc.is, start.Add(tc.after)); got != tc.cut {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
