package iterate_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// summary returns the results of a walk, one per line.
func summary(trace *iterate.Trace) []string {
	out := []string{string(trace.Result), strings.Join(zoneNames(trace), ", ")}
	for _, l := range trace.Chain {
		out = append(out, fmt.Sprintf("%s %s %s in %s", l.From, l.Type, l.To, l.Zone))
	}
	for _, n := range trace.Notes {
		out = append(out, fmt.Sprintf("%s %s %s", n.Kind, n.Zone, n.Subject))
	}
	for _, z := range trace.Zones {
		for _, h := range z.Hosts {
			if h.Problem != "" {
				out = append(out, fmt.Sprintf("%s of %s: %s", h.Name, z.Name, h.Problem))
			}
		}
	}
	for _, u := range trace.Unfinished {
		out = append(out, "unfinished: "+u)
	}
	return out
}

func TestScenarios(t *testing.T) {
	tld := func(script string) map[string]string {
		return map[string]string{"192.0.2.11": script, "192.0.2.12": script}
	}
	leaf := func(script string) map[string]string {
		return map[string]string{"192.0.2.21": script, "192.0.2.22": script}
	}
	const zones = "., test., example.test."
	tests := []struct {
		name string
		q    string
		do   map[string]string
		opts iterate.Options
		want []string
	}{
		{"no such name", "nope.example.test. A", nil, iterate.Options{}, []string{"nxdomain", zones}},
		{"no such type", "www.example.test. TXT", nil, iterate.Options{}, []string{"nodata", zones}},
		{"no such domain", "www.nope.test. A", nil, iterate.Options{}, []string{"nxdomain", "., test."}},
		{"apex", "example.test. NS", nil, iterate.Options{}, []string{"answer", zones}},
		{"DS is the parent's", "test. DS", nil, iterate.Options{}, []string{"answer", "."}},
		{"empty non-terminals", "a.b.c.example.test. A", nil, iterate.Options{}, []string{"answer", zones}},
		{"denied non-terminals", "a.b.c.example.test. A", leaf("hollow"), iterate.Options{}, []string{"answer", zones,
			"ENT-NXDOMAIN example.test. c.example.test. at 192.0.2.21",
			"ENT-NXDOMAIN example.test. c.example.test. at 192.0.2.22"}},
		{"CNAME", "alias.example.test. A", nil, iterate.Options{}, []string{"answer", zones + ", other.test.",
			"alias.example.test. CNAME www.other.test. in example.test."}},
		{"CNAME asked for", "alias.example.test. CNAME", nil, iterate.Options{}, []string{"answer", zones}},
		{"CNAME to nowhere", "lost.example.test. A", nil, iterate.Options{}, []string{"nxdomain", zones + ", other.test.",
			"lost.example.test. CNAME lost.other.test. in example.test."}},
		{"DNAME", "www.old.example.test. A", nil, iterate.Options{}, []string{"answer", zones + ", other.test.",
			"www.old.example.test. DNAME www.other.test. in example.test."}},
		{"loop of CNAMEs", "loop1.example.test. A", nil, iterate.Options{}, []string{"unknown", zones,
			"loop1.example.test. CNAME loop2.example.test. in example.test.",
			"loop2.example.test. CNAME loop1.example.test. in example.test.",
			"ALIAS-LOOP example.test. loop2.example.test. to loop1.example.test."}},
		{"CNAMEs differ", "alias.example.test. A",
			map[string]string{"192.0.2.22": "set alias.example.test. 60 CNAME www.example.test."},
			iterate.Options{}, []string{"answer", zones + ", other.test.",
				"alias.example.test. CNAME www.example.test. in example.test.",
				"alias.example.test. CNAME www.other.test. in example.test.",
				"ALIASES-DIFFER example.test. alias.example.test. A"}},
		{"servers elsewhere", "www.far.test. A", nil, iterate.Options{},
			[]string{"answer", "., test., far.test., example.test. quick"}},
		{"referrals differ", "www.example.test. A",
			map[string]string{"192.0.2.12": "set example.test. 60 NS ns2.example.test."}, iterate.Options{},
			[]string{"answer", zones, "REFERRALS-DIFFER test. example.test."}},
		{"no glue", "www.example.test. A", tld("drop ns1.example.test.\ndrop ns2.example.test."), iterate.Options{},
			[]string{"unknown", zones,
				"ns1.example.test. of example.test.: no glue", "ns2.example.test. of example.test.: no glue"}},
		{"a server's name does not exist", "www.example.test. A",
			tld("set example.test. 60 NS ns1.example.test., nope.other.test."), iterate.Options{},
			[]string{"answer", zones + ", other.test. quick", "nope.other.test. of example.test.: no such name"}},
		{"a server's name is an alias", "www.example.test. A",
			tld("set example.test. 60 NS ns1.example.test., cn.other.test."), iterate.Options{},
			[]string{"answer", zones + ", other.test. quick", "cn.other.test. of example.test.: is an alias"}},
		{"servers loop", "www.loop.test. A", tld("loop.test. 60 NS ns.pool.test.\npool.test. 60 NS ns.loop.test."),
			iterate.Options{},
			[]string{"unknown", "., test., loop.test., pool.test. quick", "NS-LOOP loop.test. ns.loop.test.",
				"ns.pool.test. of loop.test.: could not be looked up", "ns.loop.test. of pool.test.: could not be looked up"}},
		{"child on the parent's servers", "www.sub.example.test. A",
			leaf("zone sub.example.test.\nsub.example.test. 60 NS ns1.example.test.\nwww.sub.example.test. 60 A 192.0.2.9"),
			iterate.Options{}, []string{"answer", zones + ", sub.example.test. hidden"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := internet(tt.do)
				net.MustServer("192.0.2.31", "cn.other.test. 60 CNAME www.other.test.")
				if diff := cmp.Diff(tt.want, summary(walk(t, net, tt.q, tt.opts))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestDisjoint has a parent and a child NS set with no server in common. All servers answer, so none is lame.
func TestDisjoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const other = "set example.test. 60 NS ns3.example.test., ns4.example.test.\n" +
			"ns3.example.test. 60 A 192.0.2.23\nns4.example.test. 60 A 192.0.2.24"
		net := internet(map[string]string{"192.0.2.21": other, "192.0.2.22": other, "192.0.2.23": exampleZone + other,
			"192.0.2.24": exampleZone + other})
		trace := walk(t, net, "www.example.test. A", iterate.Options{})
		z := trace.Zone(dnsname.MustParse("example.test."))
		if got, want := sets(z.ParentNS), "[ns1.example.test. ns2.example.test.] from [192.0.2.11 192.0.2.12]"; got != want {
			t.Errorf("parent has %s, want %s", got, want)
		}
		if got, want := sets(z.ChildNS),
			"[ns3.example.test. ns4.example.test.] from [192.0.2.21 192.0.2.22 192.0.2.23 192.0.2.24]"; got != want {
			t.Errorf("child has %s, want %s", got, want)
		}
		for _, e := range trace.Exchanges {
			if e.Class.Lame() || e.Class.Transport() {
				t.Errorf("%v at %v is %s", e.Question, e.Server, e.Class)
			}
		}
		if got, want := classes(trace, "example.test.", "www.example.test. A"),
			"21 udp answer, 22 udp answer, 23 udp answer, 24 udp answer"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestForeignGlue has a parent that sends an address for a name outside its zone. That address must not be queried.
func TestForeignGlue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const script = "zone elsewhere.\nns.elsewhere. 60 A 192.0.2.66\n" +
			"set example.test. 60 NS ns1.example.test., ns.elsewhere."
		net := internet(map[string]string{"192.0.2.11": script, "192.0.2.12": script, "192.0.2.66": exampleZone})
		walk(t, net, "www.example.test. A", iterate.Options{})
		for _, q := range net.History() {
			if q.Server.Addr() == netip.MustParseAddr("192.0.2.66") {
				t.Errorf("asked %v", q)
			}
		}
	})
}

// TestBudget ends walks early. Missing results are unknown, and no server is called lame or down.
func TestBudget(t *testing.T) {
	dead := map[string]string{}
	for addr := range servers {
		dead[addr] = "latency 900ms"
	}
	tests := []struct {
		name string
		do   map[string]string
		opts iterate.Options
		want string
	}{
		{"queries", nil, iterate.Options{Budget: resolve.NewBudget(9, 10, nil)}, "9 queries"},
		{"time", dead, iterate.Options{MaxTime: 3 * time.Second}, "3s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				net := internet(tt.do)
				trace := walk(t, net, "www.example.test. A", tt.opts)
				if diff := cmp.Diff([]string{tt.want}, trace.Unfinished); diff != "" || trace.Result != iterate.Unknown {
					t.Errorf("result %s, unfinished (-want +got):\n%s", trace.Result, diff)
				}
				if tt.opts.Budget != nil && len(net.History()) > 9 || tt.opts.MaxTime > 0 && time.Since(began) > tt.opts.MaxTime {
					t.Errorf("%d queries in %v", len(net.History()), time.Since(began))
				}
				for _, e := range trace.Exchanges {
					if !e.Class.Usable() && e.Class != iterate.Unknown {
						t.Errorf("%v at %v is %s", e.Question, e.Server, e.Class)
					}
				}
				for addr := range servers {
					if h := trace.Health(netip.MustParseAddr(addr)); h == iterate.Down || h == iterate.Flaky {
						t.Errorf("%s is %s", addr, h)
					}
				}
			})
		})
	}
}

// TestRate checks that no server gets more queries than the rate in any second.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := internet(nil)
		walk(t, net, "alias.example.test. A", iterate.Options{Budget: resolve.NewBudget(400, 2, nil)})
		at := map[netip.AddrPort][]time.Duration{}
		for _, q := range net.History() {
			at[q.Server] = append(at[q.Server], q.At)
		}
		for server, times := range at {
			for i := 2; i < len(times); i++ {
				if times[i]-times[i-2] < time.Second {
					t.Errorf("%v was asked at %v", server, times)
				}
			}
		}
	})
}

// TestHealth distinguishes servers that fail sometimes or are slow from servers that are down. One dead server in
// each zone must not use up the time.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := internet(map[string]string{"192.0.2.2": "fault timeout", "192.0.2.12": "fault timeout",
			"192.0.2.22": "fault timeout\nat 4s heal"})
		trace := walk(t, net, "www.example.test. A", iterate.Options{})
		if trace.Result != iterate.Answer || len(trace.Unfinished) > 0 {
			t.Errorf("result %s, unfinished %v", trace.Result, trace.Unfinished)
		}
		want := map[string]iterate.Health{"192.0.2.1": iterate.Up, "192.0.2.2": iterate.Down, "192.0.2.12": iterate.Down,
			"192.0.2.21": iterate.Up,
			"192.0.2.22": iterate.Flaky, "192.0.2.31": iterate.Unchecked}
		for addr, want := range want {
			if got := trace.Health(netip.MustParseAddr(addr)); got != want {
				t.Errorf("%s is %s, want %s", addr, got, want)
			}
		}
	})
}

// TestLateReferral has a slow server with a different referral. The walk must follow it too.
func TestLateReferral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := internet(map[string]string{"192.0.2.12": "latency 1800ms\nset example.test. 60 NS ns3.example.test.\n" +
			"ns3.example.test. 60 A 192.0.2.23",
			"192.0.2.23": exampleZone})
		trace := walk(t, net, "www.example.test. A", iterate.Options{})
		if got, want := classes(trace, "example.test.", "www.example.test. A"),
			"21 udp answer, 22 udp answer, 23 udp answer"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
