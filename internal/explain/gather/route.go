package gather

import (
	"net"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
)

// HasRoute reports whether this machine has a way to an address. Nothing is sent: the system looks for the way when a UDP socket is
// connected, and tells if there is none.
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

// Families, as they are called in facts.
const (
	ipv4 = "IPv4"
	ipv6 = "IPv6"
)

// routes leaves out a family that the machine has no way for: to none of the root servers. That is no fault of anybody who is asked.
// A family that was wished for is tried all the same, and so are both if there is a way for neither.
func (r *run) routes() {
	if r.Route == nil || r.opts.IPv4Only || r.opts.IPv6Only {
		return
	}
	four, six := r.route(true), r.route(false)
	if four == explain.No {
		r.facts.Vantage.NoRoute = append(r.facts.Vantage.NoRoute, ipv4)
	}
	if six == explain.No {
		r.facts.Vantage.NoRoute = append(r.facts.Vantage.NoRoute, ipv6)
	}
	r.opts.IPv4Only = six == explain.No && four != explain.No
	r.opts.IPv6Only = four == explain.No && six != explain.No
}

// route is whether there is a way to a root server of a family, if there are any.
func (r *run) route(v4 bool) explain.Fact {
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

// from is what is known of the place that is asked from.
func (r *run) from(recs []record) {
	v := &r.facts.Vantage
	v.IPv4, v.IPv6 = reached(recs, true), reached(recs, false)
	if v.IPv4 == explain.Unasked && slices.Contains(v.NoRoute, ipv4) {
		v.IPv4 = explain.No
	}
	if v.IPv6 == explain.Unasked && slices.Contains(v.NoRoute, ipv6) {
		v.IPv6 = explain.No
	}
}
