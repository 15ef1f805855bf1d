package learn_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// rig is a stored status and the replicas that write it.
type rig struct {
	t        testing.TB
	rules    learn.Rules
	object   string
	plain    bool
	now      time.Time
	stored   []learn.Entry
	replicas []map[string]*learn.Memory
	writes   int
	left     []string
	due      time.Time
}

func newRig(t testing.TB, object string, replicas int) *rig {
	r := &rig{t: t, object: object, now: start, rules: learn.Rules{MinTTL: minTTL, Threshold: 5, Lease: time.Minute}}
	for range replicas {
		r.replicas = append(r.replicas, map[string]*learn.Memory{})
	}
	return r
}

func (r *rig) entry(name string) learn.Entry {
	for _, e := range r.stored {
		if e.Name == name {
			return e
		}
	}
	return learn.Entry{Name: name}
}

// sees lets a replica see an answer: addresses with their TTL, or a response code.
func (r *rig) sees(replica int, name, answer string) {
	r.t.Helper()
	l := learn.Lesson{Name: name, Type: dns.TypeA}
	for _, w := range strings.Fields(answer) {
		if code, ok := dns.StringToRcode[w]; ok {
			l.Rcode, l.Failed = code, true
			continue
		}
		switch w {
		case "AAAA":
			l.Type = dns.TypeAAAA
			continue
		case "TC":
			l.Partial = true
			continue
		}
		a, ttl, _ := strings.Cut(w, "/")
		d, err := time.ParseDuration(ttl)
		if err != nil {
			r.t.Fatal(err)
		}
		l.Addrs = append(l.Addrs, learn.Address{Addr: netip.MustParseAddr(a), TTL: d})
	}
	m := r.replicas[replica][name]
	if m == nil {
		m = &learn.Memory{}
		r.replicas[replica][name] = m
	}
	r.rules.Note(m, r.entry(name), l, r.now)
	r.write(replica, name)
}

func (r *rig) write(replica int, names ...string) {
	known := map[string]*learn.Memory{}
	for _, n := range names {
		known[n] = r.replicas[replica][n]
	}
	o := learn.Object{Name: r.object, Wildcard: strings.HasPrefix(r.object, "*."), Plain: r.plain,
		Turn: func(string) float64 { return float64(replica) / float64(len(r.replicas)) }}
	res := r.rules.Merge(r.stored, o, known, r.now)
	r.left = append(r.left, res.Left...)
	r.due = res.Due
	if res.Changed {
		r.writes++
		r.stored = res.Entries
		for n, m := range known {
			m.Wrote(r.entry(n))
		}
	}
	for _, m := range known {
		m.Take()
	}
}

func (r *rig) wait(d time.Duration) { r.now = r.now.Add(d) }

// state is the stored status in words: for each name its addresses with the time they have left, failures, condition.
func (r *rig) state() string {
	var out []string
	for _, e := range r.stored {
		line := e.Name
		for _, h := range e.Addrs {
			line += fmt.Sprintf(" %s/%v", h.Addr, h.Until().Sub(r.now))
		}
		if e.Failures > 0 {
			line += fmt.Sprintf(" failures=%d", e.Failures)
		}
		if e.Degraded.Stored() {
			line += " " + e.Degraded.Reason
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func (r *rig) want(state string) {
	r.t.Helper()
	if diff := cmp.Diff(state, r.state()); diff != "" {
		r.t.Errorf("at %v (-want +got):\n%s", r.now.Sub(start), diff)
	}
}

func TestSuccess(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/30s")
	r.want("a.example.com. 192.0.2.1/30s NOERROR")
	r.sees(0, "a.example.com.", "192.0.2.1/30s 192.0.2.2/30s")
	r.want("a.example.com. 192.0.2.1/30s 192.0.2.2/30s NOERROR")
	r.wait(10 * time.Second)
	r.sees(0, "a.example.com.", "192.0.2.3/30s") // one of a pool: the others stay for as long as they were given
	r.want("a.example.com. 192.0.2.1/20s 192.0.2.2/20s 192.0.2.3/30s NOERROR")
	r.sees(0, "a.example.com.", "AAAA 2001:db8::1/30s")
	r.want("a.example.com. 192.0.2.1/20s 192.0.2.2/20s 192.0.2.3/30s 2001:db8::1/30s NOERROR")
	if r.writes != 4 {
		t.Errorf("%d writes", r.writes)
	}
	r.sees(0, "a.example.com.", "192.0.2.3/30s")
	r.sees(0, "a.example.com.", "192.0.2.1/20s 192.0.2.2/20s 192.0.2.3/29s") // from a cache
	r.sees(0, "a.example.com.", "")                                          // case 18: no data
	if r.writes != 4 {
		t.Errorf("a write for nothing new: %s", r.state())
	}
}

// TestSubsecond is case 51: what is stored has whole seconds, and is true to half of one. Answers from a cache, which counts in whole
// seconds too, do not let an address live on.
func TestSubsecond(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.wait(900 * time.Millisecond)
	r.sees(0, "a.example.com.", "192.0.2.1/2s")
	r.want("a.example.com. 192.0.2.1/2.1s NOERROR")
	r.wait(200 * time.Millisecond)
	r.sees(0, "a.example.com.", "192.0.2.1/2s")
	r.wait(900 * time.Millisecond)
	r.sees(0, "a.example.com.", "192.0.2.1/1s")
	if r.writes != 1 {
		t.Errorf("%d writes", r.writes)
	}
	r.wait(500 * time.Millisecond)
	r.sees(0, "a.example.com.", "192.0.2.2/2s") // a write, with which nothing of the other one goes
	r.want("a.example.com. 192.0.2.1/500ms 192.0.2.2/2.5s NOERROR")
	r = newRig(t, "a.example.com.", 1)
	r.wait(100 * time.Millisecond)
	r.sees(0, "a.example.com.", "192.0.2.1/2s")
	r.want("a.example.com. 192.0.2.1/1.9s NOERROR")
}

// TestStretch: a stable address is written three times, and then once in more than a minute, whoever asks how often.
func TestStretch(t *testing.T) {
	r := newRig(t, "a.example.com.", 3)
	var at []time.Duration
	for range 12 * 60 * 4 {
		was := r.writes
		r.sees(rand.IntN(3), "a.example.com.", "192.0.2.1/5s")
		if r.writes != was {
			at = append(at, r.now.Sub(start))
		}
		if left := r.entry("a.example.com.").Addrs[0].Until().Sub(r.now); left < -time.Second { // which is within the grace
			t.Fatalf("at %v it ended %v ago", r.now.Sub(start), -left)
		}
		r.wait(250 * time.Millisecond)
	}
	for i := 4; i < len(at); i++ {
		if at[i]-at[i-1] < time.Minute {
			t.Errorf("written at %v", at)
		}
	}
	if len(at) > 4+12 {
		t.Errorf("written %d times in 12 minutes: %v", len(at), at)
	}
}

// TestNoStretch is `lease 0`.
func TestNoStretch(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.rules.Lease = 0
	for range 100 {
		r.sees(0, "a.example.com.", "192.0.2.1/10s")
		if left := r.entry("a.example.com.").Addrs[0].Until().Sub(r.now); left <= 0 || left > 10*time.Second {
			t.Fatalf("stored for %v more", left)
		}
		r.wait(time.Second)
	}
}

// TestShrink: the first answer without a stable address gives it its true end.
func TestShrink(t *testing.T) {
	for _, answer := range []string{"192.0.2.2/5s", "NXDOMAIN"} {
		r := newRig(t, "a.example.com.", 1)
		for range 120 {
			r.sees(0, "a.example.com.", "192.0.2.1/5s")
			r.wait(time.Second)
		}
		if left := r.entry("a.example.com.").Addrs[0].Until().Sub(r.now); left < 20*time.Second {
			t.Fatalf("it was not stretched: %v", left)
		}
		r.sees(0, "a.example.com.", answer)
		if left := r.entry("a.example.com.").Addrs[0].Until().Sub(r.now); left > minTTL {
			t.Errorf("after %s it is good for %v", answer, left)
		}
	}
	r := newRig(t, "a.example.com.", 1)
	for range 120 {
		r.sees(0, "a.example.com.", "192.0.2.1/5s")
		r.wait(time.Second)
	}
	was := r.entry("a.example.com.").Addrs[0].Until()
	r.sees(0, "a.example.com.", "TC 192.0.2.2/5s") // case 26: a reply that was cut says nothing of those that are missing
	if until := r.entry("a.example.com.").Addrs[0].Until(); until.Before(was) {
		t.Errorf("it ends %v earlier", was.Sub(until))
	}
}

// TestShrinkLate: the answer that lacks a stable address comes when clients may not use it any more, as it does when the name is asked
// for by its TTL, be the replica idle meanwhile or not. The address ends when it did for clients.
func TestShrinkLate(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	for range 120 {
		r.sees(0, "a.example.com.", "192.0.2.1/5s")
		r.wait(time.Second)
	}
	end := r.now.Add(4 * time.Second) // it was last given a second ago
	r.wait(7 * time.Second)
	r.sees(0, "a.example.com.", "192.0.2.2/5s")
	if until := r.entry("a.example.com.").Addrs[0].Until(); until.Before(end) || until.After(end.Add(time.Second)) {
		t.Errorf("it ends %v after clients may not use it any more", until.Sub(end))
	}
}

// TestPromise: an address that a client may use for longer than is stored is written before that ends, without another answer.
func TestPromise(t *testing.T) {
	r := newRig(t, "a.example.com.", 2)
	r.sees(0, "a.example.com.", "192.0.2.1/300s")
	r.wait(200 * time.Second)
	r.sees(1, "a.example.com.", "192.0.2.1/300s")
	r.want("a.example.com. 192.0.2.1/1m40s NOERROR")
	if left := r.due.Sub(r.now); left < 80*time.Second || left > 100*time.Second {
		t.Fatalf("due in %v", left)
	}
	r.now = r.due
	r.write(1, "a.example.com.")
	if until := r.entry("a.example.com.").Addrs[0].Until().Sub(start); until < 500*time.Second {
		t.Errorf("it ends at %v, though clients were told %v", until, 500*time.Second)
	}
}

// TestFailures is cases 20 to 24.
func TestFailures(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "NXDOMAIN")
	r.want("") // nothing is stored of a name that never was
	r.sees(0, "a.example.com.", "192.0.2.1/10s")
	r.wait(10 * time.Second)
	r.sees(0, "a.example.com.", "NXDOMAIN")
	r.want("a.example.com. 192.0.2.1/5s failures=1 NXDOMAIN")
	since := r.entry("a.example.com.").Degraded.Since
	r.wait(time.Second)
	r.sees(0, "a.example.com.", "NXDOMAIN") // impatient clients do not count
	r.want("a.example.com. 192.0.2.1/4s failures=1 NXDOMAIN")
	r.wait(4 * time.Second)
	r.sees(0, "a.example.com.", "NXDOMAIN")
	r.want("a.example.com. 192.0.2.1/5s failures=2 NXDOMAIN")
	if got := r.entry("a.example.com.").Degraded; !got.Since.Equal(since) || !got.Failed || got.Message != "Non-Existent Domain" {
		t.Errorf("condition is %+v", got)
	}
	r.wait(5 * time.Second)
	r.sees(0, "a.example.com.", "REFUSED") // case 24: another reason is a change
	if got := r.entry("a.example.com.").Degraded; got.Since.Equal(since) || got.Reason != "REFUSED" || got.Message != "Query Refused" {
		t.Errorf("condition is %+v", got)
	}
	r.wait(5 * time.Second)
	r.sees(0, "a.example.com.", "SERVFAIL")
	r.want("a.example.com. 192.0.2.1/5s failures=4 SERVFAIL")
	r.wait(time.Second)
	r.sees(0, "a.example.com.", "192.0.2.1/10s") // case 22
	r.want("a.example.com. 192.0.2.1/10s NOERROR")
	r.wait(10 * time.Second)
	for n := 1; n <= 5; n++ {
		r.sees(0, "a.example.com.", "FORMERR")
		r.want(fmt.Sprintf("a.example.com. 192.0.2.1/5s failures=%d FORMERR", n))
		r.wait(5 * time.Second)
	}
	r.sees(0, "a.example.com.", "FORMERR") // case 21
	r.want("")
}

// TestFailuresWhileValid is the second half of case 21, and that an entry goes nevertheless however often clients ask.
func TestFailuresWhileValid(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/60s")
	gone := time.Duration(0)
	for range 100 {
		r.wait(time.Second)
		r.sees(0, "a.example.com.", "NXDOMAIN")
		if len(r.stored) == 0 {
			gone = r.now.Sub(start)
			break
		}
	}
	if gone < 60*time.Second || gone > 70*time.Second {
		t.Errorf("gone after %v", gone)
	}
}

// TestOneFamilyFails is case 19: servers that cannot do AAAA.
func TestOneFamilyFails(t *testing.T) {
	for _, rcode := range []string{"SERVFAIL", "NXDOMAIN"} {
		r := newRig(t, "a.example.com.", 1)
		for range 30 {
			r.sees(0, "a.example.com.", "192.0.2.1/30s")
			r.sees(0, "a.example.com.", "AAAA "+rcode)
			r.wait(5 * time.Second)
		}
		if e := r.entry("a.example.com."); e.Failures != 0 || e.Degraded.Failed {
			t.Errorf("%s: %s", rcode, r.state())
		}
		if r.writes > 8 {
			t.Errorf("%s: %d writes", rcode, r.writes)
		}
	}
}

func TestWildcard(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/30s")
	r.sees(0, "b.example.com.", "192.0.2.2/30s")
	r.sees(0, "c.example.com.", "192.0.2.3/60s")
	r.sees(0, "*.example.com.", "192.0.2.2/30s 192.0.2.3/30s")
	// Cases 36, 37, D4: first, and only what it covers goes.
	r.want("*.example.com. 192.0.2.2/30s 192.0.2.3/30s NOERROR; a.example.com. 192.0.2.1/30s NOERROR; c.example.com. 192.0.2.3/1m0s NOERROR")
	writes := r.writes
	r.sees(0, "d.example.com.", "192.0.2.3/30s") // covered: not written
	if r.writes != writes || r.due.Sub(r.now) != 30*time.Second {
		t.Errorf("%d writes, due in %v: %s", r.writes-writes, r.due.Sub(r.now), r.state())
	}
	r.sees(0, "e.example.com.", "192.0.2.3/90s")
	r.want("*.example.com. 192.0.2.2/30s 192.0.2.3/30s NOERROR; a.example.com. 192.0.2.1/30s NOERROR; c.example.com. 192.0.2.3/1m0s NOERROR; e.example.com. 192.0.2.3/1m30s NOERROR")
}

func TestOddNames(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.sees(0, "_b.example.com.", "192.0.2.1/30s") // case 5, D6
	r.want("_b.example.com. 192.0.2.1/30s NOERROR")
	r.sees(0, `a\.b.example.com.`, "192.0.2.2/30s")
	r.want("*.example.com. 192.0.2.2/30s; _b.example.com. 192.0.2.1/30s NOERROR")
	r.sees(0, `a\.b.example.com.`, "NXDOMAIN") // which is not a failure of the wildcard
	r.want("*.example.com. 192.0.2.2/30s; _b.example.com. 192.0.2.1/30s NOERROR")

	r = newRig(t, "*.example.com.", 1)
	r.plain = true
	r.sees(0, "_b.example.com.", "192.0.2.1/30s")
	r.sees(0, "b-.example.com.", "192.0.2.2/30s")
	r.sees(0, "b.example.com.", "192.0.2.3/30s")
	r.want("*.example.com. 192.0.2.1/30s 192.0.2.2/30s; b.example.com. 192.0.2.3/30s NOERROR")
}

// TestBounds is case 40: names first, then folded, then left to leases; nothing valid is removed, what ended makes room.
func TestBounds(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.rules.MaxNames, r.rules.MaxBytes = 3, 1650
	for i := range 12 {
		r.sees(0, fmt.Sprintf("n%02d.example.com.", i), fmt.Sprintf("192.0.2.%d/30s", i+1))
	}
	r.want("*.example.com. 192.0.2.3/30s 192.0.2.4/30s 192.0.2.5/30s 192.0.2.6/30s 192.0.2.7/30s 192.0.2.8/30s 192.0.2.9/30s; " +
		"n00.example.com. 192.0.2.1/30s NOERROR; n01.example.com. 192.0.2.2/30s NOERROR")
	if want := []string{"n09.example.com.", "n10.example.com.", "n11.example.com."}; !slices.Equal(r.left, want) {
		t.Errorf("left are %v, want %v", r.left, want)
	}
	r.wait(36 * time.Second)
	r.sees(0, "late.example.com.", "192.0.2.99/30s")
	r.want("*.example.com.; late.example.com. 192.0.2.99/30s NOERROR")

	r = newRig(t, "*.example.com.", 1) // by names alone, of which the wildcard's own entry is none
	r.rules.MaxNames, r.rules.MaxBytes = 2, 0
	for i := range 4 {
		r.sees(0, fmt.Sprintf("n%02d.example.com.", i), fmt.Sprintf("192.0.2.%d/30s", i+1))
	}
	r.want("*.example.com. 192.0.2.3/30s 192.0.2.4/30s; n00.example.com. 192.0.2.1/30s NOERROR; n01.example.com. 192.0.2.2/30s NOERROR")
}

// TestCrowded: what replicas that do not know of each other add at once fits, or only one of them is to succeed.
func TestCrowded(t *testing.T) {
	names := func(from, to int) map[string]*learn.Memory {
		out := map[string]*learn.Memory{}
		for i := from; i < to; i++ {
			n, m := fmt.Sprintf("n%04d.example.com.", i), &learn.Memory{}
			learn.Rules{}.Note(m, learn.Entry{}, learn.Lesson{Name: n, Type: dns.TypeA,
				Addrs: []learn.Address{{Addr: netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), TTL: time.Minute}}}, start)
			out[n] = m
		}
		return out
	}
	rules := learn.Rules{MinTTL: minTTL, Lease: time.Minute, MaxNames: 1000, MaxBytes: 112 << 10}
	o := learn.Object{Name: "*.example.com.", Wildcard: true, Turn: func(string) float64 { return 0 }}
	var have []learn.Entry
	for _, tc := range []struct {
		from, to int
		crowded  bool
	}{{0, 50, false}, {50, 150, false}, {150, 400, true}, {400, 405, false}, {405, 600, true}} {
		res := rules.Merge(have, o, names(tc.from, tc.to), start)
		if !res.Changed || res.Crowded != tc.crowded {
			t.Errorf("%d names beside %d: changed %v, crowded %v", tc.to-tc.from, tc.from, res.Changed, res.Crowded)
		}
		have = res.Entries
	}
}

// TestMergeDoesNotWriteInPlace: the entries that were given are what another goroutine reads.
func TestMergeDoesNotWriteInPlace(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/5s")
	r.sees(0, "b.example.com.", "192.0.2.1/5s")
	old, was := r.stored, r.state()
	for _, answer := range []string{"192.0.2.1/50s 192.0.2.2/5s", "NXDOMAIN"} {
		r.wait(4 * time.Second)
		r.sees(0, "a.example.com.", answer)
		r.sees(0, "*.example.com.", "192.0.2.1/600s")
	}
	r.stored, r.now = old, start
	r.want(was)
}

// TestPut: what could not be written is written later, unless something newer was learned.
func TestPut(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/10s")
	r.wait(10 * time.Second)
	m := r.replicas[0]["a.example.com."]
	r.rules.Note(m, r.entry("a.example.com."), learn.Lesson{Name: "a.example.com.", Type: dns.TypeA, Rcode: dns.RcodeNameError, Failed: true}, r.now)
	m.Put(m.Take())
	r.write(0, "a.example.com.")
	r.want("a.example.com. 192.0.2.1/5s failures=1 NXDOMAIN")
	r.wait(5 * time.Second)
	r.rules.Note(m, r.entry("a.example.com."), learn.Lesson{Name: "a.example.com.", Type: dns.TypeA, Rcode: dns.RcodeNameError, Failed: true}, r.now)
	lost := m.Take()
	r.rules.Note(m, r.entry("a.example.com."), learn.Lesson{Name: "a.example.com.", Type: dns.TypeA, Addrs: []learn.Address{{Addr: netip.MustParseAddr("192.0.2.1"), TTL: 10 * time.Second}}}, r.now)
	m.Put(lost)
	r.write(0, "a.example.com.")
	r.want("a.example.com. 192.0.2.1/10s NOERROR")
}

// TestRemembered: a server that makes up addresses does not fill the memory.
func TestRemembered(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	l := learn.Lesson{Name: "a.example.com.", Type: dns.TypeA}
	for i := range 10_000 {
		l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), TTL: time.Hour})
	}
	m := &learn.Memory{}
	r.rules.Note(m, learn.Entry{}, l, r.now)
	r.replicas[0]["a.example.com."] = m
	r.write(0, "a.example.com.")
	if n := len(r.entry("a.example.com.").Addrs); n != 4096 {
		t.Errorf("%d addresses are remembered", n)
	}
}

// TestFailuresOfReplicas: that each replica counts at its own time does not keep a dead name alive.
func TestFailuresOfReplicas(t *testing.T) {
	r := newRig(t, "a.example.com.", 3)
	r.sees(0, "a.example.com.", "192.0.2.1/5s")
	for i := range 60 {
		r.wait(time.Second)
		r.sees(i%3, "a.example.com.", "NXDOMAIN")
	}
	r.want("")
}
