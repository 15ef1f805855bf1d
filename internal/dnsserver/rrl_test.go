package dnsserver

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// limitCase is a stream of answers to a limiter.
type limitCase struct {
	addr func(i int) string
	name func(i int) string
	kind lookup.Kind
	wild bool
	ours bool
}

func same(s string) func(int) string { return func(int) string { return s } }

// sent runs n answers within one instant through a limiter and returns how many passed.
func (c limitCase) sent(l *limiter, n int) int {
	z := zone.NewNodes(uuid.Nil, origin)
	sent := 0
	for i := range n {
		r := &lookup.Reply{Kind: c.kind, Synthesized: c.wild}
		if c.ours {
			r.Zone = z
		}
		name := []byte(dnsname.MustParse(c.name(i)).Wire())
		if l.check(int64(time.Hour), netip.MustParseAddr(c.addr(i)), name, r) == limitSend {
			sent++
		}
	}
	return sent
}

func TestLimiter(t *testing.T) {
	const one = "203.0.113.7"
	cfg := RRLConfig{Responses: 100, Exempt: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}
	anyName := func(i int) string { return fmt.Sprintf("n%d.example.org.", i) }
	tests := []struct {
		name string
		limitCase
		want int // of 1000
	}{
		{"one name", limitCase{same(one), same("www.example.org."), lookup.Positive, false, true}, 100},
		{"a network is one client", limitCase{func(i int) string { return fmt.Sprintf("203.0.113.%d", i%256) },
			same("www.example.org."), lookup.Positive, false, true}, 100},
		{"an IPv6 /56 is one client", limitCase{func(i int) string { return fmt.Sprintf("2001:db8:0:%x::%x", i%256, i) },
			same("www.example.org."), lookup.Positive, false, true}, 100},
		{"made-up names", limitCase{same(one), anyName, lookup.NXDomain, false, true}, 50},
		{"made-up names under a wildcard", limitCase{same(one), anyName, lookup.Positive, true, true}, 50},
		{"made-up names under a delegation", limitCase{same(one), anyName, lookup.Referral, false, true}, 50},
		{"names of others", limitCase{same(one), anyName, lookup.Refused, false, false}, 20},
		{"loopback", limitCase{same("127.0.0.1"), same("www.example.org."), lookup.Positive, false, true}, 1000},
		{"an exempt network", limitCase{same("198.51.100.9"), same("www.example.org."), lookup.Positive, false, true}, 1000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.sent(newLimiter(cfg, 1), 1000); got != tt.want {
				t.Errorf("%d of 1000 answers were sent, want %d", got, tt.want)
			}
		})
	}
}

// TestLimiterNames checks that existing names do not share a limit. Two of them may share a bucket in one row, not in
// both.
func TestLimiterNames(t *testing.T) {
	l := newLimiter(RRLConfig{Responses: 1}, 1)
	names := func(i int) string { return fmt.Sprintf("n%d.example.org.", i) }
	if got := (limitCase{same("203.0.113.7"), names, lookup.Positive, false, true}).sent(l, 500); got < 495 {
		t.Errorf("%d of 500 answers for different names were sent", got)
	}
}

// TestLimiterHolds checks that no flood of other names makes the limiter forget one that is over its limit.
func TestLimiterHolds(t *testing.T) {
	l := newLimiter(RRLConfig{Responses: 10}, 1)
	victim := limitCase{same("203.0.113.7"), same("www.example.org."), lookup.Positive, false, true}
	victim.sent(l, 100)
	flood := limitCase{
		func(i int) string { return fmt.Sprintf("203.%d.%d.1", i/250%250, i%250) },
		func(i int) string { return fmt.Sprintf("n%d.example.org.", i) }, lookup.Positive, false, true,
	}
	flood.sent(l, 50_000)
	if got := victim.sent(l, 100); got != 0 {
		t.Errorf("%d answers were sent after the flood, want none", got)
	}
}

func TestLimiterRefills(t *testing.T) {
	l := newLimiter(RRLConfig{Responses: 10}, 1)
	cost := int64(100 * time.Millisecond)
	now := int64(time.Hour)
	for i := range 10 {
		if !l.take(now, 42, cost) {
			t.Fatalf("answer %d was limited", i)
		}
	}
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {99 * time.Millisecond, false}, {101 * time.Millisecond, true}, {101 * time.Millisecond, false},
		{201 * time.Millisecond, true}} {
		if got := l.take(now+int64(step.after), 42, cost); got != step.want {
			t.Errorf("after %v: %v, want %v", step.after, got, step.want)
		}
	}
}

// TestLimiterShare checks that sockets of one address share its rate, and that each can still send something.
func TestLimiterShare(t *testing.T) {
	c := limitCase{same("203.0.113.7"), same("www.example.org."), lookup.Positive, false, true}
	for _, tt := range []struct{ sockets, want int }{{1, 8}, {4, 2}, {100, 1}} {
		if got := c.sent(newLimiter(RRLConfig{Responses: 8}, tt.sockets), 50); got != tt.want {
			t.Errorf("one of %d sockets sent %d, want %d", tt.sockets, got, tt.want)
		}
	}
}

// TestSlip checks that every second limited answer is sent empty with TC.
func TestSlip(t *testing.T) {
	h := newHandler(t, Config{RRL: RRLConfig{Responses: 10}})
	in := packed(t, withOPT(question("www.example.org.", dns.TypeA), 1232))
	whole, slipped := 0, 0
	for range 110 {
		out := ask(h, in)
		if len(out) == 0 {
			continue
		}
		m := unpacked(t, out)
		switch {
		case m.Truncated && len(m.Answer) == 0 && m.IsEdns0() != nil && len(m.Question) == 1:
			slipped++
		case len(m.Answer) == 1:
			whole++
		default:
			t.Fatalf("reply is neither whole nor empty with TC: %v", m)
		}
	}
	if whole != 10 || slipped != 50 {
		t.Errorf("%d whole and %d slipped, want 10 and 50", whole, slipped)
	}
	if drop, slip := h.count.limited[limitDrop].Load(), h.count.limited[limitSlip].Load(); drop != 50 || slip != 50 {
		t.Errorf("counted %d dropped and %d slipped", drop, slip)
	}
}

func TestCookieExemptsFromLimit(t *testing.T) {
	h := newHandler(t, Config{RRL: RRLConfig{Responses: 1}})
	in := withOPT(question("www.example.org.", dns.TypeA), 1232,
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})
	given := unpacked(t, ask(h, packed(t, in))).IsEdns0().Option[0].(*dns.EDNS0_COOKIE)
	if out := ask(h, packed(t, in)); len(out) != 0 {
		t.Fatal("the limit does not hold for a client cookie alone")
	}
	in.IsEdns0().Option[0] = given
	for range 10 {
		if out := ask(h, packed(t, in)); len(out) == 0 {
			t.Fatal("a client with a valid cookie was limited")
		}
	}
}

func TestLimitOff(t *testing.T) {
	h := newHandler(t, Config{RRL: RRLConfig{Off: true, Responses: 1}})
	in := packed(t, question("www.example.org.", dns.TypeA))
	for range 100 {
		if len(ask(h, in)) == 0 {
			t.Fatal("limited, though it is off")
		}
	}
}

// TestLimitMadeUpNames checks that all invented names below a DNAME, wildcard or delegation share one limit.
func TestLimitMadeUpNames(t *testing.T) {
	b := zone.NewNodes(uuid.Nil, origin).Edit()
	for _, s := range []struct {
		name string
		typ  rr.Type
		data string
	}{
		{"dname", rr.TypeDNAME, "example.net."},
		{"*.wild", rr.TypeA, "192.0.2.1"},
		{"*.alias", rr.TypeCNAME, "example.net."},
		{"sub", rr.TypeNS, "ns.example.net."},
	} {
		n, err := dnsname.ParseIn(s.name, origin)
		if err != nil {
			t.Fatal(err)
		}
		data, err := rr.ParseData(s.typ, s.data)
		if err != nil {
			t.Fatal(err)
		}
		b.Put(rr.NewSet(n, s.typ, 60, data))
	}
	zones := zone.NewSnapshot(b.Done())
	for _, under := range []string{"dname", "wild", "alias", "sub", "x.dname"} {
		h := newHandler(t, Config{Snapshot: func() *zone.Snapshot { return zones }, RRL: RRLConfig{Responses: 10}})
		sent := 0
		for i := range 100 {
			out := ask(h, packed(t, question(fmt.Sprintf("n%d.%s.example.org.", i, under), dns.TypeA)))
			if len(out) > 0 && !unpacked(t, out).Truncated {
				sent++
			}
		}
		if sent != 5 {
			t.Errorf("%d answers for made-up names under %s were sent, want 5", sent, under)
		}
	}
}
