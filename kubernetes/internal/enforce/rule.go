package enforce

import (
	"fmt"
	"net/netip"
)

// Action is what a rule does to packets.
type Action uint8

const (
	Allow Action = iota + 1
	Deny
)

var actions = map[string]Action{"Allow": Allow, "Deny": Deny}

func (a Action) String() string { return [...]string{"", "Allow", "Deny"}[a] }

// Kind is what the destination of a rule is given by.
type Kind uint8

const (
	ByCIDR  Kind = iota + 1
	ByName       // a Pattern
	ByNodes      // the addresses of selected nodes
)

// Protocol is the number of a protocol above IP.
type Protocol uint8

const (
	AnyProtocol Protocol = 0
	TCP         Protocol = 6
	UDP         Protocol = 17
	SCTP        Protocol = 132
)

var protocols = map[string]Protocol{"TCP": TCP, "UDP": UDP, "SCTP": SCTP}

func (p Protocol) String() string {
	for name, q := range protocols {
		if p == q {
			return name
		}
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// Port is one port a rule is limited to.
type Port struct {
	Protocol Protocol
	Port     uint16
}

// Rule is one entry of a firewall. Rules without ports are about all protocols.
type Rule struct {
	Index   int // in spec.egress, from 0; lower ones decide first
	Action  Action
	Kind    Kind
	CIDR    netip.Prefix // ByCIDR; no bits behind its length
	Pattern Pattern      // ByName
	Nodes   []netip.Addr // ByNodes: what the selector selects, filled in by the caller
	Ports   []Port
}

// MaxRules is how many rules a firewall may have: the priorities that are set aside for them.
const MaxRules = 8000

// Firewall is the rules of one namespace, those that are well-formed.
type Firewall struct {
	Namespace string
	Rules     []Rule // by Index
}

// Patterns are the names in the rules of f, each once.
func (f Firewall) Patterns() []Pattern {
	var out []Pattern
	seen := map[Pattern]bool{} // of thousands
	for _, r := range f.Rules {
		if r.Kind == ByName && !seen[r.Pattern] {
			seen[r.Pattern] = true
			out = append(out, r.Pattern)
		}
	}
	return out
}

// RuleInput is a rule as its owner wrote it.
type RuleInput struct {
	Type            string
	CIDR            string
	DNSName         string
	HasNodeSelector bool
	SelectorError   error // what is wrong with the node selector
	Ports           []PortInput
	Options         PatternOptions
}

// PortInput is a port as its owner wrote it.
type PortInput struct {
	Protocol string
	Port     int32
}

// ParseFirewall reads the rules of a namespace. A bad rule does not take the others with it: it is left out, and told. Too many
// rules are refused whole, because rules that are missing at the end would change what the others mean: then there is no
// Firewall, and one error.
func ParseFirewall(namespace string, in []RuleInput) (Firewall, []error) {
	f := Firewall{Namespace: namespace}
	if len(in) > MaxRules {
		const text = "spec.egress: %d rules, of which at most %d can be ordered; nothing of this change is applied"
		return Firewall{}, []error{fmt.Errorf(text, len(in), MaxRules)}
	}
	var errs []error
	for i, r := range in {
		rule, err := parseRule(i, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f.Rules = append(f.Rules, rule)
	}
	return f, errs
}

// parseRule reads one rule. It is stricter than the schema of the custom resource, whose patterns let "AllowX" and "TCPX"
// pass. Errors are for the owner of the rule, and begin with the field.
func parseRule(index int, in RuleInput) (Rule, error) {
	r := Rule{Index: index}
	fail := func(field, format string, args ...any) (Rule, error) {
		return Rule{}, fmt.Errorf("spec.egress[%d].%s: %s", index, field, fmt.Sprintf(format, args...))
	}
	var ok bool
	if r.Action, ok = actions[in.Type]; !ok {
		return fail("type", "%q is neither Allow nor Deny", in.Type)
	}
	if n := in.destinations(); n != 1 {
		return fail("to", "give exactly one of cidrSelector, dnsName and nodeSelector; here are %d", n)
	}
	var err error
	switch {
	case in.CIDR != "":
		r.Kind = ByCIDR
		if r.CIDR, err = parseCIDR(in.CIDR); err != nil {
			return fail("to.cidrSelector", "%v", err)
		}
	case in.DNSName != "":
		r.Kind = ByName
		if r.Pattern, err = ParsePattern(in.DNSName, in.Options); err != nil {
			return fail("to.dnsName", "%v", err)
		}
	case in.SelectorError != nil:
		return fail("to.nodeSelector", "%v", in.SelectorError)
	default:
		r.Kind = ByNodes
	}
	for i, p := range in.Ports {
		proto, ok := protocols[p.Protocol]
		if !ok {
			return fail(fmt.Sprintf("ports[%d].protocol", i), "%q is none of TCP, UDP and SCTP", p.Protocol)
		}
		if p.Port < 1 || p.Port > 65535 {
			return fail(fmt.Sprintf("ports[%d].port", i), "%d is not in 1..65535", p.Port)
		}
		r.Ports = append(r.Ports, Port{proto, uint16(p.Port)})
	}
	return r, nil
}

func (in RuleInput) destinations() int {
	n := 0
	for _, given := range []bool{in.CIDR != "", in.DNSName != "", in.HasNodeSelector} {
		if given {
			n++
		}
	}
	return n
}

// parseCIDR takes bits behind the length as a slip of the pen: OVN would refuse the whole rule for them, in its own log.
func parseCIDR(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return netip.Prefix{}, fmt.Errorf("%q has no length; for this one address write %s", s, netip.PrefixFrom(addr, addr.BitLen()))
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a range of addresses such as 192.0.2.0/24 or 2001:db8::/32", s)
	}
	if p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is IPv4 inside IPv6, which no packet carries; write it as IPv4", s)
	}
	return p.Masked(), nil
}

// String is the rule for a person.
func (r Rule) String() string {
	out := fmt.Sprintf("rule %d: %s ", r.Index, r.Action)
	switch r.Kind {
	case ByCIDR:
		out += "cidrSelector " + r.CIDR.String()
	case ByName:
		out += "dnsName " + r.Pattern.String()
	case ByNodes:
		out += fmt.Sprintf("nodeSelector (%d addresses)", len(r.Nodes))
	}
	for i, p := range r.Ports {
		sep := ", "
		if i == 0 {
			sep = " ports "
		}
		out += fmt.Sprintf("%s%s/%d", sep, p.Protocol, p.Port)
	}
	return out
}
