package iterate_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

func TestAsk(t *testing.T) {
	tests := []struct {
		do, q string
		want  iterate.Class
	}{
		{"", "www.example.test. A", iterate.Answer},
		{"", "nope.example.test. A", iterate.NXDomain},
		{"fault refused", "www.example.test. A", iterate.LameRefused},
		{"fault truncate", "www.example.test. A", iterate.Truncated},
		{"fault timeout", "www.example.test. A", iterate.Timeout},
	}
	for _, tt := range tests {
		t.Run(tt.do+" "+tt.q, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := internet(map[string]string{"192.0.2.21": "latency 20ms\n" + tt.do})
				began := time.Now()
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				e := iterate.Ask(ctx, net, began, iterate.Query{Zone: dnsname.MustParse("example.test."), Question: question(tt.q),
					Server: resolve.Server{Addr: netip.MustParseAddrPort("192.0.2.21:53")}})
				if e.Class != tt.want || e.At != time.Second || e.RTT < 20*time.Millisecond || e.Try != 1 {
					t.Errorf("%+v, want %s", e, tt.want)
				}
				if n := len(net.History()); n != 1 {
					t.Errorf("%d queries", n)
				}
			})
		})
	}
}

func TestAskFlags(t *testing.T) {
	s := &spy{Exchanger: internet(nil)}
	ask := func(q iterate.Query) *dns.Msg {
		q.Server, q.Question = resolve.Server{Addr: netip.MustParseAddrPort("192.0.2.21:53")}, question("id.server. TXT")
		iterate.Ask(t.Context(), s, time.Now(), q)
		return s.seen[len(s.seen)-1]
	}
	if m := ask(iterate.Query{RD: true, CD: true, Chaos: true, NoDNSSEC: true}); !m.RecursionDesired ||
		!m.CheckingDisabled ||
		m.Question[0].Qclass != dns.ClassCHAOS || m.IsEdns0() == nil || m.IsEdns0().Do() {
		t.Errorf("sent %v", m)
	}
	if m := ask(iterate.Query{NoEDNS: true}); m.IsEdns0() != nil || m.RecursionDesired {
		t.Errorf("sent %v", m)
	}
}

// TestFew limits the root servers and the address family.
func TestFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := internet(map[string]string{"192.0.2.11": "ns1.example.test. 60 AAAA 2001:db8::1",
			"192.0.2.12": "ns1.example.test. 60 AAAA 2001:db8::1"})
		trace := walk(t, net, "www.example.test. A", iterate.Options{RootAddrs: 1, Family: iterate.IPv4Only})
		for _, e := range trace.Exchanges {
			if e.Server == netip.MustParseAddr("192.0.2.2") || e.Server.Is6() {
				t.Errorf("asked %v", e.Server)
			}
		}
		if h := trace.Zone(dnsname.MustParse("example.test.")).Hosts[0]; len(h.Glue) != 2 || trace.Result != iterate.Answer {
			t.Errorf("result %s, glue %v", trace.Result, h.Glue)
		}
	})
}
