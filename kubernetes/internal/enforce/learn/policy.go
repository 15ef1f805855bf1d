package learn

import (
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Policy decides which addresses in answers must not open a firewall. Otherwise the DNS server of an allowed name could
// let pods reach the node, the cluster or the cloud metadata service by returning their addresses.
type Policy struct {
	Cluster *Networks         // the cluster's own networks
	Refuse  []netip.Prefix    // further networks to refuse
	Permit  []netip.Prefix    // exceptions that an administrator configured
	Special specialaddr.Table // special addresses, with the NAT64 prefixes of the operator
}

// refused is the set of classes of special addresses that are never learned. It contains shared addresses (RFC 6598)
// because OVN-Kubernetes uses them between its routers. It does not contain private addresses (RFC 1918, RFC 4193),
// because many egress rules are about names in a company's own network. The addresses of a cluster's pods, services and
// nodes are mostly private too. Policy.Cluster lists those. Addresses for documentation and benchmarking are not
// routed.
const refused = specialaddr.Unspecified | specialaddr.Loopback | specialaddr.LinkLocal | specialaddr.Shared |
	specialaddr.Metadata | specialaddr.Multicast | specialaddr.Reserved

// Refused returns the reason for which addr is refused, or an empty string. An IPv6 address that embeds an IPv4 address
// is checked as both. IPv4-mapped addresses are always refused: a host makes an IPv4 connection to them, which no AAAA
// record may allow.
func (p Policy) Refused(addr netip.Addr) string {
	if addr.Is4In6() {
		return specialaddr.Mapped.String()
	}
	if p.Permits(addr) {
		return ""
	}
	if c := p.Special.Classes(addr) & refused; c != 0 {
		return c.String()
	}
	if why := p.reserved(addr); why != "" {
		return why
	}
	for _, end := range p.Special.Ends(addr) {
		if why := p.reserved(end); why != "" {
			return why
		}
	}
	return ""
}

// reserved returns the reason if the administrator refuses addr or if it is the cluster's own address. Otherwise it
// returns an empty string.
func (p Policy) reserved(addr netip.Addr) string {
	if slices.ContainsFunc(p.Refuse, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return "in a range that is refused"
	}
	if whose := p.Cluster.Owner(addr); whose != "" {
		return "an address of " + whose
	}
	return ""
}

// Permits reports whether the administrator permits the network of addr, or the networks of all IPv4 addresses that it
// may embed.
func (p Policy) Permits(addr netip.Addr) bool {
	if len(p.Permit) == 0 {
		return false
	}
	permits := func(a netip.Addr) bool {
		return slices.ContainsFunc(p.Permit, func(n netip.Prefix) bool { return n.Contains(a) })
	}
	ends := p.Special.Ends(addr)
	return permits(addr) || len(ends) > 0 && !slices.ContainsFunc(ends, func(a netip.Addr) bool { return !permits(a) })
}
