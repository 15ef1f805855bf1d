package gather_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/simnet"
)

// conduct returns the results of the probes of a server, as one line.
func conduct(s explain.Server) string {
	var out []string
	for _, p := range []struct {
		name string
		explain.Probe
	}{{"tcp", s.TCP}, {"edns", s.EDNS}, {"version", s.EDNSVersion}, {"option", s.EDNSOption}, {"flag", s.EDNSFlag},
		{"size", s.Truncation},
		{"case", s.Case}, {"source", s.Source}, {"types", s.Types}, {"recursion", s.Recursion}, {"transfer", s.Transfer},
		{"limits", s.Limits}, {"soa", s.NegativeSOA}} {
		if p.Fact != explain.Unasked {
			out = append(out, fmt.Sprintf("%s %s", p.name, p.Fact))
		}
		if p.Fact != explain.Unasked && len(p.Evidence) == 0 {
			out = append(out, "without evidence")
		}
	}
	return strings.Join(out, ", ")
}

const wellBehaved = "tcp yes, edns yes, version yes, option yes, flag yes, size yes, case yes, source yes, types " +
	"yes, recursion no, transfer no, soa yes"

func TestScanHealthy(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Registry = registrar{"example.test.": registry.Registered}
		g.Options.NAT64 = special.NAT64
		f, err := g.Scan(t.Context(), "https://example.test/")
		f = must(t, f, err)
		if got := len(net.History()); got != f.Queries || got > 150 || len(f.Unfinished) > 0 {
			t.Errorf("%d queries were sent, the facts say %d, unfinished is %v", got, f.Queries, f.Unfinished)
		}
		if f.Zone.String() != "example.test." || f.Domain.String() != "example.test." ||
			!slices.Equal(f.Trimmed, []string{"https://", "/"}) {
			t.Errorf("zone %s, domain %s, left out %q", f.Zone, f.Domain, f.Trimmed)
		}
		for _, at := range []string{"192.0.2.21", "192.0.2.22"} {
			s := server(t, f, "example.test.", at)
			if got := conduct(s); got != wellBehaved {
				t.Errorf("%s: %s, want %s", at, got, wellBehaved)
			}
			want := &explain.SOA{Owner: name("example.test."), TTL: 3600, MName: name("ns1.example.test."),
				RName:  name("hostmaster.example.test."),
				Serial: 2026010101, Refresh: 7200, Retry: 3600, Expire: 1209600, Minimum: 300}
			if diff := cmp.Diff(want, s.SOA, cmp.AllowUnexported(dnsname.Name{})); diff != "" {
				t.Errorf("%s has the SOA (-want +got):\n%s", at, diff)
			}
			if s.Class != iterate.Answer || s.Health != iterate.Up || !slices.Equal(s.Listed, []string{"parent", "child"}) {
				t.Errorf("%s is %s, %s, listed by %v", at, s.Class, s.Health, s.Listed)
			}
		}
		if d := f.Denials[0]; d.Zone != f.Zone || d.Class != iterate.NXDomain || min(d.TTL, d.Minimum) != 300 ||
			d.Ranges != safeat.RangesNone {
			t.Errorf("names are denied with %+v", d)
		}
		if len(f.Registrations) != 1 || f.Registrations[0].State != registry.Registered {
			t.Errorf("registrations are %+v", f.Registrations)
		}
		if f.Vantage.IPv4 != explain.Yes || f.Vantage.IPv6 != explain.Unasked ||
			!slices.Equal(f.Vantage.NAT64, special.NAT64) {
			t.Errorf("vantage is %+v", f.Vantage)
		}
	})
}

func name(s string) dnsname.Name { return dnsname.MustParse(s) }

func TestConduct(t *testing.T) {
	tests := []struct{ script, want string }{
		{"only udp", "tcp no"}, {"edns formerr", "edns no"}, {"edns ignore", "edns no"},
		{"edns brittle", "version no, option no, flag no"},
		{"folds", "case no"}, {"ignorant", "types no"}, {"transfers", "transfer yes"}, {"bare", "soa no"},
		{"source 192.0.2.21", "source no"}, {"fault timeout example.test. HTTPS", "types no"},
		{"fault notimp example.test. CAA", "types no"},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			run(t, map[string]string{"192.0.2.22": tt.script}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				f, err := g.Scan(t.Context(), "example.test")
				f = must(t, f, err)
				got := conduct(server(t, f, "example.test.", "192.0.2.22"))
				for want := range strings.SplitSeq(tt.want, ", ") {
					if !strings.Contains(got, want) {
						t.Errorf("%s: %s, want %s", tt.script, got, want)
					}
				}
				if got := conduct(server(t, f, "example.test.", "192.0.2.21")); got != wellBehaved {
					t.Errorf("the other one: %s", got)
				}
				if s := server(t, f, "example.test.", "192.0.2.22"); s.Lost > 0 && !strings.HasPrefix(tt.script, "source") ||
					s.Class.Lame() {
					t.Errorf("%s: %d of %d lost, %s", tt.script, s.Lost, s.Sent, s.Class)
				}
				if n := len(net.History()); n > 150 {
					t.Errorf("%d queries", n)
				}
			})
		})
	}
}

func TestScanNotDelegated(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Registry = registrar{"absent.test.": registry.Free}
		f, err := g.Scan(t.Context(), "www.absent.test")
		f = must(t, f, err)
		if f.Domain.String() != "absent.test." || f.Zone.String() != "test." || f.Outcomes[0].Result != iterate.NXDomain {
			t.Errorf("domain %s, zone %s, %s", f.Domain, f.Zone, outcomes(f))
		}
		i := slices.IndexFunc(f.Denials, func(d explain.Denial) bool {
			return d.Zone.String() == "test." && d.Class == iterate.NXDomain
		})
		if i < 0 || f.Denials[i].Minimum != 900 {
			t.Errorf("denials are %+v", f.Denials)
		}
		// The servers of the top-level domain are not ours to probe.
		for _, q := range net.History() {
			if q.Transport.String() != "udp" {
				t.Errorf("sent %v", q)
			}
		}
		if got := conduct(server(t, f, "test.", "192.0.2.11")); strings.Contains(got, "transfer") {
			t.Errorf("the server of test. was queried: %s", got)
		}
	})
}

func TestScanServersDomains(t *testing.T) {
	const delegation = "far.test. 3600 NS ns.other.test., ns1.example.test."
	more := map[string]string{"192.0.2.11": delegation, "192.0.2.12": delegation}
	for _, at := range []string{"192.0.2.31", "192.0.2.21"} {
		more[at] = `
			zone far.test.
			far.test. 60 SOA primary.other.test. a.b.test. 1 7200 3600 1209600 60
			far.test. 60 NS ns.other.test., ns1.example.test.`
	}
	more["192.0.2.31"] += "\nprimary.other.test. 60 CNAME ns.other.test."
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Registry = registrar{"far.test.": registry.Registered, "other.test.": registry.Free}
		g.Options.PlanNS = []dnsname.Name{name("ns2.example.test.")}
		f, err := g.Scan(t.Context(), "far.test")
		f = must(t, f, err)
		var got []string
		for _, r := range f.Registrations {
			got = append(got, r.Domain+" "+string(r.State))
		}
		if diff := cmp.Diff([]string{"far.test. registered", "example.test. unknown", "other.test. free"}, got); diff != "" {
			t.Errorf("registrations (-want +got):\n%s", diff)
		}
		if p := f.Primary; p == nil || p.Name.String() != "primary.other.test." || !p.Alias || len(p.Addrs) != 1 ||
			p.Class != iterate.Answer {
			t.Errorf("the primary is %+v", p)
		}
		if s := server(t, f, "far.test.", "192.0.2.22"); !slices.Equal(s.Listed, []string{"plan"}) ||
			s.Class != iterate.LameRefused {
			t.Errorf("the planned server is %+v", s)
		}
	})
}

func TestUnreachableIsNotLame(t *testing.T) {
	more := map[string]string{"192.0.2.22": "fault timeout *", "192.0.2.12": "loss 40"}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f, err := g.Scan(t.Context(), "example.test")
		f = must(t, f, err)
		s := server(t, f, "example.test.", "192.0.2.22")
		if s.Class != iterate.Timeout || s.Health != iterate.Down || s.Lost != s.Sent || s.Sent < 3 ||
			strings.Contains(conduct(s)+",", " no,") {
			t.Errorf("the silent server: %s, %s, %d of %d lost, %s", s.Class, s.Health, s.Lost, s.Sent, conduct(s))
		}
		if got := conduct(server(t, f, "example.test.", "192.0.2.21")); got != wellBehaved {
			t.Errorf("the other one: %s", got)
		}
		if len(f.Unfinished) > 0 {
			t.Errorf("unfinished %v", f.Unfinished)
		}
	})
}

func TestTypes(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		for _, types := range [][]rr.Type{{rr.TypeANY}, {rr.TypeAXFR}, {rr.TypeA, rr.TypeOPT},
			{1, 2, 5, 6, 12, 15, 16, 28, 33}} {
			if _, err := g.Analyze(t.Context(), "www.example.test", types); err == nil || len(net.History()) > 0 {
				t.Errorf("Analyze with %v: %v, sent %v", types, err, net.History())
			}
		}
		if f := analyze(t, g, "www.example.test", rr.TypeTXT, rr.TypeTXT); len(f.Outcomes) != 1 ||
			f.Outcomes[0].Result != iterate.NoData {
			t.Errorf("%s, want it once", outcomes(f))
		}
		if f := analyze(t, g, "example.test", rr.TypeNS,
			rr.TypeDS); outcomes(f) != "NS answer at example.test. in example.test. NS ns1.example.test.,ns2.example.test.; "+
			"DS nodata at example.test. in test." {
			t.Error(outcomes(f))
		}
	})
}

func TestBudget(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		for most := 3; most <= 44; most++ {
			net.Forget()
			g.Options.MaxQueries = most
			gatherFacts := func() (*explain.Facts, error) { return g.Scan(t.Context(), "example.test") }
			if most%2 == 0 {
				gatherFacts = func() (*explain.Facts, error) { return g.Analyze(t.Context(), "alias.example.test", nil) }
			}
			f, err := gatherFacts()
			f = must(t, f, err)
			if got := len(net.History()); got > most || f.Queries != got || len(f.Unfinished) == 0 {
				t.Errorf("with %d queries %d were sent, the facts say %d, unfinished %v", most, got, f.Queries, f.Unfinished)
			}
			for _, s := range f.Servers {
				if s.Class.Lame() || strings.Contains(conduct(s), "tcp no") {
					t.Errorf("with %d queries %s is %s: %s", most, s.Addr, s.Class, conduct(s))
				}
			}
		}
	})
}

func TestMaxTime(t *testing.T) {
	more := map[string]string{}
	for at := range servers {
		more[at] = "latency 900ms"
	}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.MaxTime = 6e9
		f, err := g.Analyze(t.Context(), "alias.example.test", nil)
		f = must(t, f, err)
		if f.Took > 7e9 || len(f.Unfinished) == 0 {
			t.Errorf("took %v, unfinished %v", f.Took, f.Unfinished)
		}
	})
}

func TestRate(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.Rate = 10
		f, err := g.Scan(t.Context(), "example.test")
		must(t, f, err)
		sent := map[netip.Addr][]simnet.Query{}
		for _, q := range net.History() {
			at := q.Server.Addr()
			if n := len(sent[at]); n >= 10 && q.At-sent[at][n-10].At < 1e9 {
				t.Errorf("%v is the eleventh within a second", q)
			}
			sent[at] = append(sent[at], q)
		}
	})
}

func TestSigned(t *testing.T) {
	more := map[string]string{"192.0.2.21": "sign example.test.", "192.0.2.22": "sign example.test."}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f, err := g.Scan(t.Context(), "example.test")
		f = must(t, f, err)
		if d := f.Denials[0]; d.Class != iterate.NXDomain || d.Ranges != safeat.RangesNSEC || len(d.Covers) != 2 ||
			d.NSECTTL == 0 {
			t.Errorf("names are denied with %+v", d)
		}
		if len(f.Secure) != 1 || len(f.Secure[0].Zones) != 3 {
			t.Errorf("DNSSEC: %+v", f.Secure)
		}
	})
}

func TestPrimary(t *testing.T) {
	tests := []struct{ records, want string }{
		{"", "hidden.example.test. [] missing unknown"},
		{"hidden.example.test. 60 A 192.0.2.22", "hidden.example.test. [192.0.2.22] answer"},
		{"hidden.example.test. 60 AAAA 2001:db8::53", "hidden.example.test. [2001:db8::53] unreachable"},
		{"hidden.example.test. 60 A 192.0.2.31", "hidden.example.test. [192.0.2.31] lame-refused"},
		{"hidden.example.test. 60 TXT x", "hidden.example.test. [] missing unknown"},
	}
	for _, tt := range tests {
		const soa = "set example.test. 3600 SOA hidden.example.test. a.b.test. 1 7200 3600 1209600 300\n"
		run(t, map[string]string{"192.0.2.21": soa + tt.records, "192.0.2.22": soa + tt.records},
			func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				f, err := g.Scan(t.Context(), "example.test")
				p := must(t, f, err).Primary
				if p == nil {
					t.Fatal("the primary was not looked up")
				}
				got := fmt.Sprint(p.Name, " ", p.Addrs)
				if p.Missing {
					got += " missing"
				}
				if got += " " + string(p.Class); got != tt.want {
					t.Errorf("with %q: %s, want %s", tt.records, got, tt.want)
				}
			})
	}
}

// TestPace checks that concurrent gatherings together stay below the rate limit per server.
func TestPace(t *testing.T) {
	type gathering func(ctx context.Context, g *gather.Gatherer) (*explain.Facts, error)
	scan := func(ctx context.Context, g *gather.Gatherer) (*explain.Facts, error) {
		return g.Scan(ctx, "example.test")
	}
	analyze := func(ctx context.Context, g *gather.Gatherer) (*explain.Facts, error) {
		return g.Analyze(ctx, "alias.example.test", nil)
	}
	compare := func(ctx context.Context, g *gather.Gatherer) (*explain.Facts, error) {
		return g.Compare(ctx, "www.example.test", nil)
	}
	for _, tt := range []struct {
		gatherings []gathering
		at         []string // servers that only the gatherings query; authoritative servers also get queries from resolvers
	}{{[]gathering{scan, scan, analyze}, slices.Collect(maps.Keys(servers))},
		{[]gathering{compare, compare, compare}, []string{resolverA, resolverB}}} {
		run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			g.Options.Rate, g.Options.Pace = 10, &resolve.Pace{Rate: 10}
			var all sync.WaitGroup
			for _, gathering := range tt.gatherings {
				one := *g
				all.Go(func() {
					if f, err := gathering(t.Context(), &one); err != nil || len(f.Unfinished) > 0 {
						t.Errorf("%v, unfinished %v", err, f.Unfinished)
					}
				})
			}
			all.Wait()
			sent := map[netip.Addr][]simnet.Query{}
			for _, q := range net.History() {
				at := q.Server.Addr()
				if n := len(sent[at]); slices.Contains(tt.at, at.String()) && n >= 10 && q.At-sent[at][n-10].At < 1e9 {
					t.Errorf("%v is the eleventh within a second after %v", q, sent[at][n-10:])
				}
				sent[at] = append(sent[at], q)
			}
		})
	}
}

// TestExpected checks that expected types are asked for: without an answer the expectation cannot be judged.
func TestExpected(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.Expect = []explain.Set{{Type: rr.TypeTXT, Data: []string{"x"}},
			{Type: rr.TypeA, Data: []string{"203.0.113.1"}}}
		var types []string
		for _, o := range analyze(t, g, "www.example.test").Outcomes {
			types = append(types, o.Type.String())
		}
		if diff := cmp.Diff([]string{"A", "AAAA", "TXT"}, types); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	})
}

// TestRecovered checks that a server that was silent only during the walk is reported as losing packets, and not as
// down.
func TestRecovered(t *testing.T) {
	run(t, map[string]string{"192.0.2.22": "fault timeout *\nat 12s heal"},
		func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			f, err := g.Scan(t.Context(), "example.test")
			s := server(t, must(t, f, err), "example.test.", "192.0.2.22")
			if s.Health != iterate.Flaky || s.Class != iterate.Answer || s.SOA == nil {
				t.Errorf("it is %s, answers %s, and its SOA is %v", s.Health, s.Class, s.SOA)
			}
		})
}

// TestScanPrivate checks that no registry learns a name of an internal name space.
func TestScanPrivate(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Registry = registrar{"example.test.": registry.Registered}
		g.Options.Private = true
		f, err := g.Scan(t.Context(), "example.test")
		if f = must(t, f, err); len(f.Registrations) > 0 {
			t.Errorf("registries were asked: %v", f.Registrations)
		}
	})
}

// TestFailingServerEDNS checks that a server which fails for everything is not said to lack EDNS.
func TestFailingServerEDNS(t *testing.T) {
	for _, fault := range []string{"servfail", "refused", "notauth"} {
		run(t, map[string]string{"192.0.2.22": "edns ignore\nfault " + fault},
			func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				f, err := g.Scan(t.Context(), "example.test")
				f = must(t, f, err)
				if s := server(t, f, "example.test.", "192.0.2.22"); s.EDNS.Fact == explain.No {
					t.Errorf("%s: EDNS is %v", fault, s.EDNS)
				}
			})
	}
}
