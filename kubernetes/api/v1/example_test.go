package v1_test

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/nameplane/nameplane/kubernetes/api/v1"
)

// A firewall that allows one name.
func ExampleEgressFirewall() {
	f := v1.EgressFirewall{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "shop"},
		Spec: v1.EgressFirewallSpec{Egress: []v1.EgressFirewallRule{
			{Type: v1.EgressFirewallRuleAllow, To: v1.EgressFirewallDestination{DNSName: "api.example.com"}},
		}},
	}
	text, err := json.Marshal(f.Spec)
	fmt.Println(string(text), err)
	// Output: {"egress":[{"type":"Allow","to":{"dnsName":"api.example.com"}}]} <nil>
}
