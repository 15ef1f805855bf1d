package enforce

import (
	"fmt"
	"net/netip"
)

// Action is the effect of a rule on packets.
type Action uint8

const (
	Allow Action = iota + 1
	Deny
)

var actions = map[string]Action{"Allow": Allow, "Deny": Deny}

func (a Action) String() string { return [...]string{"", "Allow", "Deny"}[a] }

// Kind is the kind of a rule's destination.
type Kind uint8

const (
	ByCIDR  Kind = iota + 1
	ByName       // a Pattern
	ByNodes      // the addresses of selected nodes
)

// Protocol is an IP protocol number.
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

// Port is a port to which a rule is limited.
type Port struct {
	Protocol Protocol
	Port     uint16
}

// Rule is one entry of a firewall. A rule without ports applies to all protocols.
type Rule struct {
	Index   int // in spec.egress, from 0; lower ones decide first
	Action  Action
	Kind    Kind
	CIDR    netip.Prefix // ByCIDR; masked
	Pattern Pattern      // ByName
	Nodes   []netip.Addr // ByNodes: the selected addresses, set by the caller
	Ports   []Port
}

// MaxRules is the maximum number of rules of a firewall: the number of priorities that are reserved for them.
const MaxRules = 8000

// Firewall is the list of valid rules of one namespace.
type Firewall struct {
	Namespace string
	Rules     []Rule // ordered by Index
}

// Patterns returns the names in the rules of f, without duplicates.
func (f Firewall) Patterns() []Pattern {
	var out []Pattern
	seen := map[Pattern]bool{} // there may be thousands
	for _, r := range f.Rules {
		if r.Kind == ByName && !seen[r.Pattern] {
			seen[r.Pattern] = true
			out = append(out, r.Pattern)
		}
	}
	return out
}

// RuleInput is a rule as its author wrote it.
type RuleInput struct {
	Type            string
	CIDR            string
	DNSName         string
	HasNodeSelector bool
	SelectorError   error // error in the node selector
	Ports           []PortInput
	Options         PatternOptions
}

// PortInput is a port as its author wrote it.
type PortInput struct {
	Protocol string
	Port     int32
}

// ParseFirewall parses the rules of a namespace. An invalid rule does not affect the others: it is skipped, and there
// is an error for it. Too many rules are rejected as a whole, because rules that are missing at the end would change
// the meaning of the others. Then there is no Firewall, and one error.
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

// parseRule parses one rule. It is stricter than the schema of the custom resource, whose patterns accept "AllowX" and
// "TCPX". Errors are for the author of the rule, and begin with the field.
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

// parseCIDR masks the bits after the prefix length, which are a typing error: OVN would reject the whole rule, in its
// own log.
func parseCIDR(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return netip.Prefix{}, fmt.Errorf("%q has no length; for this one address write %s", s,
			netip.PrefixFrom(addr, addr.BitLen()))
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

// String returns a description of the rule.
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
