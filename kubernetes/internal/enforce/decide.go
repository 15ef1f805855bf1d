package enforce

import (
	"net/netip"
	"slices"
)

// Packet is what a decision is about. Protocol AnyProtocol or Port 0 ask in general, before one is known.
type Packet struct {
	To       netip.Addr
	Protocol Protocol
	Port     uint16
}

// Known is what rules are compared with, besides the packet.
type Known struct {
	Learned        func(Pattern) []netip.Addr // the address set of a name
	ClusterSubnets []netip.Prefix             // of pods; only rules by nodes are about them
}

// Decision is which rule decides.
type Decision struct {
	Action Action
	Rule   *Rule // nil when no rule is about the packet, which allows it
	// Depends are rules that come before Rule and would decide for some protocol or port. There are some only when the
	// packet has none.
	Depends []Rule
}

// Decide finds the first rule of f that is about p, as the rows of package ovn do.
func Decide(f Firewall, k Known, p Packet) Decision {
	var d Decision
	for i := range f.Rules {
		r := &f.Rules[i]
		if !r.isTo(p.To, k) {
			continue
		}
		switch r.ports(p) {
		case always:
			d.Action, d.Rule = r.Action, r
			return d
		case sometimes:
			d.Depends = append(d.Depends, *r)
		}
	}
	d.Action = Allow
	return d
}

func (r *Rule) isTo(to netip.Addr, k Known) bool {
	if r.Kind == ByNodes {
		return slices.Contains(r.Nodes, to)
	}
	if slices.ContainsFunc(k.ClusterSubnets, func(s netip.Prefix) bool { return s.Contains(to) }) {
		return false
	}
	if r.Kind == ByCIDR {
		return r.CIDR.Contains(to)
	}
	return k.Learned != nil && slices.Contains(k.Learned(r.Pattern), to)
}

const (
	never = iota
	sometimes
	always
)

// ports tells for which of the packets that p stands for the rule's ports are right.
func (r *Rule) ports(p Packet) int {
	if len(r.Ports) == 0 {
		return always
	}
	best := never
	for _, port := range r.Ports {
		if p.Protocol != AnyProtocol && p.Protocol != port.Protocol || p.Port != 0 && p.Port != port.Port {
			continue
		}
		if p.Protocol != AnyProtocol && p.Port != 0 {
			return always
		}
		best = sometimes
	}
	return best
}
