package report_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// written is a report in a form for people.
func written(t *testing.T, f *explain.Facts, format string) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.Make(f, nil).Write(&out, format, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestNoRoute: what was not asked for want of a route is said to be so, and nobody's fault.
func TestNoRoute(t *testing.T) {
	f, _ := story(explain.Scan)
	f.Servers = append(f.Servers, explain.Server{Zone: f.Zone, Host: f.Servers[0].Host, Addr: netip.MustParseAddr("2001:db8::1"), Class: iterate.Unknown})
	if text := written(t, f, "text"); strings.Contains(text, "no route") || !strings.Contains(text, "2001:db8::1  not asked\n") {
		t.Errorf("%s", text)
	}
	f.Vantage.NoRoute = []string{"IPv6"}
	for format, want := range map[string][]string{"text": {"2001:db8::1  not asked (no IPv6 here)\n", " Not asked over IPv6: this machine has no route.\n"},
		"markdown": {"2001:db8::1 not asked (no IPv6 here)", "\nNot asked over IPv6: this machine has no route.\n"}, "json": {`"noRoute": [`}} {
		text := written(t, f, format)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", format, w, text)
			}
		}
	}
}

// TestWhose: below a private suffix somebody else has the name than who has the domain.
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
	want := "whose      names below pages.example.org are given to others: shop.pages.example.org is of whoever was given it"
	if text := written(t, f, "text"); !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
}
