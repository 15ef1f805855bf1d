package check_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

// TestSpecialAddresses gives a nameserver each of the addresses that policies refuse.
func TestSpecialAddresses(t *testing.T) {
	c, _ := check.Find("DEL14")
	judge := func(a netip.Addr) string {
		f := healthy()
		f.Vantage.Name, f.Vantage.NAT64 = "here", []netip.Prefix{specialaddrtest.Prefix}
		zoneOf(f).Hosts = []iterate.Host{{Name: name("ns2.example.net"), Found: []netip.Addr{a}}}
		return summary(c.Judge(f))
	}
	for _, a := range slices.Concat(specialaddrtest.Hostile, specialaddrtest.Private) {
		if got := judge(a); got != "fail error" {
			t.Errorf("a nameserver at %s: %q", a, got)
		}
	}
	for _, a := range specialaddrtest.Public {
		// Packets to 6to4 addresses may arrive, but no nameserver can depend on relays.
		want := "pass"
		if specialaddr.Tunnel(a) != "" {
			want = "fail error"
		}
		if got := judge(a); got != want {
			t.Errorf("a nameserver at %s: %q", a, got)
		}
	}
}
