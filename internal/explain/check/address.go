package check

import (
	"net/netip"

	"github.com/nameplane/nameplane/internal/explain"
)

// specials are the ranges of the registries of special-purpose addresses (RFC 6890) that are not reached from everywhere, and
// what is not for single hosts at all.
var specials = []struct {
	prefix netip.Prefix
	name   string
	lab    bool // is the public internet of a lab
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "a placeholder", false},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address", false},
	{netip.MustParsePrefix("100.64.0.0/10"), "an address inside a provider's network", false},
	{netip.MustParsePrefix("127.0.0.0/8"), "the machine's own address (loopback)", true},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address", false},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address", false},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address", false},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for examples in documents", true},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address", false},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for measurements in laboratories", true},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for examples in documents", true},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for examples in documents", true},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address", false},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address", false},
	{netip.MustParsePrefix("::/128"), "a placeholder", false},
	{netip.MustParsePrefix("::1/128"), "the machine's own address (loopback)", true},
	{netip.MustParsePrefix("::ffff:0:0/96"), "an IPv4 address in IPv6 clothes", false},
	{netip.MustParsePrefix("100::/64"), "an address that swallows everything", false},
	{netip.MustParsePrefix("2001:db8::/32"), "an address for examples in documents", true},
	{netip.MustParsePrefix("3fff::/20"), "an address for examples in documents", true},
	{netip.MustParsePrefix("fc00::/7"), "a private address", false},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address", false},
	{netip.MustParsePrefix("fec0::/10"), "a private address", false},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address", false},
}

// special is why an address cannot be reached from the internet; empty if it can. A lab is an internet of its own.
func special(f *explain.Facts, a netip.Addr) string {
	lab := f.Vantage.Name == "lab" || f.Vantage.Name == "sim"
	for _, s := range specials {
		if s.prefix.Contains(a) && !(lab && s.lab) {
			return s.name
		}
	}
	return ""
}
