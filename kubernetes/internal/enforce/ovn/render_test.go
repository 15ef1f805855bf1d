package ovn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

func firewall(t testing.TB, namespace string, in ...enforce.RuleInput) enforce.Firewall {
	t.Helper()
	f, errs := enforce.ParseFirewall(namespace, in)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return f
}

func addrs(in ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range in {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func prefixes(in ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range in {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// TestNames compares with identifiers that OVN-Kubernetes created.
func TestNames(t *testing.T) {
	v4, v6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	tests := []struct{ got, want string }{
		{SetName(must.Pattern("www.example.com"), v4), "a4029995183407368296"},
		{SetName(must.Pattern("www.example.com"), v6), "a4029997382430624718"},
		{SetName(must.Pattern("*.example.com"), v4), "a13581435805011127697"},
		{groupName("ns1"), "a9633447981174624809"},
		{groupName("default"), "a5680351521869907322"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

// TestRenderGolden compares with the rows that OVN-Kubernetes creates for the same firewall.
func TestRenderGolden(t *testing.T) {
	w := Input{
		Firewalls: []enforce.Firewall{firewall(t, "default",
			enforce.RuleInput{Type: "Allow", DNSName: "www.example.com"},
			enforce.RuleInput{Type: "Allow", CIDR: "1.2.3.0/24", Ports: []enforce.PortInput{{Protocol: "UDP", Port: 55}}},
			enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"},
		)},
		Learned: map[enforce.Pattern][]netip.Addr{must.Pattern("www.example.com"): addrs("192.0.2.2", "192.0.2.1",
			"10.244.7.7", "2001:db8::1")},
		ClusterSubnets: prefixes("10.244.0.0/16"),
		V4:             true,
	}
	acl := func(i, priority int, action, match string) ACL {
		return ACL{Name: fmt.Sprintf("EF:default:%d", i), Direction: "to-lport", Priority: priority, Tier: 2, Action: action,
			Match: match, Meter: "acl-logging",
			IDs: map[string]string{
				"k8s.ovn.org/id":               fmt.Sprintf("default-network-controller:EgressFirewall:default:%d", i),
				"k8s.ovn.org/owner-controller": "default-network-controller",
				"k8s.ovn.org/owner-type":       "EgressFirewall",
				"k8s.ovn.org/name":             "default",
				"rule-index":                   fmt.Sprint(i),
			}}
	}
	want := Rows{
		Sets: []AddressSet{{Name: "a4029995183407368296", Addresses: []string{"192.0.2.1", "192.0.2.2"},
			IDs: map[string]string{
				"k8s.ovn.org/id":               "default-network-controller:EgressFirewallDNS:www.example.com.:v4",
				"k8s.ovn.org/owner-controller": "default-network-controller",
				"k8s.ovn.org/owner-type":       "EgressFirewallDNS",
				"k8s.ovn.org/name":             "www.example.com.",
				"ip-family":                    "v4",
			}}},
		Groups: []PortGroup{{Name: "a5680351521869907322",
			ACLs: []string{"default-network-controller:EgressFirewall:default:0",
				"default-network-controller:EgressFirewall:default:1", "default-network-controller:EgressFirewall:default:2"},
			IDs: map[string]string{
				"k8s.ovn.org/id":               "default-network-controller:Namespace:default",
				"k8s.ovn.org/owner-controller": "default-network-controller",
				"k8s.ovn.org/owner-type":       "Namespace",
				"k8s.ovn.org/name":             "default",
			}}},
		ACLs: []ACL{
			acl(0, 10000, "allow", "(ip4.dst == $a4029995183407368296) && inport == @a5680351521869907322"),
			acl(1, 9999, "allow", "(ip4.dst == 1.2.3.0/24) && inport == @a5680351521869907322 && ((udp && ( udp.dst == 55 )))"),
			acl(2, 9998, "drop", "(ip4.dst == 0.0.0.0/0 && ip4.dst != 10.244.0.0/16) && inport == @a5680351521869907322"),
		},
	}
	if diff := cmp.Diff(want, Render(w, Features{Tier: true})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for i := range want.ACLs {
		want.ACLs[i].Tier = 0
	}
	if diff := cmp.Diff(want, Render(w, Features{})); diff != "" {
		t.Errorf("without tiers (-want +got)\n%s", diff)
	}
}

func TestRenderMatch(t *testing.T) {
	ports := func(in ...enforce.PortInput) []enforce.PortInput { return in }
	const inport = " && inport == @a9633447981174624809"
	tests := []struct {
		name    string
		v4, v6  bool
		subnets []string
		rule    enforce.RuleInput
		nodes   []string
		want    string // empty: no row
	}{
		{"name, dual stack", true, true, nil, enforce.RuleInput{DNSName: "www.example.com"}, nil,
			"(ip4.dst == $a4029995183407368296 || ip6.dst == $a4029997382430624718)" + inport},
		{"name, IPv6 only", false, true, nil, enforce.RuleInput{DNSName: "www.example.com"}, nil,
			"(ip6.dst == $a4029997382430624718)" + inport},
		{"two subnets overlap", true, false, []string{"10.0.0.0/16", "10.1.0.0/16", "172.16.0.0/12", "2001:db8:1::/48"},
			enforce.RuleInput{CIDR: "10.0.0.0/8"}, nil,
			"(ip4.dst == 10.0.0.0/8 && ip4.dst != 10.0.0.0/16&&ip4.dst != 10.1.0.0/16)" + inport},
		{"IPv6 subnet", true, true, []string{"10.0.0.0/16", "2001:db8:1::/48"}, enforce.RuleInput{CIDR: "::/0"}, nil,
			"(ip6.dst == ::/0 && ip6.dst != 2001:db8:1::/48)" + inport},
		{"CIDR inside the subnet", true, true, []string{"10.0.0.0/16"}, enforce.RuleInput{CIDR: "10.0.3.0/24"}, nil,
			"(ip4.dst == 10.0.3.0/24 && ip4.dst != 10.0.0.0/16)" + inport},
		{"ports", true, false, nil, enforce.RuleInput{CIDR: "192.0.2.0/24",
			Ports: ports(enforce.PortInput{Protocol: "SCTP", Port: 9}, enforce.PortInput{Protocol: "TCP", Port: 80},
				enforce.PortInput{Protocol: "UDP", Port: 53}, enforce.PortInput{Protocol: "TCP", Port: 443})}, nil,
			"(ip4.dst == 192.0.2.0/24)" + inport +
				" && ((udp && ( udp.dst == 53 )) || (tcp && ( tcp.dst == 80 || tcp.dst == 443 )) || (sctp && ( sctp.dst == 9 )))"},
		{"nodes", true, true, []string{"192.0.2.0/24"}, enforce.RuleInput{HasNodeSelector: true},
			[]string{"2001:db8::9", "192.0.2.9", "192.0.2.10", "192.0.2.9"},
			"(ip4.dst == 192.0.2.10 || ip4.dst == 192.0.2.9 || ip6.dst == 2001:db8::9)" + inport},
		{"no node", true, true, nil, enforce.RuleInput{HasNodeSelector: true}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Type = "Deny"
			fw := firewall(t, "ns1", tt.rule)
			fw.Rules[0].Nodes = addrs(tt.nodes...)
			rows := Render(Input{Firewalls: []enforce.Firewall{fw}, ClusterSubnets: prefixes(tt.subnets...), V4: tt.v4,
				V6: tt.v6}, Features{Stock: true})
			got := ""
			if len(rows.ACLs) > 0 {
				got = rows.ACLs[0].Match
			}
			if got != tt.want {
				t.Errorf("match\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

func TestRenderLoggingAndNames(t *testing.T) {
	ns := strings.Repeat("n", 60)
	w := Input{
		Firewalls: []enforce.Firewall{firewall(t, ns, enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/24"},
			enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"})},
		Logging: map[string]Logging{ns: {Deny: "alert"}},
		V4:      true,
	}
	rows := Render(w, Features{})
	allow, deny := rows.ACLs[0], rows.ACLs[1]
	if allow.Log || allow.Severity != "" || !deny.Log || deny.Severity != "alert" || deny.Meter != "acl-logging" {
		t.Errorf("logging: %+v, %+v", allow, deny)
	}
	if len(allow.Name) != 63 || !strings.HasPrefix(allow.Name, "EF:nnn") {
		t.Errorf("name %q", allow.Name)
	}
}

// TestRenderKept checks that existing connections continue with the priority of their rule, and only for rules that
// allow.
func TestRenderKept(t *testing.T) {
	name := must.Pattern("www.example.com")
	w := Input{
		Firewalls: []enforce.Firewall{firewall(t, "ns1",
			enforce.RuleInput{Type: "Deny", DNSName: "bad.example.com"},
			enforce.RuleInput{Type: "Allow", DNSName: "www.example.com",
				Ports: []enforce.PortInput{{Protocol: "TCP", Port: 443}}})},
		Learned: map[enforce.Pattern][]netip.Addr{name: addrs("192.0.2.1")},
		Kept:    map[enforce.Pattern][]netip.Addr{name: addrs("192.0.2.7")},
		V4:      true, V6: true,
	}
	if rows := Render(w, Features{Tier: true, Stock: true}); len(rows.ACLs) != 2 || len(rows.Sets) != 4 {
		t.Errorf("%d ACLs, %d sets that nobody asked for", len(rows.ACLs), len(rows.Sets))
	}
	rows := Render(w, Features{Tier: true, Keep: true, Stock: true})
	if len(rows.ACLs) != 3 || len(rows.Sets) != 6 {
		t.Fatalf("%d ACLs, %d sets", len(rows.ACLs), len(rows.Sets))
	}
	kept := rows.ACLs[2]
	want := ACL{Name: "EFK:ns1:1", Direction: "to-lport", Priority: 9999, Tier: 2, Action: "allow-related",
		Meter: "acl-logging",
		Match: "(ip4.dst == $" + rows.Sets[3].Name + " || ip6.dst == $" + rows.Sets[5].Name +
			") && inport == @a9633447981174624809 && ((tcp && ( tcp.dst == 443 ))) && ct.est && !ct.new && ct_mark.blocked == 0",
		IDs: map[string]string{"k8s.ovn.org/id": "nameplane:EgressFirewallKept:ns1:1",
			"k8s.ovn.org/owner-controller": "nameplane",
			"k8s.ovn.org/owner-type":       "EgressFirewallKept", "k8s.ovn.org/name": "ns1", "rule-index": "1"}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"192.0.2.7"}, rows.Sets[3].Addresses); diff != "" {
		t.Errorf("kept set (-want +got)\n%s", diff)
	}
}

// TestRenderSplit checks that each match has one set, so that OVN can update it address by address. Rows for a single
// family equal those of OVN-Kubernetes.
func TestRenderSplit(t *testing.T) {
	w := Input{
		Firewalls: []enforce.Firewall{firewall(t, "ns1", enforce.RuleInput{Type: "Allow", DNSName: "www.example.com"},
			enforce.RuleInput{Type: "Deny", DNSName: "bad.example.com"}, enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"})},
		V4: true, V6: true,
	}
	const inport = ") && inport == @a9633447981174624809"
	rows := Render(w, Features{Keep: true})
	var got [][3]string
	for _, a := range rows.ACLs {
		match, rest, _ := strings.Cut(a.Match, inport)
		got = append(got, [3]string{a.IDs["k8s.ovn.org/id"], a.Name, strings.NewReplacer(
			rows.Sets[0].Name, "bad4", rows.Sets[1].Name, "bad6", rows.Sets[2].Name, "www4", rows.Sets[3].Name, "old4",
			rows.Sets[4].Name, "www6", rows.Sets[5].Name, "old6").Replace(match) + rest})
	}
	want := [][3]string{
		{"default-network-controller:EgressFirewall:ns1:0", "EF:ns1:0", "(ip4.dst == $www4"},
		{"nameplane:EgressFirewallKept:ns1:0", "EFK:ns1:0", "(ip4.dst == $old4" + established},
		{"default-network-controller:EgressFirewall:ns1:0:v6", "EF:ns1:0:v6", "(ip6.dst == $www6"},
		{"nameplane:EgressFirewallKept:ns1:0:v6", "EFK:ns1:0:v6", "(ip6.dst == $old6" + established},
		{"default-network-controller:EgressFirewall:ns1:1", "EF:ns1:1", "(ip4.dst == $bad4"},
		{"default-network-controller:EgressFirewall:ns1:1:v6", "EF:ns1:1:v6", "(ip6.dst == $bad6"},
		{"default-network-controller:EgressFirewall:ns1:2", "EF:ns1:2", "(ip4.dst == 0.0.0.0/0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := rows.ACLs[2].IDs; got["ip-family"] != "v6" || got["rule-index"] != "0" ||
		got["k8s.ovn.org/owner-type"] != "EgressFirewall" {
		t.Errorf("ids of the second row: %v", got)
	}
	for _, w := range []Input{{Firewalls: w.Firewalls, V4: true}, {Firewalls: w.Firewalls, V6: true},
		{Firewalls: w.Firewalls}} {
		if diff := cmp.Diff(Render(w, Features{Keep: true, Stock: true}), Render(w, Features{Keep: true})); diff != "" {
			t.Errorf("v4 %v, v6 %v: (-stock +got)\n%s", w.V4, w.V6, diff)
		}
	}
}

// TestGuards checks that firewalls that allow names have guards, above all rules and for the existing families, and
// that others have none.
func TestGuards(t *testing.T) {
	allows := enforce.RuleInput{Type: "Allow", DNSName: "www.example.com"}
	for _, tt := range []struct {
		name   string
		rule   enforce.RuleInput
		f      Features
		v4, v6 bool
		want   []string
	}{
		{"IPv4", allows, Features{Guard: true}, true, false,
			[]string{"ip4.dst[0..30] == 0", "ip4.dst[0] == 1 && ip4.dst[31] == 1"}},
		{"IPv6", allows, Features{Guard: true}, false, true,
			[]string{"ip6.dst[0..126] == 0", "ip6.dst[0] == 1 && ip6.dst[127] == 1"}},
		{"both", allows, Features{Guard: true}, true, true,
			[]string{"ip4.dst[0..30] == 0", "ip4.dst[0] == 1 && ip4.dst[31] == 1", "ip6.dst[0..126] == 0",
				"ip6.dst[0] == 1 && ip6.dst[127] == 1"}},
		{"no guards wanted", allows, Features{}, true, true, nil},
		{"a name that is denied", enforce.RuleInput{Type: "Deny", DNSName: "www.example.com"}, Features{Guard: true}, true,
			true, nil},
		{"no name", enforce.RuleInput{Type: "Allow", CIDR: "192.0.2.0/24"}, Features{Guard: true}, true, true, nil},
	} {
		w := Input{Firewalls: []enforce.Firewall{firewall(t, "ns1", tt.rule,
			enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"})}, V4: tt.v4, V6: tt.v6}
		var got []string
		seen := map[string]bool{}
		for _, a := range Render(w, tt.f).ACLs {
			if seen[a.id()] {
				t.Errorf("%s: two rows are %s", tt.name, a.id())
			}
			seen[a.id()] = true
			if a.IDs[typeKey] != guardType {
				continue
			}
			bits, rest, _ := strings.Cut(strings.TrimPrefix(a.Match, "("), ")")
			got = append(got, bits)
			if !a.ours() || a.Priority <= firstPriority || a.Action != "drop" || rest != " && inport == @"+groupName("ns1")+
				" && ip.ttl == 0" {
				t.Errorf("%s: guard %+v", tt.name, a)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestGuardsLeave checks that no guard remains after a change to OVN-Kubernetes.
func TestGuardsLeave(t *testing.T) {
	w := Input{Firewalls: []enforce.Firewall{firewall(t, "ns1",
		enforce.RuleInput{Type: "Allow", DNSName: "www.example.com"})}, V4: true}
	have := Render(w, Features{ManageGroups: true, Guard: true})
	var guards []string
	for i := range have.ACLs {
		have.ACLs[i].UUID = have.ACLs[i].id()
		if have.ACLs[i].IDs[typeKey] == guardType {
			guards = append(guards, have.ACLs[i].UUID)
		}
	}
	for i := range have.Sets {
		have.Sets[i].UUID = have.Sets[i].Name
	}
	have.Groups[0].UUID = "group"
	f := Features{ManageGroups: true, Stock: true}
	txs, _ := Plan(Render(w, f), have, f)
	var left []string
	for _, tx := range txs {
		for _, op := range tx.Ops {
			if op.Verb == Remove && op.Table == groupTable && op.Column == "acls" {
				left = append(left, op.Values...)
			}
		}
	}
	if diff := cmp.Diff(sorted(guards), sorted(left)); len(guards) != 2 || diff != "" {
		t.Errorf("%d guards; taken out of the group (-want +got):\n%s", len(guards), diff)
	}
}
