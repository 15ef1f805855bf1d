package learn

import (
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Policy says which addresses of answers must not open a firewall. Whoever answers for an allowed name could otherwise
// let pods reach the node, the cluster or the cloud's metadata by giving their addresses.
type Policy struct {
	Cluster *Networks         // the cluster's own
	Refuse  []netip.Prefix    // beyond those
	Permit  []netip.Prefix    // exceptions, which an administrator names
	Special specialaddr.Table // with the NAT64 prefixes of the operator
}

// refused are the classes of special addresses that open nothing. Shared addresses (RFC 6598) are among them because
// OVN-Kubernetes uses them between its routers. Private addresses (RFC 1918, RFC 4193) are not: names of a company's own
// network are what many egress rules are about. A cluster's addresses of pods, services and nodes are mostly private too;
// which they are, the cluster says. Addresses for documentation and benchmarking lead nowhere.
const refused = specialaddr.Unspecified | specialaddr.Loopback | specialaddr.LinkLocal | specialaddr.Shared |
	specialaddr.Metadata | specialaddr.Multicast | specialaddr.Reserved

// Refused returns why addr is refused; empty when it is not. An IPv6 address that leads to one of IPv4 is judged as both.
// IPv4-mapped addresses are always refused: a host makes an IPv4 connection to them, which no AAAA record may allow.
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

// reserved returns why addr is refused by its administrator or because it is the cluster's own; empty when it is not.
func (p Policy) reserved(addr netip.Addr) string {
	if slices.ContainsFunc(p.Refuse, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return "in a range that is refused"
	}
	if whose := p.Cluster.Whose(addr); whose != "" {
		return "an address of " + whose
	}
	return ""
}

// Permits reports whether an administrator permits the network of addr, or those of all IPv4 addresses that it may lead to.
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
