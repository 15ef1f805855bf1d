package learn_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// world is replicas that learn the same, each of which sees what others stored after a while.
type world struct {
	rules    learn.Rules
	now      time.Time
	stored   []learn.Entry
	version  int
	replicas []*replica
	writes   []time.Time
	lost     int // writes of who had not seen the one before
}

type replica struct {
	turn    float64
	memory  learn.Memory
	entries []learn.Entry
	version int
	coming  []time.Time // when versions after its own are seen; nil: all are
	due     time.Time
}

const watchLag = 200 * time.Millisecond

func newWorld(turns ...float64) *world {
	w := &world{rules: learn.Rules{MinTTL: minTTL, Threshold: 5, Lease: time.Minute}, now: start}
	for _, t := range turns {
		w.replicas = append(w.replicas, &replica{turn: t})
	}
	return w
}

func (w *world) learns(r *replica, answer ...learn.Lesson) {
	for _, l := range answer {
		w.rules.Note(&r.memory, learn.Entry{}, l, w.now)
	}
	w.write(r)
}

func (w *world) write(r *replica) {
	o := learn.Object{Name: "a.example.com.", Turn: func(string) float64 { return r.turn }}
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
		r.memory.Wrote(res.Entries[0])
		for _, other := range w.replicas {
			if other != r {
				other.coming = append(other.coming, w.now.Add(watchLag))
			}
		}
		break
	}
	r.memory.Take()
}

// run lets time pass. Every second all of those that take part are asked, in the same moment.
func (w *world) run(t *testing.T, d time.Duration, lessons []learn.Lesson, part ...*replica) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(50 * time.Millisecond) {
		for _, r := range part {
			if n := len(r.coming); n > 0 && !r.coming[n-1].After(w.now) {
				r.entries, r.version, r.coming = w.stored, w.version, nil
			}
			switch {
			case w.now.Sub(start)%time.Second == 0:
				ttl := 5*time.Second - w.now.Sub(start)%(5*time.Second) // from a cache that all fill at once
				w.learns(r, at(lessons, ttl)...)
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

func at(lessons []learn.Lesson, ttl time.Duration) []learn.Lesson {
	var out []learn.Lesson
	for _, l := range lessons {
		l.Addrs = []learn.Address{{Addr: l.Addrs[0].Addr, TTL: ttl}}
		out = append(out, l)
	}
	return out
}

func lesson(qtype uint16, addr string) learn.Lesson {
	return learn.Lesson{Name: "a.example.com.", Type: qtype, Addrs: []learn.Address{{Addr: netip.MustParseAddr(addr)}}}
}

// TestTurns: of replicas that learn everything in the same moment one writes, once in more than a minute, and another one when
// it is gone. No two ever write at once.
func TestTurns(t *testing.T) {
	both := []learn.Lesson{lesson(dns.TypeA, "192.0.2.1"), lesson(dns.TypeAAAA, "2001:db8::1")}
	for _, turns := range [][]float64{{0, 0.5, 0.9}, {0.9, 0.5, 0}, {0.5, 0.1, 0.8}} {
		w := newWorld(turns...)
		w.learns(w.replicas[0], at(both, 5*time.Second)...)
		w.now = w.now.Add(time.Second) // what is new all would write at once
		w.run(t, 2*time.Minute, both, w.replicas...)
		for _, part := range [][]*replica{w.replicas, w.replicas[1:], w.replicas[2:], w.replicas} {
			n := len(w.writes)
			w.run(t, 5*time.Minute, both, part...)
			if got := len(w.writes) - n; got < 4 || got > 5 {
				t.Errorf("turns %v, %d replicas: %d writes in 5 minutes: %v", turns, len(part), got, w.writes[n:])
			}
		}
		if w.lost > 0 {
			t.Errorf("turns %v: %d writes met another one", turns, w.lost)
		}
	}
}

// TestTurnsOfFamilies: that one replica is asked for both types and the others for one of them makes no more writes.
func TestTurnsOfFamilies(t *testing.T) {
	both := []learn.Lesson{lesson(dns.TypeA, "192.0.2.1"), lesson(dns.TypeAAAA, "2001:db8::1")}
	w := newWorld(0.2, 0.6)
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

// TestTurnsBetweenAnswers: an address that is asked for a moment after its last answer has ended is renewed with the others also in that moment.
func TestTurnsBetweenAnswers(t *testing.T) {
	four, six := lesson(dns.TypeA, "192.0.2.1"), lesson(dns.TypeAAAA, "2001:db8::1")
	for turn := range 10 {
		w := newWorld(float64(turn) / 10)
		r, n := w.replicas[0], 0
		for ; w.now.Sub(start) < 22*time.Minute; w.now = w.now.Add(50 * time.Millisecond) {
			age := w.now.Sub(start)
			switch {
			case age%(6*time.Second) == 0:
				w.learns(r, at([]learn.Lesson{four, six}, 5*time.Second)...)
			case age%time.Second == 0:
				w.learns(r, at([]learn.Lesson{four}, 5*time.Second)...)
			case !r.due.IsZero() && !r.due.After(w.now):
				w.write(r)
			}
			if age == 2*time.Minute {
				n = len(w.writes)
			}
		}
		if got := len(w.writes) - n; got > 20 {
			t.Errorf("turn %d: %d writes in 20 minutes", turn, got)
		}
	}
}

// TestCut: who told clients of a later end than somebody else stored has to look again.
func TestCut(t *testing.T) {
	a := netip.MustParseAddr("192.0.2.1")
	entry := func(ttl int32) learn.Entry {
		return learn.Entry{Name: "a.example.com.", Addrs: []learn.Held{{Addr: a, TTL: ttl, Last: start}}}
	}
	var m learn.Memory
	rules := learn.Rules{MinTTL: minTTL, Lease: time.Minute}
	rules.Note(&m, learn.Entry{}, learn.Lesson{Name: "a.example.com.", Type: dns.TypeA, Addrs: []learn.Address{{Addr: a, TTL: time.Minute}}}, start)
	for _, tc := range []struct {
		name    string
		was, is learn.Entry
		after   time.Duration
		cut     bool
	}{
		{"longer", entry(60), entry(75), 0, false},
		{"shorter, but not than it was told", entry(90), entry(60), 0, false},
		{"shorter than it was told", entry(60), entry(30), 0, true},
		{"taken away", entry(60), learn.Entry{}, 0, true},
		{"taken away when it was over", entry(60), learn.Entry{}, time.Minute, false},
		{"never stored", learn.Entry{}, learn.Entry{}, 0, false},
	} {
		if got := m.Cut(tc.was, tc.is, start.Add(tc.after)); got != tc.cut {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
