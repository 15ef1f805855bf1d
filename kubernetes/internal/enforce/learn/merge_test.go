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

// sees passes an answer to a replica: addresses with TTLs, or a response code.
func (r *rig) sees(replica int, name, answer string) {
	r.t.Helper()
	l := learn.Observation{Name: name, Type: dns.TypeA}
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
	o := learn.Object{Name: r.object, Wildcard: strings.HasPrefix(r.object, "*."), HostnamesOnly: r.plain,
		Rank: func(string) float64 { return float64(replica) / float64(len(r.replicas)) }}
	res := r.rules.Merge(r.stored, o, known, r.now)
	r.left = append(r.left, res.Omitted...)
	r.due = res.Due
	if res.Changed {
		r.writes++
		r.stored = res.Entries
		for n, m := range known {
			m.NoteWritten(r.entry(n))
		}
	}
	for _, m := range known {
		m.TakePending()
	}
}

func (r *rig) wait(d time.Duration) { r.now = r.now.Add(d) }

// state formats the stored status: addresses with their remaining time, failures and condition of each name.
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
	r.sees(0, "a.example.com.", "192.0.2.3/30s") // one of a pool: the others stay until their end
	r.want("a.example.com. 192.0.2.1/20s 192.0.2.2/20s 192.0.2.3/30s NOERROR")
	r.sees(0, "a.example.com.", "AAAA 2001:db8::1/30s")
	r.want("a.example.com. 192.0.2.1/20s 192.0.2.2/20s 192.0.2.3/30s 2001:db8::1/30s NOERROR")
	if r.writes != 4 {
		t.Errorf("%d writes", r.writes)
	}
	r.sees(0, "a.example.com.", "192.0.2.3/30s")
	r.sees(0, "a.example.com.", "192.0.2.1/20s 192.0.2.2/20s 192.0.2.3/29s") // from a cache
	r.sees(0, "a.example.com.", "")                                          // no data
	if r.writes != 4 {
		t.Errorf("a write for nothing new: %s", r.state())
	}
}

// TestSubsecond checks that stored times, which have whole seconds, are correct to half a second. Answers from a cache,
// which counts whole seconds too, must not extend an address.
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
	r.sees(0, "a.example.com.", "192.0.2.2/2s") // this write does not extend the other address
	r.want("a.example.com. 192.0.2.1/500ms 192.0.2.2/2.5s NOERROR")
	r = newRig(t, "a.example.com.", 1)
	r.wait(100 * time.Millisecond)
	r.sees(0, "a.example.com.", "192.0.2.1/2s")
	r.want("a.example.com. 192.0.2.1/1.9s NOERROR")
}

// TestStretch checks that a stable address is written three times, and then less than once a minute, regardless of how
// often clients ask.
func TestStretch(t *testing.T) {
	r := newRig(t, "a.example.com.", 3)
	var at []time.Duration
	for range 12 * 60 * 4 {
		was := r.writes
		r.sees(rand.IntN(3), "a.example.com.", "192.0.2.1/5s")
		if r.writes != was {
			at = append(at, r.now.Sub(start))
		}
		if left := r.entry("a.example.com.").Addrs[0].Until().Sub(r.now); left < -time.Second { // within Grace
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

// TestNoStretch checks the setting `lease 0`.
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

// TestShrink checks that the first answer without a stable address corrects its end.
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
	r.sees(0, "a.example.com.", "TC 192.0.2.2/5s") // a truncated reply says nothing about missing addresses
	if until := r.entry("a.example.com.").Addrs[0].Until(); until.Before(was) {
		t.Errorf("it ends %v earlier", was.Sub(until))
	}
}

// TestShrinkLate checks an answer without a stable address that comes after the address ended for clients. This happens
// when the name is queried at its TTL, whether or not the replica was idle. The stored end becomes the end for clients.
func TestShrinkLate(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	for range 120 {
		r.sees(0, "a.example.com.", "192.0.2.1/5s")
		r.wait(time.Second)
	}
	end := r.now.Add(4 * time.Second) // it was last seen a second ago
	r.wait(7 * time.Second)
	r.sees(0, "a.example.com.", "192.0.2.2/5s")
	if until := r.entry("a.example.com.").Addrs[0].Until(); until.Before(end) || until.After(end.Add(time.Second)) {
		t.Errorf("it ends %v after clients may not use it any more", until.Sub(end))
	}
}

// TestPromise checks that an address is extended before its stored end, without another answer, if clients may use it
// for longer.
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
		t.Errorf("it ends after %v, though clients may use it until %v", until, 500*time.Second)
	}
}

// TestFailures checks how failures are counted, and that an entry goes after too many of them.
func TestFailures(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "NXDOMAIN")
	r.want("") // a name that never resolved is not stored
	r.sees(0, "a.example.com.", "192.0.2.1/10s")
	r.wait(10 * time.Second)
	r.sees(0, "a.example.com.", "NXDOMAIN")
	r.want("a.example.com. 192.0.2.1/5s failures=1 NXDOMAIN")
	since := r.entry("a.example.com.").Degraded.Since
	r.wait(time.Second)
	r.sees(0, "a.example.com.", "NXDOMAIN") // retries within MinTTL are not counted
	r.want("a.example.com. 192.0.2.1/4s failures=1 NXDOMAIN")
	r.wait(4 * time.Second)
	r.sees(0, "a.example.com.", "NXDOMAIN")
	r.want("a.example.com. 192.0.2.1/5s failures=2 NXDOMAIN")
	if got := r.entry("a.example.com.").Degraded; !got.Since.Equal(since) || !got.Failed ||
		got.Message != "Non-Existent Domain" {
		t.Errorf("condition is %+v", got)
	}
	r.wait(5 * time.Second)
	r.sees(0, "a.example.com.", "REFUSED") // another reason is a change
	if got := r.entry("a.example.com.").Degraded; got.Since.Equal(since) || got.Reason != "REFUSED" ||
		got.Message != "Query Refused" {
		t.Errorf("condition is %+v", got)
	}
	r.wait(5 * time.Second)
	r.sees(0, "a.example.com.", "SERVFAIL")
	r.want("a.example.com. 192.0.2.1/5s failures=4 SERVFAIL")
	r.wait(time.Second)
	r.sees(0, "a.example.com.", "192.0.2.1/10s") // a success resets the count
	r.want("a.example.com. 192.0.2.1/10s NOERROR")
	r.wait(10 * time.Second)
	for n := 1; n <= 5; n++ {
		r.sees(0, "a.example.com.", "FORMERR")
		r.want(fmt.Sprintf("a.example.com. 192.0.2.1/5s failures=%d FORMERR", n))
		r.wait(5 * time.Second)
	}
	r.sees(0, "a.example.com.", "FORMERR") // over the threshold, and the addresses have ended: the entry is removed
	r.want("")
}

// TestFailuresWhileValid checks that failures do not remove valid addresses. The entry is removed later, however often
// clients ask.
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

// TestOneFamilyFails checks servers that cannot answer AAAA.
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
	// The wildcard's own entry is first. It replaces only the entries that it covers.
	r.want("*.example.com. 192.0.2.2/30s 192.0.2.3/30s NOERROR; a.example.com. 192.0.2.1/30s NOERROR; c.example.com. " +
		"192.0.2.3/1m0s NOERROR")
	writes := r.writes
	r.sees(0, "d.example.com.", "192.0.2.3/30s") // covered: not written
	if r.writes != writes || r.due.Sub(r.now) != 30*time.Second {
		t.Errorf("%d writes, due in %v: %s", r.writes-writes, r.due.Sub(r.now), r.state())
	}
	r.sees(0, "e.example.com.", "192.0.2.3/90s")
	r.want("*.example.com. 192.0.2.2/30s 192.0.2.3/30s NOERROR; a.example.com. 192.0.2.1/30s NOERROR; c.example.com. " +
		"192.0.2.3/1m0s NOERROR; e.example.com. 192.0.2.3/1m30s NOERROR")
}

func TestOddNames(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.sees(0, "_b.example.com.", "192.0.2.1/30s") // underscores are stored
	r.want("_b.example.com. 192.0.2.1/30s NOERROR")
	r.sees(0, `a\.b.example.com.`, "192.0.2.2/30s")
	r.want("*.example.com. 192.0.2.2/30s; _b.example.com. 192.0.2.1/30s NOERROR")
	r.sees(0, `a\.b.example.com.`, "NXDOMAIN") // not a failure of the wildcard
	r.want("*.example.com. 192.0.2.2/30s; _b.example.com. 192.0.2.1/30s NOERROR")

	r = newRig(t, "*.example.com.", 1)
	r.plain = true
	r.sees(0, "_b.example.com.", "192.0.2.1/30s")
	r.sees(0, "b-.example.com.", "192.0.2.2/30s")
	r.sees(0, "b.example.com.", "192.0.2.3/30s")
	r.want("*.example.com. 192.0.2.1/30s 192.0.2.2/30s; b.example.com. 192.0.2.3/30s NOERROR")
}

// TestBounds checks the order in which room is used: entries of names, then folded addresses, then leases only. Nothing
// valid is removed, and ended entries make room.
func TestBounds(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.rules.MaxNames, r.rules.MaxBytes = 3, 1650
	for i := range 12 {
		r.sees(0, fmt.Sprintf("n%02d.example.com.", i), fmt.Sprintf("192.0.2.%d/30s", i+1))
	}
	r.want("*.example.com. 192.0.2.3/30s 192.0.2.4/30s 192.0.2.5/30s 192.0.2.6/30s 192.0.2.7/30s 192.0.2.8/30s " +
		"192.0.2.9/30s; " +
		"n00.example.com. 192.0.2.1/30s NOERROR; n01.example.com. 192.0.2.2/30s NOERROR")
	if want := []string{"n09.example.com.", "n10.example.com.", "n11.example.com."}; !slices.Equal(r.left, want) {
		t.Errorf("left are %v, want %v", r.left, want)
	}
	r.wait(36 * time.Second)
	r.sees(0, "late.example.com.", "192.0.2.99/30s")
	r.want("*.example.com.; late.example.com. 192.0.2.99/30s NOERROR")

	r = newRig(t, "*.example.com.", 1) // limited by names alone, which do not include the wildcard's own entry
	r.rules.MaxNames, r.rules.MaxBytes = 2, 0
	for i := range 4 {
		r.sees(0, fmt.Sprintf("n%02d.example.com.", i), fmt.Sprintf("192.0.2.%d/30s", i+1))
	}
	r.want("*.example.com. 192.0.2.3/30s 192.0.2.4/30s; n00.example.com. 192.0.2.1/30s NOERROR; n01.example.com. " +
		"192.0.2.2/30s NOERROR")
}

// TestNearLimitNeedsExclusiveWrite checks that the growths of replicas that write at the same time fit together, or
// that only one of them succeeds.
func TestNearLimitNeedsExclusiveWrite(t *testing.T) {
	names := func(from, to int) map[string]*learn.Memory {
		out := map[string]*learn.Memory{}
		for i := from; i < to; i++ {
			n, m := fmt.Sprintf("n%04d.example.com.", i), &learn.Memory{}
			learn.Rules{}.Note(m, learn.Entry{}, learn.Observation{Name: n, Type: dns.TypeA,
				Addrs: []learn.Address{{Addr: netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), TTL: time.Minute}}}, start)
			out[n] = m
		}
		return out
	}
	rules := learn.Rules{MinTTL: minTTL, Lease: time.Minute, MaxNames: 1000, MaxBytes: 112 << 10}
	o := learn.Object{Name: "*.example.com.", Wildcard: true, Rank: func(string) float64 { return 0 }}
	var have []learn.Entry
	for _, tc := range []struct {
		from, to  int
		exclusive bool
	}{{0, 50, false}, {50, 150, false}, {150, 400, true}, {400, 405, false}, {405, 600, true}} {
		res := rules.Merge(have, o, names(tc.from, tc.to), start)
		if !res.Changed || res.Exclusive != tc.exclusive {
			t.Errorf("%d names beside %d: changed %v, exclusive %v", tc.to-tc.from, tc.from, res.Changed, res.Exclusive)
		}
		have = res.Entries
	}
}

// TestMergeKeepsItsArgument checks that Merge does not modify its argument, which other goroutines read.
func TestMergeKeepsItsArgument(t *testing.T) {
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

// TestRestorePending checks that a result that could not be written is written later, unless there is a newer one.
func TestRestorePending(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/10s")
	r.wait(10 * time.Second)
	m := r.replicas[0]["a.example.com."]
	r.rules.Note(m, r.entry("a.example.com."),
		learn.Observation{Name: "a.example.com.", Type: dns.TypeA, Rcode: dns.RcodeNameError, Failed: true}, r.now)
	m.RestorePending(m.TakePending())
	r.write(0, "a.example.com.")
	r.want("a.example.com. 192.0.2.1/5s failures=1 NXDOMAIN")
	r.wait(5 * time.Second)
	r.rules.Note(m, r.entry("a.example.com."),
		learn.Observation{Name: "a.example.com.", Type: dns.TypeA, Rcode: dns.RcodeNameError, Failed: true}, r.now)
	lost := m.TakePending()
	r.rules.Note(m, r.entry("a.example.com."),
		learn.Observation{Name: "a.example.com.", Type: dns.TypeA,
			Addrs: []learn.Address{{Addr: netip.MustParseAddr("192.0.2.1"), TTL: 10 * time.Second}}}, r.now)
	m.RestorePending(lost)
	r.write(0, "a.example.com.")
	r.want("a.example.com. 192.0.2.1/10s NOERROR")
}

// TestRemembered checks that a server that invents addresses does not fill the memory.
func TestRemembered(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	l := learn.Observation{Name: "a.example.com.", Type: dns.TypeA}
	for i := range 10_000 {
		l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}),
			TTL: time.Hour})
	}
	m := &learn.Memory{}
	r.rules.Note(m, learn.Entry{}, l, r.now)
	r.replicas[0]["a.example.com."] = m
	r.write(0, "a.example.com.")
	if n := len(r.entry("a.example.com.").Addrs); n != 4096 {
		t.Errorf("%d addresses are remembered", n)
	}
}

// TestFailuresOfReplicas checks that a dead name is removed even though each replica counts failures at its own time.
func TestFailuresOfReplicas(t *testing.T) {
	r := newRig(t, "a.example.com.", 3)
	r.sees(0, "a.example.com.", "192.0.2.1/5s")
	for i := range 60 {
		r.wait(time.Second)
		r.sees(i%3, "a.example.com.", "NXDOMAIN")
	}
	r.want("")
}
