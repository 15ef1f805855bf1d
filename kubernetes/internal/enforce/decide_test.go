package enforce_test

import (
	"net/netip"
	"testing"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

func TestDecide(t *testing.T) {
	in := []enforce.RuleInput{
		{Type: "Deny", DNSName: "bad.example.com"},
		{Type: "Allow", DNSName: "*.example.com",
			Ports: []enforce.PortInput{{Protocol: "TCP", Port: 443}, {Protocol: "UDP", Port: 53}}},
		{Type: "Allow", CIDR: "192.0.2.0/28"},
		{Type: "Allow", HasNodeSelector: true},
		{Type: "Deny", CIDR: "0.0.0.0/0"},
	}
	f, errs := enforce.ParseFirewall("ns1", in)
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	f.Rules[3].Nodes = []netip.Addr{netip.MustParseAddr("198.51.100.9"), netip.MustParseAddr("10.244.0.2")}
	learned := map[enforce.Pattern][]netip.Addr{
		must.Pattern("bad.example.com"): {netip.MustParseAddr("203.0.113.66"), netip.MustParseAddr("2001:db8::66")},
		must.Pattern("*.example.com"): {netip.MustParseAddr("203.0.113.66"), netip.MustParseAddr("203.0.113.1"),
			netip.MustParseAddr("10.244.1.1")},
	}
	known := enforce.Known{
		Learned:        func(p enforce.Pattern) []netip.Addr { return learned[p] },
		ClusterSubnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
	}
	tests := []struct {
		name    string
		to      string
		proto   enforce.Protocol
		port    uint16
		want    enforce.Action
		rule    int // -1 means none
		depends int
	}{
		{"order decides between two names of one address", "203.0.113.66", enforce.TCP, 443, enforce.Deny, 0, 0},
		{"family of its own", "2001:db8::66", enforce.TCP, 443, enforce.Deny, 0, 0},
		{"name and port", "203.0.113.1", enforce.TCP, 443, enforce.Allow, 1, 0},
		{"another protocol's port", "203.0.113.1", enforce.UDP, 443, enforce.Deny, 4, 0},
		{"another port falls to the next rule", "203.0.113.1", enforce.TCP, 80, enforce.Deny, 4, 0},
		{"no port given", "203.0.113.1", enforce.TCP, 0, enforce.Deny, 4, 1},
		{"no protocol given, port of the rule", "203.0.113.1", enforce.AnyProtocol, 53, enforce.Deny, 4, 1},
		{"no protocol given, another port", "203.0.113.1", enforce.AnyProtocol, 54, enforce.Deny, 4, 0},
		{"protocol without ports", "203.0.113.1", 1, 0, enforce.Deny, 4, 0},
		{"cidr", "192.0.2.1", enforce.TCP, 80, enforce.Allow, 2, 0},
		{"node", "198.51.100.9", enforce.TCP, 80, enforce.Allow, 3, 0},
		{"node inside the cluster's subnet", "10.244.0.2", enforce.TCP, 80, enforce.Allow, 3, 0},
		{"cluster subnets are no business of CIDRs", "10.244.9.9", enforce.TCP, 80, enforce.Allow, -1, 0},
		{"nor of names", "10.244.1.1", enforce.TCP, 443, enforce.Allow, -1, 0},
		{"no rule", "2001:db8::1", enforce.TCP, 80, enforce.Allow, -1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := enforce.Decide(f, known, enforce.Packet{To: netip.MustParseAddr(tt.to), Protocol: tt.proto, Port: tt.port})
			rule := -1
			if d.Rule != nil {
				rule = d.Rule.Index
			}
			if d.Action != tt.want || rule != tt.rule || len(d.Depends) != tt.depends {
				t.Errorf("%v by rule %d, depending on %d; want %v by rule %d, depending on %d", d.Action, rule, len(d.Depends),
					tt.want, tt.rule, tt.depends)
			}
		})
	}
}
