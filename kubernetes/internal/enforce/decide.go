package enforce

import (
	"net/netip"
	"slices"
)

// Packet is the subject of a decision. AnyProtocol and port 0 mean that the protocol or port is not known yet.
type Packet struct {
	To       netip.Addr
	Protocol Protocol
	Port     uint16
}

// Known is the information that rules are compared with in addition to the packet.
type Known struct {
	Learned        func(Pattern) []netip.Addr // returns the address set of a name
	ClusterSubnets []netip.Prefix             // pod subnets; only rules by nodes apply to them
}

// Decision is the rule that decides, and its action.
type Decision struct {
	Action Action
	Rule   *Rule // nil if no rule matches the packet, which is then allowed
	// Depends are earlier rules that would decide for some protocol or port. It is empty if the packet has both.
	Depends []Rule
}

// Decide returns the first rule of f that matches p, like the rows of package ovn.
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

// ports reports for which of the packets that p stands for the ports of the rule match.
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
