package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nameplane/nameplane/internal/dnsname"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// TestExplainNoNamespace checks that a mistyped namespace is not reported as open.
func TestExplainNoNamespace(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	programmed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	forbidden := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object,
		...client.GetOption) error {
		return apierrors.NewForbidden(corev1.Resource("namespaces"), "shpo", nil)
	}}
	for _, tt := range []struct {
		namespace string
		funcs     interceptor.Funcs
		unknown   string
	}{
		{"shop", interceptor.Funcs{}, ""},
		{"shpo", interceptor.Funcs{}, "there is no namespace shpo"},
		{"shpo", forbidden, ""}, // with an older role
	} {
		c := fake.NewClientBuilder().WithScheme(s).WithObjects(programmed).WithInterceptorFuncs(tt.funcs).Build()
		got, err := Explain(t.Context(), c,
			Question{Namespace: tt.namespace, Resolvers: egress.DefaultNamespace, Addr: addr("192.0.2.1")})
		if err != nil || got.Unknown != tt.unknown || (len(got.Answers) == 0) != (tt.unknown != "") {
			t.Errorf("%s: %+v, %v, want %q", tt.namespace, got, err, tt.unknown)
		}
	}
}

// TestExplainService checks that the address of a service gets no decision: no packet has it when rules match.
func TestExplainService(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, networkingv1.AddToScheme, apiv1.AddToScheme,
		v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	deny := ef("ns1", 1, allow("www.example.com"),
		apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}})
	names, open := resolver("www.example.com.", "1", "www.example.com. 10.96.0.10"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open"}}
	names.Namespace, names.ResourceVersion = egress.DefaultNamespace, ""
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16", "fd00:10:96::/112"}}}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(&deny, open, &names, cidr).Build()
	const service = " is a service address, and rules match the address after translation; " +
		"ask about the addresses of the service's endpoints"
	for _, tt := range []struct {
		q                Question
		unknown, warning string
	}{
		{Question{Namespace: "ns1", Addr: addr("10.96.0.10")}, "10.96.0.10" + service, ""},
		{Question{Namespace: "ns1", Addr: addr("fd00:10:96::1")}, "fd00:10:96::1" + service, ""},
		{Question{Namespace: "ns1", Addr: addr("10.97.0.1")}, "", ""},
		{Question{Namespace: "open", Addr: addr("10.96.0.10")}, "", ""},
		// an answer may contain it
		{Question{Namespace: "ns1", Name: dnsname.MustParse("www.example.com")}, "", "10.96.0.10" + service},
	} {
		tt.q.Resolvers = egress.DefaultNamespace
		got, err := Explain(t.Context(), c, tt.q)
		if warning := strings.Join(got.Warnings, "; "); err != nil || got.Unknown != tt.unknown || warning != tt.warning ||
			(len(got.Answers) == 0) != (tt.unknown != "") {
			t.Errorf("%+v: %+v, %v", tt.q, got, err)
		}
	}
}

// TestExplainRefused warns of an address in a status that agents do not open.
func TestExplainRefused(t *testing.T) {
	o := objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, allow("www.example.com"))},
		nodes: []corev1.Node{newNode("n", nil, "198.51.100.1")},
		resolvers: []v1alpha1.DNSNameResolver{resolver("www.example.com.", "1",
			"www.example.com. 198.51.100.1 198.51.100.2")}}
	for a, want := range map[string]string{"198.51.100.2": "", "203.0.113.1": "",
		"198.51.100.1": "198.51.100.1: an address of a node, which agents do not open unless their --permit lists it"} {
		got := explain(t.Context(), o, Question{Namespace: "ns1", Addr: addr(a)}, t0)
		if warnings := strings.Join(got.Warnings, "; "); warnings != want {
			t.Errorf("%s: warnings %q, want %q", a, warnings, want)
		}
	}
}

// TestExplainBadRules checks that errors in rules are reported once, and that the zones in which the other rules are in
// force are listed.
func TestExplainBadRules(t *testing.T) {
	selector := apiv1.EgressFirewallRule{Type: "Allow",
		To: apiv1.EgressFirewallDestination{NodeSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bogus"}}}}}
	one := []string{`spec.egress[0].to.nodeSelector: "Bogus" is not a valid label selector operator`}
	two := append(one, `spec.egress[1].to.dnsName: "a_b.example.com": `+
		`label "a_b" has a character other than letters, digits and hyphens`)
	for _, tt := range []struct {
		rules []apiv1.EgressFirewallRule
		bad   []string
	}{
		{[]apiv1.EgressFirewallRule{selector}, one},
		{[]apiv1.EgressFirewallRule{selector, allow("a_b.example.com")}, two},
	} {
		f := ef("ns1", 1, tt.rules...)
		const no = ": EgressFirewall Rules not correctly applied: "
		f.Status.Messages = []string{"global" + no + strings.Join(tt.bad, "; "), "z2" + no + strings.Join(tt.bad, "; ") +
			"; no port group", "cluster-manager" + no + "7 more rules are wrong"}
		var want []string
		for _, bad := range tt.bad {
			f.Status.Messages = append(f.Status.Messages, "cluster-manager"+no+bad)
			want = append(want, "not in force: "+bad)
		}
		want = append(want, f.Status.Messages[1])
		got := explain(t.Context(), objects{firewalls: []apiv1.EgressFirewall{f}, nodes: []corev1.Node{newNode("n", nil)}},
			Question{Namespace: "ns1", Addr: addr("192.0.2.1")}, t0)
		if diff := cmp.Diff(want, got.Warnings); diff != "" {
			t.Errorf("warnings (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff([]string{"global"}, got.InForce); diff != "" {
			t.Errorf("in force (-want +got)\n%s", diff)
		}
	}
}

// TestExplainFailing checks the warning about an address that stays although its name no longer resolves.
func TestExplainFailing(t *testing.T) {
	names, at := resolver("www.example.com.", "1", "www.example.com. 192.0.2.1"), metav1.NewTime(t0)
	names.Status.ResolvedNames[0].Conditions = []metav1.Condition{{Type: "Degraded", Status: metav1.ConditionTrue,
		Reason: "NXDOMAIN", LastTransitionTime: at}}
	names.Status.ResolvedNames[0].ResolvedAddresses[0].LastLookupTime = &at
	o := objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, allow("www.example.com"))},
		resolvers: []v1alpha1.DNSNameResolver{names}}
	got := explain(t.Context(), o, Question{Namespace: "ns1", Addr: addr("192.0.2.1")}, t0.Add(time.Second))
	want := []string{"192.0.2.1: lookups of www.example.com. fail: NXDOMAIN since 2026-01-01T00:00:00Z; it is removed " +
		"after some more failures unless a lookup succeeds"}
	if diff := cmp.Diff(want, got.Warnings); diff != "" || got.Answers[0].Learned[0].Failing == "" {
		t.Errorf("%+v; warnings (-want +got)\n%s", got.Answers, diff)
	}
	o.resolvers[0].Status.ResolvedNames[0].Conditions[0].Status = metav1.ConditionFalse
	if got := explain(t.Context(), o, Question{Namespace: "ns1", Addr: addr("192.0.2.1")}, t0); len(got.Warnings) > 0 ||
		got.Answers[0].Learned[0].Failing != "" {
		t.Errorf("when it resolves: %+v", got)
	}
}

// TestExplainUnlearned checks the text about a name without addresses.
func TestExplainUnlearned(t *testing.T) {
	deny := apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}}
	wild := resolver("*.example.com.", "1", "a.example.com.", "*.example.com. 192.0.2.1 192.0.2.2")
	wild.Namespace = "names"
	wild.Status.ResolvedNames[0].Conditions = []metav1.Condition{{Type: "Degraded", Status: metav1.ConditionTrue,
		Reason: "SERVFAIL", LastTransitionTime: metav1.NewTime(t0)}}
	o := objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, deny, allow("*.example.com"), deny)},
		resolvers: []v1alpha1.DNSNameResolver{wild}}
	got := explain(t.Context(), o, Question{Namespace: "ns1", Name: dnsname.MustParse("a.example.com")}, t0)
	want := "no address of a.example.com. is known; addresses that are not refused are learned when a pod looks up " +
		"the name. Then these rules match: rule 1: Allow dnsName *.example.com." +
		". An earlier rule matches all addresses: rule 0: Deny cidrSelector 0.0.0.0/0. Lookups of it fail: SERVFAIL since " +
		"2026-01-01T00:00:00Z. " +
		"DNSNameResolver names/dns-1 has 2 addresses of names that did not fit: ask about an address"
	if diff := cmp.Diff(want, got.Unknown); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestExplainDeep checks that deep names are recognised by the manager's objects.
func TestExplainDeep(t *testing.T) {
	o := objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, allow("**.example.com"))}}
	q := Question{Namespace: "ns1", Addr: addr("192.0.2.1")}
	if got := explain(t.Context(), o, q, t0); len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], "not enabled") {
		t.Errorf("without an object: %v", got.Warnings)
	}
	o.resolvers = []v1alpha1.DNSNameResolver{resolver("**.example.com.", "1", "a.b.example.com. 192.0.2.1")}
	if got := explain(t.Context(), o, q, t0); len(got.Warnings) != 0 || got.Answers[0].Name != "**.example.com." {
		t.Errorf("with one: %+v", got)
	}
}
