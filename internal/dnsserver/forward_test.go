package dnsserver

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// upstream is the data of the external DNS in the tests.
var upstream = map[string]found{
	"www.example.net. A": {answers: []string{"www.example.net. 60 A 198.51.100.1",
		"www.example.net. 60 A 198.51.100.2"}, ad: true},
	"www.example.net. MX": {answers: []string{"www.example.net. 60 MX 10 mail.example.net.",
		"www.example.net. 60 MX 20 www.example.net."}},
	"www.example.net. TXT":  {answers: []string{`www.example.net. 60 TXT "text"`}, ede: wire.EDEStale, stale: true},
	"www.example.net. SRV":  {answers: []string{"www.example.net. 60 SRV 1 2 3 mail.example.net."}},
	"www.example.net. AAAA": {authorities: []string{"example.net. 60 SOA ns.example.net. host.example.net. 1 2 3 4 60"}},
	"cdn.example.net. A": {answers: []string{"cdn.example.net. 60 CNAME Edge.CDN.example.net.",
		"Edge.CDN.example.net. 60 A 198.51.100.3"}},
	"dead.example.net. A":  {rcode: wire.RcodeServFail, ede: wire.EDENoReachable},
	"a.sub.example.org. A": {answers: []string{"a.sub.example.org. 60 A 198.51.100.4"}},
	"big.example.net. A":   {answers: addresses("big.example.net.", 60)},
	"odd.example.net. A":   {rcode: 200},
}

func addresses(name string, n int) (records []string) {
	for i := range n {
		records = append(records, fmt.Sprintf("%s 60 A 198.51.%d.%d", name, 100+i/256, i%256))
	}
	return records
}

// answered is the part of a reply with records that the tests compare.
type answered struct {
	Summary summary
	Records []string
}

func answeredBy(m *dns.Msg) answered {
	a := answered{Summary: summarise(m)}
	a.Summary.Answers = 0
	for i, list := range [][]dns.RR{m.Answer, m.Ns} {
		for _, r := range list {
			s := strings.Join(strings.Fields(strings.Replace(r.String(), "\tIN\t", " ", 1)), " ")
			if i == 1 {
				s = "authority: " + s
			}
			a.Records = append(a.Records, s)
		}
	}
	return a
}

func withDO(m *dns.Msg) *dns.Msg { return m.SetEdns0(1232, true) }

func withAD(m *dns.Msg) *dns.Msg {
	m.AuthenticatedData = true
	return m
}

var denied = client{addr: netip.MustParseAddr("192.0.2.66")}

// forwardCases are questions that our zones do not answer, answer in part, or answer completely.
var forwardCases = []struct {
	name  string
	query *dns.Msg
	from  client
	want  answered
	asked string // the name that the forwarder is asked for; empty for none
}{
	{"a name of others, in the client's case", desired("wWw.exAmple.net.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "rd ra ", "wWw.exAmple.net.", 0, false, -1},
			[]string{"wWw.exAmple.net. 60 A 198.51.100.1", "wWw.exAmple.net. 60 A 198.51.100.2"}}, "www.example.net."},
	{"its records point to each other", desired("cdn.example.net.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "rd ra ", "cdn.example.net.", 0, false, -1},
			[]string{"cdn.example.net. 60 CNAME Edge.CDN.example.net.", "Edge.CDN.example.net. 60 A 198.51.100.3"}},
		"cdn.example.net."},
	{"no such name", desired("x.example.net.", dns.TypeA), stranger,
		answered{summary{"NXDOMAIN", "rd ra ", "x.example.net.", 0, false, -1},
			[]string{"authority: net. 60 SOA a.net. h.net. 1 2 3 4 60"}}, "x.example.net."},
	{"no such type", desired("www.example.net.", dns.TypeAAAA), stranger,
		answered{summary{"NOERROR", "rd ra ", "www.example.net.", 0, false, -1},
			[]string{"authority: example.net. 60 SOA ns.example.net. host.example.net. 1 2 3 4 60"}}, "www.example.net."},
	{"dead upstreams", withOPT(desired("dead.example.net.", dns.TypeA), 1232), stranger,
		answered{summary{"SERVFAIL", "rd ra ", "dead.example.net.", 0, true, wire.EDENoReachable}, nil}, "dead.example.net."},
	{"a code that no reply can have", desired("odd.example.net.", dns.TypeA), stranger,
		answered{summary{"SERVFAIL", "rd ra ", "odd.example.net.", 0, false, -1}, nil}, "odd.example.net."},
	{"a stale answer", withOPT(desired("www.example.net.", dns.TypeTXT), 1232), stranger,
		answered{summary{"NOERROR", "rd ra ", "www.example.net.", 0, true, wire.EDEStale},
			[]string{`www.example.net. 60 TXT "text"`}}, "www.example.net."},
	{"validated, and DO asks for it", withDO(desired("www.example.net.", dns.TypeA)), stranger,
		answered{summary{"NOERROR", "rd ra ad ", "www.example.net.", 0, true, -1},
			[]string{"www.example.net. 60 A 198.51.100.1", "www.example.net. 60 A 198.51.100.2"}}, "www.example.net."},
	{"validated, and AD asks for it", withAD(desired("www.example.net.", dns.TypeA)), stranger,
		answered{summary{"NOERROR", "rd ra ad ", "www.example.net.", 0, false, -1},
			[]string{"www.example.net. 60 A 198.51.100.1", "www.example.net. 60 A 198.51.100.2"}}, "www.example.net."},
	{"AD of what is not validated", withAD(desired("www.example.net.", dns.TypeSRV)), stranger,
		answered{summary{"NOERROR", "rd ra ", "www.example.net.", 0, false, -1},
			[]string{"www.example.net. 60 SRV 1 2 3 mail.example.net."}}, "www.example.net."},
	{"below a delegation of ours", desired("a.sub.example.org.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "rd ra ", "a.sub.example.org.", 0, false, -1},
			[]string{"a.sub.example.org. 60 A 198.51.100.4"}}, "a.sub.example.org."},

	{"ours", desired("www.example.org.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "www.example.org.", 0, false, -1},
			[]string{"www.example.org. 300 A 192.0.2.1"}}, ""},
	{"ours, without such a type", desired("www.example.org.", dns.TypeTXT), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "www.example.org.", 0, false, -1},
			[]string{"authority: example.org. 300 SOA ns1.example.org. hostmaster.example.org. 1 3600 600 86400 300"}}, ""},
	{"recursion not desired", withOPT(question("www.example.net.", dns.TypeA), 1232), stranger,
		answered{summary{"REFUSED", "ra ", "www.example.net.", 0, true, wire.EDENotAuthoritative}, nil}, ""},
	{"client not allowed", withOPT(desired("www.example.net.", dns.TypeA), 1232), denied,
		answered{summary{"REFUSED", "rd ", "www.example.net.", 0, true, wire.EDENotAuthoritative}, nil}, ""},
	{"client not allowed, and ours", desired("www.example.org.", dns.TypeA), denied,
		answered{summary{"NOERROR", "aa rd ", "www.example.org.", 0, false, -1},
			[]string{"www.example.org. 300 A 192.0.2.1"}}, ""},
	{"class ANY", class(desired("www.example.net.", dns.TypeA), dns.ClassANY), stranger,
		answered{summary{"REFUSED", "rd ra ", "www.example.net.", 0, false, -1}, nil}, ""},
	{"class HS", class(desired("www.example.net.", dns.TypeA), dns.ClassHESIOD), stranger,
		answered{summary{"REFUSED", "rd ra ", "www.example.net.", 0, false, -1}, nil}, ""},
	{"type 0", desired("www.example.net.", 0), stranger,
		answered{summary{"REFUSED", "rd ra ", "www.example.net.", 0, false, -1}, nil}, ""},
	{"a transfer", desired("example.net.", dns.TypeAXFR), stranger,
		answered{summary{"REFUSED", "rd ra ", "example.net.", 0, false, -1}, nil}, ""},

	{"a chain that leaves", withDO(withAD(desired("OUT.example.org.", dns.TypeA))), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "OUT.example.org.", 0, true, -1},
			[]string{"OUT.example.org. 300 CNAME www.example.net.", "www.example.net. 60 A 198.51.100.1",
				"www.example.net. 60 A 198.51.100.2"}}, "www.example.net."},
	{"two steps before it leaves", desired("outer.example.org.", dns.TypeMX), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "outer.example.org.", 0, false, -1},
			[]string{"outer.example.org. 300 CNAME out.example.org.", "out.example.org. 300 CNAME www.example.net.",
				"www.example.net. 60 MX 10 mail.example.net.", "www.example.net. 60 MX 20 www.example.net."}}, "www.example.net."},
	{"to a type with a name in it that is not compressed", desired("out.example.org.", dns.TypeSRV), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "out.example.org.", 0, false, -1},
			[]string{"out.example.org. 300 CNAME www.example.net.", "www.example.net. 60 SRV 1 2 3 mail.example.net."}},
		"www.example.net."},
	{"to no such type", desired("out.example.org.", dns.TypeAAAA), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "out.example.org.", 0, false, -1},
			[]string{"out.example.org. 300 CNAME www.example.net.",
				"authority: example.net. 60 SOA ns.example.net. host.example.net. 1 2 3 4 60"}}, "www.example.net."},
	{"through a DNAME to no such name", desired("x.away.example.org.", dns.TypeA), stranger,
		answered{summary{"NXDOMAIN", "aa rd ra ", "x.away.example.org.", 0, false, -1},
			[]string{"away.example.org. 300 DNAME example.net.", "x.away.example.org. 300 CNAME x.example.net.",
				"authority: net. 60 SOA a.net. h.net. 1 2 3 4 60"}}, "x.example.net."},
	{"through a DNAME to another chain", desired("cdn.away.example.org.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "cdn.away.example.org.", 0, false, -1},
			[]string{"away.example.org. 300 DNAME example.net.", "cdn.away.example.org. 300 CNAME cdn.example.net.",
				"cdn.example.net. 60 CNAME Edge.CDN.example.net.", "Edge.CDN.example.net. 60 A 198.51.100.3"}}, "cdn.example.net."},
	{"to dead upstreams", withOPT(desired("dead.away.example.org.", dns.TypeA), 1232), stranger,
		answered{summary{"SERVFAIL", "rd ra ", "dead.away.example.org.", 0, true, wire.EDENoReachable}, nil},
		"dead.example.net."},
	{"into a delegation of ours", desired("tosub.example.org.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "tosub.example.org.", 0, false, -1},
			[]string{"tosub.example.org. 300 CNAME a.sub.example.org.", "a.sub.example.org. 60 A 198.51.100.4"}},
		"a.sub.example.org."},
	{"that leaves, for who does not desire recursion", question("out.example.org.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "aa ra ", "out.example.org.", 0, false, -1},
			[]string{"out.example.org. 300 CNAME www.example.net."}}, ""},
	{"that leaves, for who is not allowed", desired("out.example.org.", dns.TypeA), denied,
		answered{summary{"NOERROR", "aa rd ", "out.example.org.", 0, false, -1},
			[]string{"out.example.org. 300 CNAME www.example.net."}}, ""},
	{"whose first step is asked for", desired("out.example.org.", dns.TypeCNAME), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "out.example.org.", 0, false, -1},
			[]string{"out.example.org. 300 CNAME www.example.net."}}, ""},
	{"that is a loop", desired("loop.example.org.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "loop.example.org.", 0, false, -1},
			[]string{"loop.example.org. 300 CNAME pool.example.org.", "pool.example.org. 300 CNAME loop.example.org."}}, ""},
	{"within our zones", desired("alias.example.org.", dns.TypeA), stranger,
		answered{summary{"NOERROR", "aa rd ra ", "alias.example.org.", 0, false, -1},
			[]string{"alias.example.org. 300 CNAME www.example.org.", "www.example.org. 300 A 192.0.2.1"}}, ""},
}

// TestForward checks that the answer is the same from the cache as after a wait.
func TestForward(t *testing.T) {
	for _, tt := range forwardCases {
		for _, cached := range []bool{true, false} {
			for _, tcp := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/cached=%v/tcp=%v", tt.name, cached, tcp), func(t *testing.T) {
					f := &fake{knows: upstream, cached: cached, denies: netip.MustParsePrefix("192.0.2.0/24")}
					h := newHandler(t, Config{Forward: f})
					from := tt.from
					from.tcp = tcp
					m := unpacked(t, settle(h, packed(t, tt.query), from))
					if diff := cmp.Diff(tt.want, answeredBy(m)); diff != "" {
						t.Errorf("reply (-want +got):\n%s", diff)
					}
					asked := ""
					for _, q := range f.asked {
						asked += nameOf(q.Name)
					}
					if want := tt.asked; !cached && asked != want || cached && asked != "" {
						t.Errorf("the forwarder was asked for %q, want %q", asked, want)
					}
				})
			}
		}
	}
}

// TestForwardPassesBits checks that the client's DO and CD bits reach the forwarder.
func TestForwardPassesBits(t *testing.T) {
	for _, tt := range []struct{ do, cd bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		for _, name := range []string{"www.example.net.", "out.example.org."} {
			f := &fake{knows: upstream}
			q := desired(name, dns.TypeA)
			q.CheckingDisabled = tt.cd
			q.SetEdns0(1232, tt.do)
			m := unpacked(t, settle(newHandler(t, Config{Forward: f}), packed(t, q), stranger))
			if f.exchanges() != 1 || f.asked[0].DO != tt.do || f.asked[0].CD != tt.cd || f.asked[0].Type != rr.TypeA {
				t.Errorf("%s with DO %v, CD %v: the forwarder was asked %+v", name, tt.do, tt.cd, f.asked)
			}
			if m.CheckingDisabled != tt.cd || m.IsEdns0().Do() != tt.do {
				t.Errorf("%s with DO %v, CD %v got %v", name, tt.do, tt.cd, m)
			}
		}
	}
}

// TestForwardTruncates checks that answers that do not fit have TC, and are complete over TCP.
func TestForwardTruncates(t *testing.T) {
	big := map[string]found{
		"www.example.net. A":  {answers: addresses("www.example.net.", 200)},
		"www.example.net. MX": {answers: addresses("www.example.net.", 400)}, // more than initialReplySize
	}
	for _, cached := range []bool{true, false} {
		h := newHandler(t, Config{Forward: &fake{knows: big, cached: cached}})
		for _, name := range []string{"www.example.net.", "out.example.org."} {
			for _, tt := range []struct {
				qtype uint16
				size  uint16
				limit int
			}{{dns.TypeA, 0, 512}, {dns.TypeA, 1232, 1232}, {dns.TypeMX, 4096, 1232}} {
				q := desired(name, tt.qtype)
				if tt.size > 0 {
					withOPT(q, tt.size, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})
				}
				out := settle(h, packed(t, q), stranger)
				if m := unpacked(t, out); !m.Truncated || len(out) > tt.limit {
					t.Errorf("%s %s in %d bytes, cached %v: %d bytes, truncated %v", name, dns.TypeToString[tt.qtype], tt.limit,
						cached, len(out), m.Truncated)
				}
				over := stranger
				over.tcp = true
				m := unpacked(t, settle(h, packed(t, q), over))
				if want := len(big["www.example.net. "+dns.TypeToString[tt.qtype]].answers); m.Truncated || len(m.Answer) < want {
					t.Errorf("%s %s over TCP, cached %v: %d answers of %d, truncated %v", name, dns.TypeToString[tt.qtype], cached,
						len(m.Answer), want, m.Truncated)
				}
			}
		}
	}
}

// TestForwardPointsBack checks that the forwarded part of a chain is compressed like a direct answer.
func TestForwardPointsBack(t *testing.T) {
	f := &fake{knows: map[string]found{"www.example.net. A": {answers: addresses("www.example.net.", 25)}}, cached: true}
	h := newHandler(t, Config{Forward: f})
	out := settle(h, packed(t, desired("out.example.org.", dns.TypeA)), stranger)
	if m := unpacked(t, out); m.Truncated || len(m.Answer) != 26 {
		t.Errorf("25 addresses at the end of a chain: %d records in %d bytes, truncated %v", len(m.Answer), len(out),
			m.Truncated)
	}
}

// TestForwardLongChain checks that a chain whose first step does not fit is not followed. The ID of the query has the
// value of a record type.
func TestForwardLongChain(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 57)+".", 4)
	b := testZones(t).Zone([]byte(origin.Wire())).Edit()
	d, err := rr.ParseDataIn(rr.TypeCNAME, long+"example.net.", origin)
	if err != nil {
		t.Fatal(err)
	}
	b.Put(rr.NewSet(dnsname.MustParse(long+"example.org."), rr.TypeCNAME, 300, d))
	zones := zone.NewSnapshot(b.Done())
	f := &fake{}
	h := newHandler(t, Config{Snapshot: func() *zone.Snapshot { return zones }, Forward: f})
	q := desired(long+"example.org.", dns.TypeA)
	q.Id = dns.TypeCNAME
	if m := unpacked(t, settle(h, packed(t, q), stranger)); !m.Truncated || len(m.Answer) != 0 || f.exchanges() != 0 {
		t.Errorf("reply is %v; the forwarder was asked %d times", m, f.exchanges())
	}
	over := stranger
	over.tcp = true
	if m := unpacked(t, settle(h, packed(t, q), over)); m.Truncated || len(m.Answer) != 1 ||
		m.Rcode != dns.RcodeNameError {
		t.Errorf("reply over TCP is %v", m)
	}
}

// TestForwardBesideOverlay checks that an overlay owns all types of the names that it has, and no other names.
func TestForwardBesideOverlay(t *testing.T) {
	l := zone.NewLoader(uuid.New(), dnsname.Root)
	l.Overlay()
	var data []string
	for _, ip := range []string{"192.0.2.10", "192.0.2.11", "192.0.2.12"} {
		d, err := rr.ParseDataIn(rr.TypeA, ip, dnsname.Root)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, d)
	}
	if err := l.Add(rr.NewSet(dnsname.MustParse("www.example.net."), rr.TypeA, 30, data...)); err != nil {
		t.Fatal(err)
	}
	zones := testZones(t).With([]*zone.Nodes{l.Done()}, nil)
	f := &fake{knows: upstream}
	h := newHandler(t, Config{Snapshot: func() *zone.Snapshot { return zones }, Forward: f})
	ask := func(name string, qtype uint16) *dns.Msg {
		return unpacked(t, settle(h, packed(t, desired(name, qtype)), stranger))
	}
	first := map[string]bool{}
	for range 3 {
		m := ask("www.example.net.", dns.TypeA)
		if len(m.Answer) != 3 || !m.Authoritative {
			t.Fatalf("a name of the overlay got %v", m)
		}
		first[m.Answer[0].(*dns.A).A.String()] = true
	}
	if len(first) != 3 {
		t.Errorf("three answers began with %v, want each address once", first)
	}
	if m := ask("www.example.net.", dns.TypeMX); m.Rcode != 0 || len(m.Answer) != 0 || len(m.Ns) != 1 || !m.Authoritative {
		t.Errorf("a type that the overlay does not have got %v, want NODATA", m)
	}
	if m := ask("out.example.org.", dns.TypeA); len(m.Answer) != 4 {
		t.Errorf("a chain into the overlay got %v", m)
	}
	if f.exchanges() != 0 {
		t.Errorf("the forwarder was asked %v", f.asked)
	}
	if m := ask("cdn.example.net.", dns.TypeA); len(m.Answer) != 2 || m.Authoritative || f.exchanges() != 1 {
		t.Errorf("a name beside the overlay got %v", m)
	}
}

// TestForwardZonesChange checks that a chain that changed during the wait does not get an answer for its old target.
func TestForwardZonesChange(t *testing.T) {
	f := &fake{knows: upstream, hold: make(chan struct{}), begun: make(chan string, 1)}
	zones := testZones(t)
	h := newHandler(t, Config{Snapshot: func() *zone.Snapshot { return zones }, Forward: f})
	reply := make(chan []byte)
	in := packed(t, withOPT(desired("x.away.example.org.", dns.TypeA), 1232))
	go func() { reply <- settle(h, in, stranger) }()
	f.began(t, 1)
	b := zones.Zone([]byte(origin.Wire())).Edit()
	d, err := rr.ParseDataIn(rr.TypeDNAME, "example.com.", origin)
	if err != nil {
		t.Fatal(err)
	}
	b.Put(rr.NewSet(dnsname.MustParse("away.example.org."), rr.TypeDNAME, 300, d))
	zones = zone.NewSnapshot(b.Done())
	close(f.hold)
	want := summary{"SERVFAIL", "rd ra ", "x.away.example.org.", 0, true, wire.EDENetworkError}
	if diff := cmp.Diff(want, summarise(unpacked(t, <-reply))); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}
