package simnet_test

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

// tree returns a root, a top-level domain, a zone with a broken server, and a zone whose server has no glue.
func tree(resolverScript, more string) *simnet.Net {
	net := simnet.New(1)
	net.MustServer("192.0.2.10", `
		zone .
		test. 86400 NS ns.nic.test.
		ns.nic.test. 86400 A 192.0.2.11
	`)
	net.MustServer("192.0.2.11", `
		zone test.
		test. 60 NS ns.nic.test.
		ns.nic.test. 60 A 192.0.2.11
		a.test. 3600 NS ns1.a.test., ns2.a.test., ns3.a.test.
		ns1.a.test. 3600 A 192.0.2.21
		ns2.a.test. 3600 A 192.0.2.22
		ns3.a.test. 3600 A 192.0.2.23
		b.test. 3600 NS ns2.a.test.
		lost.test. 3600 NS ns.lost.test.
	`)
	zone := `
		zone a.test.
		a.test. 900 SOA ns1.a.test. host.a.test. 1 2 2 2 400
		ns1.a.test. 60 A 192.0.2.21
		ns2.a.test. 60 A 192.0.2.22
		www.a.test. 1000000 A 203.0.113.1
		alias.a.test. 300 CNAME www.b.test.
		sign a.test.
	`
	net.MustServer("192.0.2.21", zone+more)
	net.MustServer("192.0.2.22", zone+"zone b.test. 500\nwww.b.test. 50 A 203.0.113.2\n"+more)
	net.MustServer("192.0.2.23", "edns drop\n"+zone+more)
	net.MustServer(resolver, "resolve 192.0.2.10\n"+resolverScript)
	return net
}

func TestResolver(t *testing.T) {
	type step struct {
		wait      time.Duration
		ask       queryOptions
		name, typ string
		want      string
	}
	tests := []struct {
		name, resolver, authority string
		steps                     []step
	}{
		{"positive and negative", "", "", []step{
			{0, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 1000000 A 203.0.113.1"},
			{time.Second, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 999999 A 203.0.113.1"},
			{0, queryOptions{}, "no.a.test.", "A", "NXDOMAIN, / a.test. 400 SOA 1"},
			{10 * time.Second, queryOptions{}, "no.a.test.", "TXT", "NXDOMAIN, / a.test. 390 SOA 1"},
			{0, queryOptions{}, "www.a.test.", "TXT", "NOERROR, / a.test. 400 SOA 1"},
			{0, queryOptions{}, "alias.a.test.", "A",
				"NOERROR, alias.a.test. 300 CNAME www.b.test., www.b.test. 50 A 203.0.113.2"},
			{20 * time.Second, queryOptions{}, "alias.a.test.", "A",
				"NOERROR, alias.a.test. 280 CNAME www.b.test., www.b.test. 30 A 203.0.113.2"},
			{0, queryOptions{}, "www.lost.test.", "A", "SERVFAIL+ede22"},
		}},
		{"an SOA with a long TTL", "", "loose", []step{
			{0, queryOptions{}, "no.a.test.", "A", "NXDOMAIN, / a.test. 400 SOA 1"},
		}},
		{"clamps", "clamp 86400 100", "", []step{
			{0, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 86400 A 203.0.113.1"},
			{0, queryOptions{}, "no.a.test.", "A", "NXDOMAIN, / a.test. 100 SOA 1"},
		}},
		{"without SOA", "", "bare", []step{
			{0, queryOptions{}, "no.a.test.", "A", "NXDOMAIN"},
			{0, queryOptions{noRD: true}, "no.a.test.", "A",
				"NOERROR, / a.test. 3600 NS ns1.a.test., / a.test. 3600 NS ns2.a.test., / a.test. 3600 NS ns3.a.test."},
		}},
		{"without RD", "snoop cache", "", []step{
			{0, queryOptions{noRD: true}, "www.a.test.", "A", "NOERROR"},
			{0, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 1000000 A 203.0.113.1"},
			{0, queryOptions{noRD: true}, "www.a.test.", "A", "NOERROR, www.a.test. 1000000 A 203.0.113.1"},
		}},
		{"without RD, refused", "snoop refuse", "", []step{
			{0, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 1000000 A 203.0.113.1"},
			{0, queryOptions{noRD: true}, "www.a.test.", "A", "REFUSED"},
		}},
		{"stale", "clamp 60\nstale", "at 30s fault servfail\nat 10m heal", []step{
			{0, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 60 A 203.0.113.1"},
			{2 * time.Minute, queryOptions{}, "www.a.test.", "A", "NOERROR+ede3, www.a.test. 30 A 203.0.113.1"},
			{0, queryOptions{}, "other.a.test.", "A", "SERVFAIL+ede22"},
			{10 * time.Minute, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 60 A 203.0.113.1"},
		}},
		{"filters", "filter a.test. nxdomain 15\nfilter www.b.test. 0.0.0.0 0\nbogus c.test.", "", []step{
			{0, queryOptions{}, "www.a.test.", "A", "NXDOMAIN+ede15"},
			{0, queryOptions{}, "www.b.test.", "A", "NOERROR, www.b.test. 60 A 0.0.0.0"},
			{0, queryOptions{}, "www.c.test.", "A", "SERVFAIL+ede6"},
			{0, queryOptions{cd: true}, "www.c.test.", "A", "NXDOMAIN, / test. 60 SOA 1"},
		}},
		{"preset cache", "hold www.a.test. 200 A 203.0.113.9\ndeny new.a.test. 100 * a.test. 77\n" +
			"deny www.b.test. 50 A b.test.", "new.a.test. 60 A 203.0.113.3", []step{
			{0, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 200 A 203.0.113.9"},
			{0, queryOptions{}, "new.a.test.", "AAAA", "NXDOMAIN, / a.test. 100 SOA 77"},
			{0, queryOptions{}, "www.b.test.", "A", "NOERROR, / b.test. 50 SOA 1"},
			{0, queryOptions{}, "www.b.test.", "TXT", "NOERROR, / b.test. 500 SOA 1"},
			{201 * time.Second, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 1000000 A 203.0.113.1"},
			{0, queryOptions{}, "new.a.test.", "A", "NOERROR, new.a.test. 60 A 203.0.113.3"},
		}},
		{"ranges", "ranges", "at 1m new.a.test. 60 A 203.0.113.3", []step{
			{0, queryOptions{}, "never.a.test.", "A", "NXDOMAIN, / a.test. 400 SOA 1"},
			{2 * time.Minute, queryOptions{}, "new.a.test.", "A", "NXDOMAIN, / a.test. 280 SOA 1"},
			{5 * time.Minute, queryOptions{}, "new.a.test.", "A", "NOERROR, new.a.test. 60 A 203.0.113.3"},
		}},
		{"authority without EDNS", "", "edns formerr", []step{
			{0, queryOptions{do: true}, "www.a.test.", "A", "NOERROR, www.a.test. 1000000 A 203.0.113.1"},
		}},
		{"signatures", "", "", []step{
			{0, queryOptions{do: true}, "www.a.test.", "A",
				"NOERROR, www.a.test. 1000000 A 203.0.113.1, www.a.test. 1000000 RRSIG A 3"},
			{0, queryOptions{}, "www.a.test.", "A", "NOERROR, www.a.test. 1000000 A 203.0.113.1"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := tree(tt.resolver, tt.authority)
				for _, s := range tt.steps {
					time.Sleep(s.wait)
					if got := askWith(t, net, resolver, s.ask, s.name, s.typ); got != s.want {
						t.Errorf("at %v: %s %s = %s, want %s", net.Age(), s.name, s.typ, got, s.want)
					}
				}
			})
			net := tree(tt.resolver, tt.authority)
			at := serve(t, net).Addrs()[netip.MustParseAddrPort(resolver+":53")].String()
			client := &resolve.Client{AsIs: true}
			defer client.CloseIdle()
			for _, s := range tt.steps {
				if s.wait > 0 {
					return // the wait would take real time here
				}
				if got := askWith(t, client, at, s.ask, s.name, s.typ); withoutTTLs(got) != withoutTTLs(s.want) {
					t.Errorf("sockets: %s %s = %s, want %s", s.name, s.typ, got, s.want)
				}
			}
		})
	}
}

var ttl = regexp.MustCompile(` \d+ ([A-Z]+) `)

// withoutTTLs removes the TTLs of a reply, which depend on the load of the machine.
func withoutTTLs(reply string) string { return ttl.ReplaceAllString(reply, " $1 ") }

// TestCaches checks that several caches behind one address expire independently.
func TestCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := tree("caches 3\nnsid pop", "")
		seen, ids := map[string]bool{}, map[string]bool{}
		for range 30 {
			q := queryOptions{}.query("www.a.test.", "A")
			q.IsEdns0().Option = append(q.IsEdns0().Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
			m, err := net.Exchange(t.Context(), resolve.Server{Addr: netip.MustParseAddrPort(resolver + ":53")}, q)
			if err != nil {
				t.Fatal(err)
			}
			seen[strings.Fields(brief(m.Answer[0]))[1]] = true
			ids[m.IsEdns0().Option[0].(*dns.EDNS0_NSID).Nsid] = true
			time.Sleep(time.Second)
		}
		if len(ids) != 3 || len(seen) < 10 {
			t.Errorf("%d instances and %d different TTLs, want 3 and more than 10", len(ids), len(seen))
		}
	})
}

// TestResolverView checks that an authority sees the resolver as the client.
func TestResolverView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := tree("", "view "+resolver+"/32 www.a.test. 60 A 203.0.113.77")
		if got, want := askWith(t, net, resolver, queryOptions{}, "www.a.test.", "A"),
			"NOERROR, www.a.test. 60 A 203.0.113.77"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestResolverEnds checks that a resolver stops when its client gives up.
func TestResolverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := tree("", "fault timeout")
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		server := resolve.Server{Addr: netip.MustParseAddrPort(resolver + ":53")}
		if _, err := net.Exchange(ctx, server, queryOptions{}.query("www.a.test.", "A")); err == nil {
			t.Error("there was a reply")
		}
	})
}
