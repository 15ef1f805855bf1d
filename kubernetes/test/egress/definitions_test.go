package egress

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/crds"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// testDefinitions has objects that the API server itself rejects, with the messages of the stock definitions.
func testDefinitions(t *testing.T, m *managed) {
	text, err := os.ReadFile("../../../deploy/kubernetes/egress/crds.yaml")
	if err != nil || !bytes.Equal(text, crds.YAML()) {
		t.Errorf("deploy has other definitions than the program (%v): make generate", err)
	}
	named := func(name string) *v1alpha1.DNSNameResolver {
		return &v1alpha1.DNSNameResolver{
			ObjectMeta: metav1.ObjectMeta{Namespace: ovnNamespace, GenerateName: "t-"},
			Spec:       v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(name)}}
	}
	good := named("www.example.com.")
	if err := m.admin.Create(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	defer m.remove(t, good)
	status := func(name, ip string) error {
		r := good.DeepCopy()
		r.Status.ResolvedNames = []v1alpha1.DNSNameResolverResolvedName{{DNSName: v1alpha1.DNSName(name),
			ResolvedAddresses: []v1alpha1.DNSNameResolverResolvedAddress{{IP: ip, TTLSeconds: 5,
				LastLookupTime: &metav1.Time{Time: time.Now()}}}}}
		if err := m.admin.Get(t.Context(), client.ObjectKeyFromObject(good), good); err != nil {
			return err
		}
		r.ResourceVersion = good.ResourceVersion
		return m.admin.Status().Update(t.Context(), r)
	}
	other := good.DeepCopy()
	other.Spec.Name = "other.example.com."
	firewall := func(name string, rules ...apiv1.EgressFirewallRule) error {
		return m.admin.Create(t.Context(),
			&apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Namespace: ovnNamespace, Name: name},
				Spec: apiv1.EgressFirewallSpec{Egress: rules}}, client.DryRunAll)
	}
	rule := func(typ, cidr, name string) apiv1.EgressFirewallRule {
		return apiv1.EgressFirewallRule{Type: apiv1.EgressFirewallRuleType(typ),
			To: apiv1.EgressFirewallDestination{CIDRSelector: cidr, DNSName: name}}
	}
	tests := []struct {
		name string
		err  error
		want []string // empty if accepted
	}{
		{"top-level domain", m.admin.Create(t.Context(), named("com.")),
			[]string{"spec.name in body should match '" + `^(\*\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){2,}$`}},
		{"upper case", m.admin.Create(t.Context(), named("WWW.example.com.")), []string{"spec.name in body should match"}},
		{"no dot", m.admin.Create(t.Context(), named("www.example.com")), []string{"spec.name in body should match"}},
		{"underscore in a rule's name", m.admin.Create(t.Context(), named("a_b.example.com.")),
			[]string{"spec.name in body should match"}},
		{"too long", m.admin.Create(t.Context(), named(strings.Repeat("a.", 128))), []string{"254"}},
		{"another name", m.admin.Update(t.Context(), other), []string{"spec.name is immutable"}},
		{"no address", status("www.example.com.", "nowhere"),
			[]string{"must validate at least one schema (anyOf)", "must be of type ipv4"}},
		{"IPv4", status("www.example.com.", "192.0.2.1"), nil},
		{"IPv6", status("www.example.com.", "2001:db8::1"), nil},
		{"underscore in a status", status("a_b.example.com.", "192.0.2.1"), nil},
		{"bad name in a status", status("A.example.com.", "192.0.2.1"),
			[]string{"status.resolvedNames[0].dnsName: Invalid value", "in body should match"}},
		{"firewall", firewall("default", rule("Allow", "", "*.example.com")), nil},
		{"firewall of another name", firewall("mine", rule("Allow", "", "*.example.com")),
			[]string{"metadata.name in body should match '^default$'"}},
		{"two destinations", firewall("default", rule("Allow", "192.0.2.0/24", "*.example.com")),
			[]string{"spec.egress[0].to: Too many: 2: must have at most 1 item"}},
		{"no destination", firewall("default", rule("Allow", "", "")), []string{"should have at least 1 properties"}},
		{"neither", firewall("default", rule("Reject", "", "*.example.com")),
			[]string{"type in body should match '^Allow|Deny$'"}},
		{"sloppy", firewall("default", rule("AllowX", "", "*.example.com")), nil},
		{"two levels, without the extension", firewall("default", rule("Allow", "", "**.example.com")),
			[]string{"dnsName in body should match"}},
		{"U-label", firewall("default", rule("Allow", "", "bücher.example")), []string{"dnsName in body should match"}},
	}
	for _, tt := range tests {
		if (tt.err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %q", tt.name, tt.err, tt.want)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(tt.err.Error(), w) {
				t.Errorf("%s: %v, want %q", tt.name, tt.err, w)
			}
		}
	}
}
