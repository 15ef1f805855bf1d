package gather

import (
	"net"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
)

// HasRoute reports whether this machine has a route to an address. Nothing is sent: connecting a UDP socket makes the
// kernel look up the route, and fails if there is none.
func HasRoute(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, port53)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Names of the address families in facts.
const (
	ipv4 = "IPv4"
	ipv6 = "IPv6"
)

// excludeUnroutable leaves out an address family if there is no route to any root server of that family: this is not
// a fault of the servers. A family that the options name is still tried, and so are both if neither has a route.
func (r *run) excludeUnroutable() {
	if r.Route == nil || r.opts.IPv4Only || r.opts.IPv6Only {
		return
	}
	four, six := r.rootRoute(true), r.rootRoute(false)
	if four == explain.No {
		r.facts.Vantage.NoRoute = append(r.facts.Vantage.NoRoute, ipv4)
	}
	if six == explain.No {
		r.facts.Vantage.NoRoute = append(r.facts.Vantage.NoRoute, ipv6)
	}
	r.opts.IPv4Only = six == explain.No && four != explain.No
	r.opts.IPv6Only = four == explain.No && six != explain.No
}

// rootRoute reports whether there is a route to a root server of a family; Unasked if there are no such servers.
func (r *run) rootRoute(v4 bool) explain.Fact {
	out := explain.Unasked
	for _, h := range r.Hints {
		for _, a := range h.Addrs() {
			switch {
			case a.Unmap().Is4() != v4:
			case r.Route(a):
				return explain.Yes
			default:
				out = explain.No
			}
		}
	}
	return out
}

// describeVantage fills in which address families work from this machine.
func (r *run) describeVantage(recs []record) {
	v := &r.facts.Vantage
	v.IPv4, v.IPv6 = reached(recs, true), reached(recs, false)
	if v.IPv4 == explain.Unasked && slices.Contains(v.NoRoute, ipv4) {
		v.IPv4 = explain.No
	}
	if v.IPv6 == explain.Unasked && slices.Contains(v.NoRoute, ipv6) {
		v.IPv6 = explain.No
	}
}
