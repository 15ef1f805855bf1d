package dnsserver

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

// TestForwardLocalTail checks that our zones answer for our names, also when an external CNAME leads to them.
func TestForwardLocalTail(t *testing.T) {
	const (
		bad  = "203.0.113.66"
		cut  = "authority: example.org. 300 SOA ns1.example.org. hostmaster.example.org. 1 3600 600 86400 300"
		sig  = "in.example.net. 60 RRSIG CNAME 8 3 60 20300101000000 20200101000000 1 example.net. AAAA"
		into = "in.example.net. 60 CNAME "
	)
	tests := []struct {
		name  string
		query *dns.Msg
		says  []string
		want  answered
	}{
		{"to an address", withAD(desired("in.example.net.", dns.TypeA)),
			[]string{into + "WWW.example.org.", "WWW.example.org. 60 A " + bad},
			answered{summary{"NOERROR", "rd ra ", "in.example.net.", 0, false, -1},
				[]string{into + "WWW.example.org.", "WWW.example.org. 300 A 192.0.2.1"}}},
		{"to another step", desired("in.example.net.", dns.TypeA),
			[]string{into + "x.example.net.", "x.example.net. 60 CNAME alias.example.org.", "alias.example.org. 60 A " + bad},
			answered{summary{"NOERROR", "rd ra ", "in.example.net.", 0, false, -1},
				[]string{into + "x.example.net.", "x.example.net. 60 CNAME alias.example.org.",
					"alias.example.org. 300 CNAME www.example.org.", "www.example.org. 300 A 192.0.2.1"}}},
		{"with signatures", withDO(desired("in.example.net.", dns.TypeA)),
			[]string{into + "www.example.org.", sig, "www.example.org. 60 A " + bad},
			answered{summary{"NOERROR", "rd ra ", "in.example.net.", 0, true, -1},
				[]string{into + "www.example.org.", sig, "www.example.org. 300 A 192.0.2.1"}}},
		{"to no such name", desired("in.example.net.", dns.TypeA),
			[]string{into + "no.example.org.", "no.example.org. 60 A " + bad},
			answered{summary{"NXDOMAIN", "rd ra ", "in.example.net.", 0, false, -1}, []string{into + "no.example.org.", cut}}},
		{"to no such type", desired("in.example.net.", dns.TypeTXT),
			[]string{into + "www.example.org.", `www.example.org. 60 TXT "bad"`},
			answered{summary{"NOERROR", "rd ra ", "in.example.net.", 0, false, -1}, []string{into + "www.example.org.", cut}}},
		{"into a delegation", desired("in.example.net.", dns.TypeA),
			[]string{into + "a.sub.example.org.", "a.sub.example.org. 60 A 198.51.100.4"},
			answered{summary{"NOERROR", "rd ra ", "in.example.net.", 0, false, -1},
				[]string{into + "a.sub.example.org.", "a.sub.example.org. 60 A 198.51.100.4"}}},
		{"and away again", desired("in.example.net.", dns.TypeA),
			[]string{into + "out.example.org.", "out.example.org. 60 CNAME www.example.net.",
				"www.example.net. 60 A 198.51.100.1"},
			answered{summary{"NOERROR", "rd ra ", "in.example.net.", 0, false, -1},
				[]string{into + "out.example.org.", "out.example.org. 60 CNAME www.example.net.",
					"www.example.net. 60 A 198.51.100.1"}}},
		{"the CNAME is asked for", desired("in.example.net.", dns.TypeCNAME), []string{into + "www.example.org."},
			answered{summary{"NOERROR", "rd ra ", "in.example.net.", 0, false, -1}, []string{into + "www.example.org."}}},
		{"from our zones", desired("in.away.example.org.", dns.TypeA),
			[]string{into + "www.example.org.", "www.example.org. 60 A " + bad},
			answered{summary{"NOERROR", "aa rd ra ", "in.away.example.org.", 0, false, -1},
				[]string{"away.example.org. 300 DNAME example.net.",
					"in.away.example.org. 300 CNAME in.example.net.", into + "www.example.org.", "www.example.org. 300 A 192.0.2.1"}}},
		{"a loop over both", desired("in.away.example.org.", dns.TypeA),
			[]string{into + "in.away.example.org.", "in.away.example.org. 60 CNAME in.example.net."},
			answered{summary{"NOERROR", "aa rd ra ", "in.away.example.org.", 0, false, -1},
				[]string{"away.example.org. 300 DNAME example.net.",
					"in.away.example.org. 300 CNAME in.example.net.", into + "in.away.example.org.",
					"in.away.example.org. 60 CNAME in.example.net."}}},
	}
	for _, tt := range tests {
		for _, cached := range []bool{true, false} {
			for _, tcp := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/cached=%v/tcp=%v", tt.name, cached, tcp), func(t *testing.T) {
					key := "in.example.net. " + dns.TypeToString[tt.query.Question[0].Qtype]
					f := &fake{cached: cached, knows: map[string]found{key: {answers: tt.says, ad: true}}}
					h := newHandler(t, Config{Forward: f})
					from := stranger
					from.tcp = tcp
					m := unpacked(t, settle(h, packed(t, tt.query), from))
					if diff := cmp.Diff(tt.want, answeredBy(m)); diff != "" {
						t.Errorf("reply (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// TestForwardLocalTailLarge checks that the part from our zones is truncated to the space left.
func TestForwardLocalTailLarge(t *testing.T) {
	f := &fake{cached: true,
		knows: map[string]found{"in.example.net. A": {answers: []string{"in.example.net. 60 CNAME big.example.org."}},
			"in.example.net. TXT": {answers: []string{"in.example.net. 60 CNAME huge.example.org."}}}}
	h := newHandler(t, Config{Forward: f})
	for _, tt := range []struct {
		qtype uint16
		tcp   bool
		want  int
	}{{dns.TypeA, false, 0}, {dns.TypeA, true, 61}, {dns.TypeTXT, false, 0}, {dns.TypeTXT, true, 41}} {
		from := stranger
		from.tcp = tt.tcp
		out := settle(h, packed(t, desired("in.example.net.", tt.qtype)), from)
		m := unpacked(t, out)
		if m.Truncated == tt.tcp || !tt.tcp && len(out) > 512 || tt.tcp && len(m.Answer) != tt.want {
			t.Errorf("%s, TCP %v: %d answers in %d bytes, truncated %v", dns.TypeToString[tt.qtype], tt.tcp, len(m.Answer),
				len(out), m.Truncated)
		}
	}
}
