package manager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// firewall returns a firewall with an Allow rule for each name.
func firewall(namespace string, names ...string) *apiv1.EgressFirewall {
	ef := &apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: egress.Name}}
	for _, name := range names {
		ef.Spec.Egress = append(ef.Spec.Egress,
			apiv1.EgressFirewallRule{Type: "Allow", To: apiv1.EgressFirewallDestination{DNSName: name}})
	}
	return ef
}

func TestNamesOf(t *testing.T) {
	tests := []struct {
		name string
		ef   *apiv1.EgressFirewall
		deep bool
		want []string
	}{
		{"none", firewall("a"), false, []string{}},
		{"spellings of one name", firewall("a", "WWW.Example.com", "www.example.com.", "www.EXAMPLE.com"), false,
			[]string{"www.example.com."}},
		{"sorted", firewall("a", "www.example.com", "*.example.com"), false, []string{"*.example.com.", "www.example.com."}},
		{"one wrong rule leaves the others in force",
			firewall("a", "com", "www.example.com", "-a.example.com", "*.com", "localhost", "a.*.com"), false,
			[]string{"www.example.com."}},
		{"deep, off", firewall("a", "**.example.com", "www.example.com"), false, []string{"www.example.com."}},
		{"deep, on", firewall("a", "**.example.com", "www.example.com"), true,
			[]string{"**.example.com.", "www.example.com."}},
		{"other rules", &apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Name: egress.Name},
			Spec: apiv1.EgressFirewallSpec{Egress: []apiv1.EgressFirewallRule{
				{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}},
				{Type: "Deny", To: apiv1.EgressFirewallDestination{DNSName: "www.example.com"}},
				{Type: "AllowX", To: apiv1.EgressFirewallDestination{DNSName: "bad.example.com"}},
			}}}, false, []string{"www.example.com."}},
		{"of another name", &apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Name: "mine"},
			Spec: firewall("a", "www.example.com").Spec}, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, namesOf(tt.ef, tt.deep)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestTooManyRules checks that 8000 rules are accepted. Of 8001 rules the first 8000 keep their names, and the status
// reports the error.
func TestTooManyRules(t *testing.T) {
	var names []string
	for i := range 8001 {
		names = append(names, fmt.Sprintf("n%d.example.com", i))
	}
	if errs := egress.Read(firewall("a", names[:8000]...), false).Errs; len(errs) != 0 {
		t.Errorf("8000 rules: %v", errs)
	}
	ef := firewall("a", names...)
	errs := egress.Read(ef, false).Errs
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "8001 rules") {
		t.Errorf("8001 rules: %v", errs)
	}
	if got := namesOf(ef, false); len(got) != 8000 {
		t.Errorf("8001 rules have %d names", len(got))
	}
}

func TestMessages(t *testing.T) {
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Near"}}}
	ef := &apiv1.EgressFirewall{Spec: apiv1.EgressFirewallSpec{Egress: []apiv1.EgressFirewallRule{
		{Type: "Allow", To: apiv1.EgressFirewallDestination{NodeSelector: selector}},
		{Type: "AllowX", To: apiv1.EgressFirewallDestination{DNSName: "www.example.com"}},
		{Type: "Allow", To: apiv1.EgressFirewallDestination{DNSName: "www.example.com"}},
		{Type: "Allow", To: apiv1.EgressFirewallDestination{DNSName: "-a.example.com"}},
		{Type: "Allow", To: apiv1.EgressFirewallDestination{CIDRSelector: "192.0.2.0/24"},
			Ports: []apiv1.EgressFirewallPort{{Protocol: "TCPX", Port: 80}}},
		{Type: "Deny", To: apiv1.EgressFirewallDestination{NodeSelector: &metav1.LabelSelector{}}},
	}}}
	got := messages(egress.Read(ef, false).Errs)
	want := []string{"spec.egress[0].to.nodeSelector: ", "spec.egress[1].type: ", "spec.egress[3].to.dnsName: ",
		"spec.egress[4].ports[0].protocol: "}
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if p := "cluster-manager: EgressFirewall Rules not correctly applied: " + want[i]; !strings.HasPrefix(got[i], p) {
			t.Errorf("message %d is %q, want %q", i, got[i], p)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("-%d.example.com", i))
	}
	got := messages(egress.Read(firewall("a", names...), false).Errs)
	if len(got) != maxMessages+1 || !strings.HasSuffix(got[maxMessages], ": 80 more rules are wrong") {
		t.Errorf("%d messages, the last is %q", len(got), got[len(got)-1])
	}
}
