package dnsserver

import (
	"testing"

	"github.com/miekg/dns"
)

var allocQueries = []struct {
	name  string
	query *dns.Msg
}{
	{"exact", question("www.example.org.", dns.TypeA)},
	{"cname", question("alias.example.org.", dns.TypeA)},
	{"wildcard", question("a.wild.example.org.", dns.TypeA)},
	{"nodata", question("www.example.org.", dns.TypeMX)},
	{"nxdomain", question("x.example.org.", dns.TypeA)},
	{"referral", question("a.sub.example.org.", dns.TypeA)},
	{"refused", question("example.net.", dns.TypeA)},
	{"truncated", question("big.example.org.", dns.TypeA)},
	{"edns", withOPT(question("www.example.org.", dns.TypeA), 1232)},
	{"cookie", withOPT(question("www.example.org.", dns.TypeA), 1232,
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})},
	{"chaos", class(question("version.bind.", dns.TypeTXT), dns.ClassCHAOS)},
}

// TestNoAllocs checks that answering a query does not allocate.
func TestNoAllocs(t *testing.T) {
	h := newHandler(t, Config{Version: "1"})
	out := make([]byte, h.settings.udpSize)
	for _, tt := range allocQueries {
		in := packed(t, tt.query)
		n := testing.AllocsPerRun(200, func() {
			h.start()
			h.answer(in, out, stranger)
			h.done(1)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want none", tt.name, n)
		}
	}
}

// forwardQueries are answered from the cache of the forwarder, or without it.
var forwardQueries = []struct {
	name  string
	query *dns.Msg
}{
	{"ours", desired("www.example.org.", dns.TypeA)},
	{"cached", desired("www.example.net.", dns.TypeA)},
	{"cached edns", withOPT(desired("www.example.net.", dns.TypeA), 1232)},
	{"cached nxdomain", desired("x.example.net.", dns.TypeA)},
	{"cached below a delegation", desired("a.sub.example.org.", dns.TypeA)},
	{"cached chain", desired("out.example.org.", dns.TypeMX)},
	{"truncated chain", desired("big.away.example.org.", dns.TypeA)},
	{"refused", question("www.example.net.", dns.TypeA)},
}

// TestNoAllocsForwarding checks that a cached answer of the forwarder does not allocate.
func TestNoAllocsForwarding(t *testing.T) {
	h := newHandler(t, Config{Forward: &fake{knows: upstream, cached: true}})
	out := make([]byte, h.settings.udpSize)
	for _, tt := range forwardQueries {
		in := packed(t, tt.query)
		n := testing.AllocsPerRun(200, func() {
			h.start()
			if h.answer(in, out, stranger) == replyLater {
				t.Fatalf("%s: no answer at once", tt.name)
			}
			h.done(1)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want none", tt.name, n)
		}
	}
}

func BenchmarkForward(b *testing.B) {
	h := newHandler(b, Config{RRL: RRLConfig{Off: true}, Forward: &fake{knows: upstream, cached: true}})
	out := make([]byte, h.settings.udpSize)
	for _, tt := range forwardQueries {
		in := packed(b, tt.query)
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.answer(in, out, stranger)
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	h := newHandler(b, Config{Version: "1", RRL: RRLConfig{Off: true}})
	out := make([]byte, h.settings.udpSize)
	for _, tt := range allocQueries {
		in := packed(b, tt.query)
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.answer(in, out, stranger)
			}
		})
	}
}
