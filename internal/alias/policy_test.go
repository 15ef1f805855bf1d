package alias_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

// TestSpecialAddresses sends refused and public addresses through the same code path as those of any target.
func TestSpecialAddresses(t *testing.T) {
	test := func(a netip.Addr, status string) {
		bubble(t, func(t *testing.T) {
			typ := "AAAA"
			if a.Is4() {
				typ = "A"
			}
			r := start(t, fmt.Sprintf("zone example.net.\ncdn.example.net. 60 %s %s", typ, a))
			r.SetPolicy(alias.Policy{Special: specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}})
			r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
			r.wait(time.Second)
			if got := r.status("example.org."); got != status {
				t.Errorf("with %s it is %s, want %s", a, got, status)
			}
		})
	}
	for _, a := range slices.Concat(specialaddrtest.Hostile, specialaddrtest.Private) {
		test(a, "ERROR CREATE private-address")
	}
	for _, a := range specialaddrtest.Public {
		test(a, "ACTIVE")
	}
}

func TestPolicyOfIPv6(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t,
			"zone example.net.\ncdn.example.net. 60 A 203.0.113.1\ncdn.example.net. 60 AAAA fe80::1, 2001:db8::1\n"+
				"map.example.net. 60 AAAA ::ffff:127.0.0.1\nula.example.net. 60 AAAA fd00::1")
		r.zone("example.org.", "a.example.org. 300 ALIAS cdn.example.net.", "b.example.org. 300 ALIAS map.example.net.",
			"c.example.org. 300 ALIAS ula.example.net.")
		r.wait(time.Second)
		r.want("a.example.org.", "ACTIVE private-address", "A 60 203.0.113.1")
		r.want("b.example.org.", "ERROR CREATE private-address", "")
		r.want("c.example.org.", "ERROR CREATE private-address", "")
	})
}

// IPv6 addresses that embed an IPv4 address are refused if the IPv4 address is.
func TestPolicyOfIPv4InIPv6(t *testing.T) {
	for addr, status := range map[string]string{
		"64:ff9b::7f00:1": "ERROR CREATE private-address", "2002:a00:1::1": "ERROR CREATE private-address",
		"::a00:1":            "ERROR CREATE private-address",
		"64:ff9b::c633:6435": "ERROR CREATE own-address", "64:ff9b::cb00:7101": "ACTIVE", "2002:cb00:7101::1": "ACTIVE",
	} {
		bubble(t, func(t *testing.T) {
			r := start(t, "zone example.net.\ncdn.example.net. 60 AAAA "+addr)
			r.SetPolicy(alias.Policy{Own: addrs("198.51.100.53")})
			r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
			r.wait(time.Second)
			if got := r.status("example.org."); got != status {
				t.Errorf("with %s it is %s, want %s", addr, got, status)
			}
		})
	}
}
