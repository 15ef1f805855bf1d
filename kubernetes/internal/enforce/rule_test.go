package enforce_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

var comparers = cmp.Options{
	cmp.Comparer(func(a, b enforce.Pattern) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
}

// parseRule parses a rule that comes after some others.
func parseRule(index int, in enforce.RuleInput) (enforce.Rule, error) {
	others := slices.Repeat([]enforce.RuleInput{{Type: "Deny", CIDR: "192.0.2.0/24"}}, index)
	f, errs := enforce.ParseFirewall("ns1", append(others, in))
	return f.Rules[len(f.Rules)-1], errors.Join(errs...)
}

func TestParseRule(t *testing.T) {
	prefix := netip.MustParsePrefix
	tests := []struct {
		name string
		in   enforce.RuleInput
		want enforce.Rule
	}{
		{"cidr", enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/24"},
			enforce.Rule{Action: enforce.Allow, Kind: enforce.ByCIDR, CIDR: prefix("192.0.2.0/24")}},
		{"everything", enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"},
			enforce.Rule{Action: enforce.Deny, Kind: enforce.ByCIDR, CIDR: prefix("0.0.0.0/0")}},
		{"bits behind the length", enforce.RuleInput{Type: "Deny", CIDR: "2001:db8::1/32"},
			enforce.Rule{Action: enforce.Deny, Kind: enforce.ByCIDR, CIDR: prefix("2001:db8::/32")}},
		{"name", enforce.RuleInput{Type: "Allow", DNSName: "*.Example.com"},
			enforce.Rule{Action: enforce.Allow, Kind: enforce.ByName, Pattern: must.Pattern("*.example.com.")}},
		{"deep name", enforce.RuleInput{Type: "Allow", DNSName: "**.example.com",
			Options: enforce.PatternOptions{Deep: true}},
			enforce.Rule{Action: enforce.Allow, Kind: enforce.ByName, Pattern: must.Pattern("**.example.com.")}},
		{"nodes", enforce.RuleInput{Type: "Deny", HasNodeSelector: true},
			enforce.Rule{Action: enforce.Deny, Kind: enforce.ByNodes}},
		{"ports", enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.1/32",
			Ports: []enforce.PortInput{{"TCP", 1}, {"UDP", 65535}, {"SCTP", 7}}},
			enforce.Rule{Action: enforce.Allow, Kind: enforce.ByCIDR, CIDR: prefix("192.0.2.1/32"),
				Ports: []enforce.Port{{enforce.TCP, 1}, {enforce.UDP, 65535}, {enforce.SCTP, 7}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseRule(3, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Index = 3
			if diff := cmp.Diff(tt.want, got, comparers); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseRuleRefuses(t *testing.T) {
	cidr := func(ports ...enforce.PortInput) enforce.RuleInput {
		return enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/24", Ports: ports}
	}
	tests := []struct {
		in   enforce.RuleInput
		want string
	}{
		{enforce.RuleInput{Type: "AllowX", CIDR: "192.0.2.0/24"}, `spec.egress[7].type: "AllowX" is neither Allow nor Deny`},
		{enforce.RuleInput{Type: "XDeny", CIDR: "192.0.2.0/24"}, `spec.egress[7].type: "XDeny"`},
		{enforce.RuleInput{CIDR: "192.0.2.0/24"}, `spec.egress[7].type: ""`},
		{enforce.RuleInput{Type: "Allow"}, `spec.egress[7].to: give exactly one`},
		{enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/24", DNSName: "example.com"}, `here are 2`},
		{enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/24", HasNodeSelector: true}, `here are 2`},
		{enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.1"},
			`spec.egress[7].to.cidrSelector: "192.0.2.1" has no length; for this one address write 192.0.2.1/32`},
		{enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/33"}, `to.cidrSelector: "192.0.2.0/33" is not a range`},
		{enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/024"}, `is not a range`},
		{enforce.RuleInput{Type: "Allow", CIDR: "fe80::1%eth0/64"}, `is not a range`},
		{enforce.RuleInput{Type: "Allow", CIDR: "::ffff:192.0.2.0/120"}, `write it as IPv4`},
		{enforce.RuleInput{Type: "Allow", DNSName: "-a.example.com"},
			`spec.egress[7].to.dnsName: "-a.example.com": label "-a" begins`},
		{enforce.RuleInput{Type: "Allow", DNSName: "**.example.com"}, `not enabled`},
		{enforce.RuleInput{Type: "Allow", HasNodeSelector: true, SelectorError: errors.New("no")},
			`spec.egress[7].to.nodeSelector: no`},
		{cidr(enforce.PortInput{Protocol: "TCP", Port: 80}, enforce.PortInput{Protocol: "TCPX", Port: 80}),
			`spec.egress[7].ports[1].protocol: "TCPX" is none of TCP, UDP and SCTP`},
		{cidr(enforce.PortInput{Protocol: "tcp", Port: 80}), `"tcp"`},
		{cidr(enforce.PortInput{Protocol: "TCP", Port: 0}), `spec.egress[7].ports[0].port: 0 is not in 1..65535`},
		{cidr(enforce.PortInput{Protocol: "TCP", Port: 65536}), `65536`},
	}
	for _, tt := range tests {
		got, err := parseRule(7, tt.in)
		if err == nil || !strings.HasPrefix(err.Error(), "spec.egress[7].") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("rule %+v is %v, %v; want an error that says %q", tt.in, got, err, tt.want)
		}
	}
}

// TestParseFirewallKeepsGoodRules checks that one invalid rule does not empty the list of names.
func TestParseFirewallKeepsGoodRules(t *testing.T) {
	f, errs := enforce.ParseFirewall("ns1", []enforce.RuleInput{
		{Type: "Allow", DNSName: "www.example.com"},
		{Type: "Allow", DNSName: "com"},
		{Type: "Allow", DNSName: "WWW.example.com."},
		{Type: "Deny", CIDR: "0.0.0.0/0"},
	})
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "spec.egress[1].to.dnsName: ") {
		t.Errorf("errors: %v", errs)
	}
	var indices []int
	for _, r := range f.Rules {
		indices = append(indices, r.Index)
	}
	if diff := cmp.Diff([]int{0, 2, 3}, indices); diff != "" {
		t.Errorf("indices (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]enforce.Pattern{must.Pattern("www.example.com.")}, f.Patterns(), comparers); diff != "" {
		t.Errorf("patterns (-want +got)\n%s", diff)
	}
}

// TestParseFirewallBound checks that 8000 rules are accepted and 8001 are not.
func TestParseFirewallBound(t *testing.T) {
	in := make([]enforce.RuleInput, enforce.MaxRules+1)
	for i := range in {
		in[i] = enforce.RuleInput{Type: "Deny", CIDR: "192.0.2.0/24"}
	}
	if f, errs := enforce.ParseFirewall("ns1", in[:8000]); len(f.Rules) != 8000 || len(errs) != 0 {
		t.Errorf("8000 rules: %d taken, %v", len(f.Rules), errs)
	}
	f, errs := enforce.ParseFirewall("ns1", in)
	if len(f.Rules) != 0 || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "spec.egress: 8001 rules, ") {
		t.Errorf("8001 rules: %d taken, %v", len(f.Rules), errs)
	}
}

func TestRuleString(t *testing.T) {
	f, errs := enforce.ParseFirewall("ns1", []enforce.RuleInput{
		{Type: "Allow", DNSName: "*.example.com",
			Ports: []enforce.PortInput{{Protocol: "TCP", Port: 443}, {Protocol: "UDP", Port: 53}}},
		{Type: "Deny", CIDR: "192.0.2.0/24"},
		{Type: "Deny", HasNodeSelector: true},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []string{"rule 0: Allow dnsName *.example.com. ports TCP/443, UDP/53",
		"rule 1: Deny cidrSelector 192.0.2.0/24", "rule 2: Deny nodeSelector (0 addresses)"}
	for i, r := range f.Rules {
		if r.String() != want[i] {
			t.Errorf("%q, want %q", r, want[i])
		}
	}
}
