package agent

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/internal/dnsname"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"

	corev1 "k8s.io/api/core/v1"
)

func TestExplainReport(t *testing.T) {
	at := metav1.NewTime(t0)
	names := resolver("*.example.com.", "5", "a.example.com. 192.0.2.1",
		"b.example.com. 192.0.2.1 192.0.2.2 2001:db8::1 ::ffff:192.0.2.3")
	names.Namespace = egress.DefaultNamespace
	for i := range names.Status.ResolvedNames {
		for j := range names.Status.ResolvedNames[i].ResolvedAddresses {
			names.Status.ResolvedNames[i].ResolvedAddresses[j].LastLookupTime = &at
			names.Status.ResolvedNames[i].ResolvedAddresses[j].TTLSeconds = int32(30 * (i + 1))
		}
	}
	web := allow("*.example.com")
	web.Ports = []apiv1.EgressFirewallPort{{Protocol: "TCP", Port: 443}}
	deny := apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}}
	o := objects{
		firewalls: []apiv1.EgressFirewall{ef("ns1", 1, web, allow("com"), deny)},
		resolvers: []v1alpha1.DNSNameResolver{names},
		nodes:     []corev1.Node{newNode("n", map[string]string{node.SubnetsAnnotation: `{"default":"10.128.0.0/24"}`})},
	}
	by := func(i int) *int { return &i }
	learnedAt := []LearnedName{{Name: "a.example.com.", At: t0, Until: t0.Add(30 * time.Second)},
		{Name: "b.example.com.", At: t0, Until: t0.Add(time.Minute)}}
	warned := []string{`not in force: spec.egress[1].to.dnsName: "com": a name needs at least two labels, ` +
		`as in example.com; whole top-level domains and single words are refused`}
	const webText, denyText = "rule 0: Allow dnsName *.example.com. ports TCP/443", "rule 2: Deny cidrSelector 0.0.0.0/0"
	tests := []struct {
		name string
		q    Question
		want Report
	}{
		{"address, right port", Question{Namespace: "ns1", Addr: addr("192.0.2.1"), Protocol: enforce.TCP, Port: 443},
			Report{Namespace: "ns1", Destination: "192.0.2.1 port 443 TCP", Warnings: warned,
				Answers: []Answer{{Address: "192.0.2.1", Action: "Allow", Rule: by(0), Text: webText,
					Name: "*.example.com.", Object: "ovn-kubernetes/dns-5", Learned: learnedAt}}}},
		{"address, no port", Question{Namespace: "ns1", Addr: addr("192.0.2.1")},
			Report{Namespace: "ns1", Destination: "192.0.2.1", Warnings: warned,
				Answers: []Answer{{Address: "192.0.2.1", Action: "Deny", Rule: by(2), Text: denyText,
					Depends: []string{webText}}}}},
		{"another address", Question{Namespace: "ns1", Addr: addr("203.0.113.1"), Protocol: enforce.TCP, Port: 443},
			Report{Namespace: "ns1", Destination: "203.0.113.1 port 443 TCP", Warnings: warned,
				Answers: []Answer{{Address: "203.0.113.1", Action: "Deny", Rule: by(2), Text: denyText}}}},
		{"name", Question{Namespace: "ns1", Name: dnsname.MustParse("a.example.com"), Protocol: enforce.TCP, Port: 443},
			Report{Namespace: "ns1", Destination: "a.example.com. port 443 TCP", Warnings: warned,
				Answers: []Answer{{Address: "192.0.2.1", Action: "Allow", Rule: by(0), Text: webText,
					Name: "*.example.com.", Object: "ovn-kubernetes/dns-5", Learned: learnedAt}}}},
		{"name that nobody asked for", Question{Namespace: "ns1", Name: dnsname.MustParse("z.example.com")},
			Report{Namespace: "ns1", Destination: "z.example.com.", Warnings: warned,
				Unknown: "no address of z.example.com. is known; addresses that are not refused are learned when a pod " +
					"looks up the name. Then these rules match: " + webText}},
		{"name of no rule", Question{Namespace: "ns1", Name: dnsname.MustParse("example.net")},
			Report{Namespace: "ns1", Destination: "example.net.", Warnings: warned,
				Unknown: "no rule names example.net., and its addresses are not known here; ask about an address"}},
		{"pod", Question{Namespace: "ns1", Addr: addr("10.128.0.7")},
			Report{Namespace: "ns1", Destination: "10.128.0.7", Warnings: warned,
				Answers: []Answer{{Address: "10.128.0.7", Action: "Allow",
					Text: "it is a pod address, to which rules by address and name do not apply"}}}},
		{"no firewall, by name", Question{Namespace: "ns9", Name: dnsname.MustParse("example.net")},
			Report{Namespace: "ns9", Destination: "example.net.",
				Answers: []Answer{{Action: "Allow", Text: "the namespace has no EgressFirewall"}}}},
		{"a family that the cluster has not",
			Question{Namespace: "ns1", Addr: addr("2001:db8::1"), Protocol: enforce.TCP, Port: 443},
			Report{Namespace: "ns1", Destination: "2001:db8::1 port 443 TCP", Warnings: warned,
				Answers: []Answer{{Address: "2001:db8::1", Action: "Allow", Text: "no rule matches it"}}}},
		{"no firewall", Question{Namespace: "ns9", Addr: addr("192.0.2.1")},
			Report{Namespace: "ns9", Destination: "192.0.2.1",
				Answers: []Answer{{Address: "192.0.2.1", Action: "Allow", Text: "the namespace has no EgressFirewall"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.q.Namespace == "ns1" {
				tt.want.Silent = []string{node.DefaultZone}
			}
			got := explain(t.Context(), o, tt.q, t0.Add(time.Second))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	late := explain(t.Context(), o, Question{Namespace: "ns1", Addr: addr("192.0.2.1"), Protocol: enforce.TCP, Port: 443},
		t0.Add(45*time.Second))
	if len(late.Warnings) != 2 || !strings.Contains(late.Warnings[1],
		"a.example.com., ended at 2026-01-01T00:00:30Z") {
		t.Errorf("after one TTL: %v", late.Warnings)
	}
}

// TestExplainZones checks the lists of zones in which the rules are in force, and of zones without a report or with an
// error.
func TestExplainZones(t *testing.T) {
	f := ef("ns1", 1, allow("www.example.com"))
	f.Status.Messages = []string{"z2: EgressFirewall Rules applied", "z1: EgressFirewall Rules applied",
		"z3: EgressFirewall Rules not correctly applied: no",
		"cluster-manager: EgressFirewall Rules not correctly applied: spec.egress[1]: no"}
	other := ef("ns2", 1, allow("www.example.com"))
	other.Status.Messages = []string{"z4: EgressFirewall Rules applied"}
	o := objects{firewalls: []apiv1.EgressFirewall{other, f}, nodes: []corev1.Node{newNode("n", nil)},
		resolvers: []v1alpha1.DNSNameResolver{resolver("www.example.com.", "1")}}
	for _, zone := range []string{"z1", "z3", "z4", "z4"} {
		o.nodes = append(o.nodes, newNode("of-"+zone, map[string]string{node.ZoneAnnotation: zone}))
	}
	got := explain(t.Context(), o, Question{Namespace: "ns1", Addr: addr("192.0.2.1")}, t0)
	got.Answers = nil
	want := Report{Namespace: "ns1", Destination: "192.0.2.1", InForce: []string{"z1", "z2"},
		Silent: []string{"global", "z4"}, Warnings: f.Status.Messages[2:]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := explain(t.Context(), o, Question{Namespace: "ns9", Addr: addr("192.0.2.1")}, t0); got.InForce != nil ||
		got.Silent != nil {
		t.Errorf("without a firewall: %+v", got)
	}
}

// TestExplainAsks has an address that only an agent knows, by a lease.
func TestExplainAsks(t *testing.T) {
	deny := apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}}
	o := objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, allow("www.example.com"), deny)},
		resolvers: []v1alpha1.DNSNameResolver{resolver("www.example.com.", "1")}}
	q := Question{Namespace: "ns1", Addr: addr("192.0.2.1"),
		Ask: func(_ context.Context, p enforce.Pattern, a netip.Addr) []NodeState {
			return []NodeState{{Agent: "x", Programmed: p == www && a == addr("192.0.2.1")}, {Agent: "y"},
				{Agent: "z", Error: "no route"}}
		}}
	got := explain(t.Context(), o, q, t0)
	if len(got.Answers) != 1 || got.Answers[0].Action != "Allow" || len(got.Answers[0].Nodes) != 3 {
		t.Errorf("%+v", got)
	}
	want := []string{"192.0.2.1: not programmed by the agent y", "192.0.2.1: the agent z could not be asked: no route"}
	if diff := cmp.Diff(want, got.Warnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}

// TestExplainUnconfirmed has an address that an agent has written. It lost the database before or after the switch had
// it.
func TestExplainUnconfirmed(t *testing.T) {
	deny := apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}}
	o := objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, allow("www.example.com"), deny)},
		resolvers: []v1alpha1.DNSNameResolver{resolver("www.example.com.", "1")}}
	q := Question{Namespace: "ns1", Addr: addr("192.0.2.1"),
		Ask: func(context.Context, enforce.Pattern, netip.Addr) []NodeState {
			return []NodeState{{Agent: "x", Age: time.Second}}
		}}
	got := explain(t.Context(), o, q, t0)
	want := []string{"192.0.2.1: written by the agent x, and not confirmed by its switch now"}
	if diff := cmp.Diff(want, got.Warnings); diff != "" || got.Answers[0].Action != "Allow" {
		t.Errorf("%+v; warnings (-want +got)\n%s", got.Answers, diff)
	}
}

// TestExplainUnasked checks the warning if an agent that may have the address by a lease could not be queried, and a
// later rule decides.
func TestExplainUnasked(t *testing.T) {
	deny := apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}}
	o := objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, allow("www.example.com"), allow("api.example.com"), deny)},
		resolvers: []v1alpha1.DNSNameResolver{resolver("www.example.com.", "1"), resolver("api.example.com.", "2")}}
	q := Question{Namespace: "ns1", Addr: addr("192.0.2.1"),
		Ask: func(context.Context, enforce.Pattern, netip.Addr) []NodeState {
			return []NodeState{{Agent: "z", Error: "no route"}, {Agent: "x"}, {Agent: "y", Error: "too late"}}
		}}
	got := explain(t.Context(), o, q, t0)
	want := []string{"192.0.2.1: the agent y could not be asked, and may have it under a name: too late",
		"192.0.2.1: the agent z could not be asked, and may have it under a name: no route"}
	if diff := cmp.Diff(want, got.Warnings); diff != "" || got.Answers[0].Action != "Deny" {
		t.Errorf("%+v; warnings (-want +got)\n%s", got.Answers, diff)
	}
}

// TestExplainAsksAtMost checks the warning if there were more names than queries: one of them might have decided.
func TestExplainAsksAtMost(t *testing.T) {
	rules := make([]apiv1.EgressFirewallRule, maxAsked+1)
	for i := range rules {
		rules[i] = allow(fmt.Sprintf("n%d.example.com", i))
	}
	asked := 0
	q := Question{Namespace: "ns1", Resolvers: "names", Addr: addr("192.0.2.1"),
		ClusterSubnets: []netip.Prefix{prefix("10.128.0.0/14")},
		Ask: func(context.Context, enforce.Pattern, netip.Addr) []NodeState {
			asked++
			return nil
		}}
	got := explain(t.Context(), objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, rules...)}}, q, t0)
	want := []string{"the namespace names has no DNSNameResolver of n0.example.com., and of 32 more names of rules: " +
		"does the manager run, and is it the right namespace?",
		"192.0.2.1: agents were asked about only 32 names, and may have it under another one"}
	if diff := cmp.Diff(want, got.Warnings); diff != "" || asked != maxAsked {
		t.Errorf("asked %d times; warnings (-want +got)\n%s", asked, diff)
	}
}
