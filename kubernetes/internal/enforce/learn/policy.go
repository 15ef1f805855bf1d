package learn

import (
	"net/netip"
	"slices"
)

// Policy says which addresses of answers must not open a firewall. Whoever answers for an allowed name could otherwise let
// pods reach the node, the cluster or the cloud's metadata by giving their addresses.
//
// Private addresses (RFC 1918, RFC 4193) are not refused: names of a company's own network are what many egress rules are
// about. A cluster's addresses of pods, services and nodes are mostly private too; which they are, the cluster says.
type Policy struct {
	Cluster *Networks      // the cluster's own
	Refuse  []netip.Prefix // beyond those
	Permit  []netip.Prefix // not refused after all; the more specific word of an administrator
}

// Special networks that netip has no word for.
var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")       // RFC 791: Linux sends it to itself
	reserved    = netip.MustParsePrefix("240.0.0.0/4")     // RFC 1112, broadcast included
	siteLocal   = netip.MustParsePrefix("fec0::/10")       // RFC 3879
	nat64       = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052 §2.1
	sixToFour   = netip.MustParsePrefix("2002::/16")       // RFC 3056 §2
	compatible  = netip.MustParsePrefix("::/96")           // RFC 4291 §2.5.5.1
	translated  = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765 §2.1
	localNAT64  = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
)

// metadata are the addresses at which clouds give machines their credentials, beyond the link-local 169.254.169.254.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
}

// Refused tells why addr is refused; empty when it is not. An IPv6 address that leads to one of IPv4 is judged as that
// one. IPv4-mapped ones are always refused: what a host does with them is an IPv4 connection, which no AAAA record may allow.
func (p Policy) Refused(addr netip.Addr) string {
	if addr.Is4In6() {
		return "an IPv4 address written as one of IPv6"
	}
	if p.Permits(addr) {
		return ""
	}
	for _, a := range append(Within(addr), addr) {
		if why := special(a); why != "" {
			return why
		}
		if slices.ContainsFunc(p.Refuse, func(n netip.Prefix) bool { return n.Contains(a) }) {
			return "in a range that is refused"
		}
		if whose := p.Cluster.Whose(a); whose != "" {
			return "an address of " + whose
		}
	}
	return ""
}

// Permits reports whether addr is permitted by name of its network.
func (p Policy) Permits(addr netip.Addr) bool {
	permits := func(a netip.Addr) bool {
		return slices.ContainsFunc(p.Permit, func(n netip.Prefix) bool { return n.Contains(a) })
	}
	ends := Within(addr)
	return permits(addr) || len(ends) > 0 && !slices.ContainsFunc(ends, func(a netip.Addr) bool { return !permits(a) })
}

func special(a netip.Addr) string {
	switch {
	case a.IsUnspecified(), thisNetwork.Contains(a):
		return "the unspecified address"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case slices.Contains(metadata, a):
		return "an address of cloud metadata"
	case a.IsMulticast():
		return "a multicast address"
	case reserved.Contains(a), siteLocal.Contains(a):
		return "a reserved address"
	}
	return ""
}

// Within are the IPv4 addresses that packets to an IPv6 address may end at; none for most. Where in an address of the local-use NAT64 prefix
// that is depends on how long the prefix of the translator is (RFC 6052 §2.2), which nobody tells us: a place that has 0.0.0.0/8 in it is not
// the one.
func Within(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	switch {
	case localNAT64.Contains(a):
		var out []netip.Addr
		for _, at := range [...][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}} {
			end := netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})
			if !thisNetwork.Contains(end) {
				out = append(out, end)
			}
		}
		if out == nil {
			out = append(out, netip.IPv4Unspecified())
		}
		return out
	case nat64.Contains(a), translated.Contains(a), compatible.Contains(a) && !a.IsUnspecified() && !a.IsLoopback():
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:]))}
	case sixToFour.Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	}
	return nil
}
