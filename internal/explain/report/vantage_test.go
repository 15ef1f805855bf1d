package report_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// written returns a report in a format for people.
func written(t *testing.T, f *explain.Facts, format string) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.Make(f, nil).Write(&out, format, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestNoRoute checks that the report names an address family without a route, and blames no server for it.
func TestNoRoute(t *testing.T) {
	f, _ := story(explain.Scan)
	f.Servers = append(f.Servers,
		explain.Server{Zone: f.Zone, Host: f.Servers[0].Host, Addr: netip.MustParseAddr("2001:db8::1"),
			Class: iterate.Unknown})
	if text := written(t, f, "text"); strings.Contains(text, "no route") ||
		!strings.Contains(text, "2001:db8::1  not asked\n") {
		t.Errorf("%s", text)
	}
	f.Vantage.NoRoute = []string{"IPv6"}
	for format, want := range map[string][]string{"text": {"2001:db8::1  not asked (no IPv6 here)\n",
		" No queries over IPv6: this machine has no route.\n"},
		"markdown": {"2001:db8::1 not asked (no IPv6 here)", "\nNo queries over IPv6: this machine has no route.\n"},
		"json":     {`"noRoute": [`}} {
		text := written(t, f, format)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", format, w, text)
			}
		}
	}
}

// TestWhose checks that a name below a private suffix is shown as a customer's, not as the owner's of the domain.
func TestWhose(t *testing.T) {
	f, _ := story(explain.Scan)
	if text := written(t, f, "text"); strings.Contains(text, "whose") {
		t.Errorf("%s", text)
	}
	f.Owner = f.Domain
	if text := written(t, f, "text"); strings.Contains(text, "whose") {
		t.Errorf("%s", text)
	}
	f.Owner = name("shop.pages.example.org")
	want := "whose      names below pages.example.org belong to different customers: shop.pages.example.org belongs " +
		"to one of them"
	if text := written(t, f, "text"); !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
}

// TestPlanned checks that the report shows whether planned nameservers know the zone.
func TestPlanned(t *testing.T) {
	f, _ := story(explain.Scan)
	f.PlanNS = []dnsname.Name{name("ns1.new.net"), name("ns2.new.net"), name("ns1.example.org")}
	plan := []string{"plan"}
	f.Servers = append(f.Servers,
		explain.Server{Zone: f.Zone, Host: f.PlanNS[0], Addr: netip.MustParseAddr("192.0.2.7"), Listed: plan,
			Class: iterate.LameRefused},
		explain.Server{Zone: f.Zone, Host: f.PlanNS[2], Addr: netip.MustParseAddr("192.0.2.1"), Listed: plan,
			Class: iterate.Answer},
		explain.Server{Zone: f.Zone, Host: f.PlanNS[1], Addr: netip.MustParseAddr("192.0.2.18"), Listed: plan,
			Class: iterate.Answer, SOA: &explain.SOA{Serial: 2026010199}},
		explain.Server{Zone: f.Zone, Host: f.PlanNS[1], Addr: netip.MustParseAddr("192.0.2.19"), Listed: plan,
			Class: iterate.Answer, SOA: &explain.SOA{Serial: 2026010199}})
	text := written(t, f, "text")
	_, to, ok := strings.Cut(text, "\nPlanned nameservers\n")
	to = strings.Join(strings.Fields(to), " ")
	for _, want := range []string{" ns1.new.net - NO NO 192.0.2.7 does not know the zone (refused) ",
		" ns2.new.net - NO NO 192.0.2.18 answers 2026010199 192.0.2.19 ", " ns1.example.org - yes yes 192.0.2.1 answers "} {
		if !ok || !strings.Contains(to, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(text, "serial   2026010102") || explain.PastOf(f).Serial != 2026010102 {
		t.Errorf("the zone has the version of the planned servers:\n%s", text)
	}
	if strings.Count(text, " 192.0.2.1 ") != 2 || strings.Count(text, "192.0.2.18") != 1 {
		t.Errorf("a server that stays is there twice, or not:\n%s", text)
	}
	if text := written(t, f, "markdown"); !strings.Contains(text, "## Planned nameservers") ||
		!strings.Contains(text, "| 192.0.2.7 does not know the zone (refused) |") {
		t.Errorf("%s", text)
	}
}

// TestIntercepted checks that an intercepted scan says once why checks are unknown.
func TestIntercepted(t *testing.T) {
	f, _ := story(explain.Scan)
	van := finding("VAN01", explain.Warning, explain.Fail)
	van.Words = "A device on the path answers."
	r := report.Make(f, []explain.Finding{van, finding("DEL01", explain.Critical, explain.NotKnown),
		finding("DEL04", explain.Critical, explain.NotKnown)})
	var out bytes.Buffer
	if err := r.Text(&out, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "No verdict: A device on the path answers.\n") ||
		strings.Contains(text, "DEL04") || strings.Count(text, "see VAN01") != 1 {
		t.Errorf("%s", text)
	}
}
