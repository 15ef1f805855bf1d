package gather_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/simnet"
)

// sixes are servers with IPv6 addresses: of the root, of example.test., and of six.test., which has no others.
var sixes = map[string]string{"2001:db8::1": rootZone, "2001:db8::21": exampleZone, "2001:db8::51": `
	zone six.test.
	six.test. 3600 SOA ns.six.test. hostmaster.six.test. 1 7200 3600 1209600 300
	six.test. 3600 NS ns.six.test.
	ns.six.test. 3600 AAAA 2001:db8::51
	www.six.test. 300 A 203.0.113.1`}

// both returns the simulated internet with IPv6.
func both() map[string]string {
	more := map[string]string{}
	for a, script := range sixes {
		more[a] = script
	}
	for _, a := range []string{"192.0.2.21", "192.0.2.22", "2001:db8::21"} {
		more[a] += "\nns1.example.test. 3600 AAAA 2001:db8::21"
	}
	for _, a := range []string{"192.0.2.11", "192.0.2.12"} {
		more[a] = "ns1.example.test. 172800 AAAA 2001:db8::21\nsix.test. 3600 NS ns.six.test.\nns.six.test. 3600 AAAA " +
			"2001:db8::51"
	}
	return more
}

// without returns a Route for a machine that has no route over some families.
func without(v4, v6 bool) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return a.Is4() && !v4 || a.Is6() && !v6 }
}

func TestRoute(t *testing.T) {
	tests := []struct {
		what           string
		route          func(netip.Addr) bool
		only4, only6   bool
		noRoute        string
		asked4, asked6 bool
	}{
		{"not found out", nil, false, false, "[]", true, true},
		{"both", without(false, false), false, false, "[]", true, true},
		{"no IPv6", without(false, true), false, false, "[IPv6]", true, false},
		{"no IPv4", without(true, false), false, false, "[IPv4]", false, true},
		{"none", without(true, true), false, false, "[IPv4 IPv6]", true, true},
		{"no IPv6, and -6", without(false, true), false, true, "[]", false, true},
		{"no IPv6, and -4", without(false, true), true, false, "[]", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			run(t, both(), func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				g.Hints[0].Glue = append(g.Hints[0].Glue, addr("2001:db8::1"))
				g.Route, g.Options.IPv4Only, g.Options.IPv6Only = tt.route, tt.only4, tt.only6
				f := analyze(t, g, "www.example.test")
				if got := fmt.Sprint(f.Vantage.NoRoute); got != tt.noRoute {
					t.Errorf("no route is %s, want %s", got, tt.noRoute)
				}
				asked := func(v4 bool) bool {
					return slices.ContainsFunc(net.History(), func(q simnet.Query) bool { return q.Server.Addr().Is4() == v4 })
				}
				if asked(true) != tt.asked4 || asked(false) != tt.asked6 {
					t.Errorf("asked over IPv4: %v, over IPv6: %v", asked(true), asked(false))
				}
				if tt.noRoute != "[IPv6]" {
					return
				}
				for _, x := range check.Run(f) {
					if x.Status == explain.Fail && x.Severity.AtLeast(explain.Notice) && x.ID != "DEL17" {
						t.Errorf("%s %s", x.ID, x.Words)
					}
				}
				if s := server(t, f, "example.test.", "2001:db8::21"); s.Class != iterate.Unknown || s.Sent != 0 ||
					f.Vantage.IPv6 != explain.No {
					t.Errorf("%+v, IPv6 is %s", s, f.Vantage.IPv6)
				}
				const want = "1 of 3 servers of example.test could not be queried from here, " +
					"as this machine has no route over IPv6; the others reply."
				if x := finding(f, "DEL05"); x.Words != want {
					t.Errorf("%s", x.Words)
				}
			})
		})
	}
}

// TestOnlyElsewhere checks that a zone without a route from this machine is not reported as broken.
func TestOnlyElsewhere(t *testing.T) {
	run(t, both(), func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Hints[0].Glue = append(g.Hints[0].Glue, addr("2001:db8::1"))
		g.Route = without(false, true)
		f := analyze(t, g, "www.six.test")
		r := report.Make(f, check.Run(f))
		const want = "No verdict: No server of six.test gave a usable reply, " +
			"as this machine has no route over IPv6."
		if r.Summary != want {
			t.Errorf("%s, want %s", r.Summary, want)
		}
		for _, x := range r.Findings {
			// DEL20 is right: six.test has no IPv4 address.
			if x.Status == explain.Fail && x.Severity.AtLeast(explain.Error) && x.ID != "DEL20" {
				t.Errorf("%s %s", x.ID, x.Words)
			}
		}
	})
}

func TestHasRoute(t *testing.T) {
	if !gather.HasRoute(addr("127.0.0.1")) {
		t.Error("there is no route to this machine itself")
	}
	for _, a := range []netip.Addr{{}, addr("fe80::1%no-such-link")} {
		if gather.HasRoute(a) {
			t.Errorf("there is a route to %v", a)
		}
	}
}
