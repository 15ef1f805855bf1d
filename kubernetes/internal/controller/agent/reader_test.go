package agent

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func ef(namespace string, generation int64, rules ...apiv1.EgressFirewallRule) apiv1.EgressFirewall {
	return apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default",
		UID: types.UID(namespace), Generation: generation},
		Spec: apiv1.EgressFirewallSpec{Egress: rules}}
}

func allow(name string) apiv1.EgressFirewallRule {
	return apiv1.EgressFirewallRule{Type: "Allow", To: apiv1.EgressFirewallDestination{DNSName: name}}
}

func newNode(name string, annotations map[string]string, ips ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name},
		Annotations: annotations}}
	for _, ip := range ips {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return n
}

func resolver(name, version string, entries ...string) v1alpha1.DNSNameResolver {
	r := v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Name: "dns-" + version, UID: types.UID(name),
		ResourceVersion: version}}
	r.Spec.Name = v1alpha1.DNSName(name)
	for _, e := range entries {
		n, ips, _ := strings.Cut(e, " ")
		entry := v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(n)}
		for ip := range strings.FieldsSeq(ips) {
			entry.ResolvedAddresses = append(entry.ResolvedAddresses, v1alpha1.DNSNameResolverResolvedAddress{IP: ip})
		}
		r.Status.ResolvedNames = append(r.Status.ResolvedNames, entry)
	}
	return r
}

func TestRead(t *testing.T) {
	nodes := apiv1.EgressFirewallRule{Type: "Deny",
		To: apiv1.EgressFirewallDestination{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "b"}}}}
	broken := apiv1.EgressFirewallRule{Type: "Deny",
		To: apiv1.EgressFirewallDestination{NodeSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "No"}}}}}
	r := newReader(Options{ClusterSubnets: []netip.Prefix{prefix("10.128.0.0/14")}})
	o := objects{
		firewalls: []apiv1.EgressFirewall{ef("ns1", 1, allow("www.example.com"), allow("com"), nodes, broken),
			ef("ns2", 1, allow("*.example.com"))},
		resolvers: []v1alpha1.DNSNameResolver{
			resolver("www.example.com.", "5", "www.example.com. 192.0.2.1 2001:db8::1 ::ffff:192.0.2.9",
				"other.example.com. 192.0.2.8"),
			resolver("*.example.com.", "6", "*.example.com. 192.0.2.2", "a_b.example.com. 192.0.2.3",
				"c.d.example.com. 192.0.2.7"),
		},
		nodes: []corev1.Node{newNode("a", nil, "198.51.100.1"), newNode("b", nil, "198.51.100.2", "2001:db8::2"),
			newNode("b", map[string]string{node.HostsAnnotation: `["198.51.100.3/24","10.0.0.3/8"]`}, "198.51.100.4")},
		namespaces: []metav1.PartialObjectMetadata{
			{ObjectMeta: metav1.ObjectMeta{Name: "ns1",
				Annotations: map[string]string{logAnnotation: `{"allow":"info","deny":"loud"}`}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "ns2", Annotations: map[string]string{logAnnotation: `{`}}}},
	}
	got := r.read(o)
	if !got.input.V4 || got.input.V6 {
		t.Error("families are those of the cluster's subnets")
	}
	if diff := cmp.Diff(learned{www: {addr("192.0.2.1"), addr("2001:db8::1")},
		wild: {addr("192.0.2.2"), addr("192.0.2.3")}}, got.status, same); diff != "" {
		t.Errorf("status (-want +got)\n%s", diff)
	}
	if len(got.errs["ns1"]) != 2 || len(got.errs["ns2"]) != 0 || len(got.input.Firewalls[0].Rules) != 2 {
		t.Errorf("errors %v, rules %+v", got.errs, got.input.Firewalls[0].Rules)
	}
	want := []netip.Addr{addr("198.51.100.2"), addr("2001:db8::2"), addr("198.51.100.3"), addr("10.0.0.3")}
	if diff := cmp.Diff(want, got.input.Firewalls[0].Rules[1].Nodes, same); diff != "" {
		t.Errorf("nodes (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]ovn.Logging{"ns1": {Allow: "info"}}, got.input.Logging); diff != "" {
		t.Errorf("logging (-want +got)\n%s", diff)
	}
	// Changed nodes and generations are seen, although other results are cached.
	o.nodes = o.nodes[:1]
	o.firewalls[1] = ef("ns2", 2, allow("www.example.com"))
	o.resolvers[0] = resolver("www.example.com.", "7", "www.example.com. 192.0.2.5")
	got = r.read(o)
	if len(got.input.Firewalls[0].Rules[1].Nodes) != 0 || got.used[wild] || !got.used[www] {
		t.Errorf("after a change: %+v", got.input.Firewalls)
	}
	if diff := cmp.Diff([]netip.Addr{addr("192.0.2.5")}, got.status[www], same); diff != "" {
		t.Errorf("status after a change (-want +got)\n%s", diff)
	}
}

// TestReadNodes checks that values of a node that are not addresses are ignored: they would enter an OVN expression.
func TestReadNodes(t *testing.T) {
	tests := []struct {
		name string
		node corev1.Node
		want []netip.Addr
	}{
		{"a zone that closes the bracket", newNode("a", nil, "fe80::1%eth0) || (ip4", "198.51.100.1"),
			[]netip.Addr{addr("198.51.100.1")}},
		{"a link of its own", newNode("a", nil, "fe80::1%eth0"), nil},
		{"IPv4 inside IPv6", newNode("a", map[string]string{node.HostsAnnotation: `["::ffff:198.51.100.1/120"]`},
			"198.51.100.9"), []netip.Addr{addr("198.51.100.1")}},
		{"IPv4 inside IPv6, by the kubelet", newNode("a", nil, "::ffff:198.51.100.1"), []netip.Addr{addr("198.51.100.1")}},
		{"nothing readable", newNode("a", map[string]string{node.HostsAnnotation: `["x) || (ip4"]`}, "198.51.100.1",
			"1 || 1"), nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, hostAddrs(&tt.node), same); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestMatters checks that writes of other zones and kubelets cause no pass.
func TestMatters(t *testing.T) {
	a := &agent{opts: Options{Zone: "z1"}}
	said := func(messages ...string) *apiv1.EgressFirewall {
		f := ef("ns1", 1)
		f.Status.Messages = messages
		return &f
	}
	rules := ef("ns1", 2)
	space := func(logging, other string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{logAnnotation: logging, "other": other}}}
	}
	nodes := func(annotation, value, ip string) *corev1.Node {
		n := newNode("a", map[string]string{annotation: value}, ip)
		return &n
	}
	named := func(version string) *v1alpha1.DNSNameResolver {
		r := resolver("www.example.com.", version)
		return &r
	}
	const ip = "198.51.100.1"
	tests := []struct {
		name     string
		old, now any
		want     bool
	}{
		{"another zone speaks", said("z1: a"), said("z1: a", "z2: b"), false},
		{"our word is gone", said("z1: a", "z2: b"), said("z2: b"), true},
		{"our word is another", said("z1: a"), said("z1: b"), true},
		{"other rules", said("z1: a"), &rules, true},
		{"heartbeat", nodes("heartbeat", "1", ip), nodes("heartbeat", "2", ip), false},
		{"node address", nodes("heartbeat", "1", ip), nodes("heartbeat", "1", "198.51.100.2"), true},
		{"host addresses", nodes(node.HostsAnnotation, `["198.51.100.1/24"]`, ip),
			nodes(node.HostsAnnotation, `["198.51.100.2/24"]`, ip), true},
		{"pods of a node", nodes(node.SubnetsAnnotation, `{"default":"10.128.0.0/24"}`, ip),
			nodes(node.SubnetsAnnotation, `{"default":"10.128.1.0/24"}`, ip), true},
		{"zone", nodes(node.ZoneAnnotation, "z1", ip), nodes(node.ZoneAnnotation, "z2", ip), true},
		{"logging", space(`{}`, ""), space(`{"deny":"info"}`, ""), true},
		{"another annotation", space(`{}`, "1"), space(`{}`, "2"), false},
		{"addresses of a name", named("1"), named("2"), true},
	}
	for _, tt := range tests {
		if got := a.matters(tt.old, tt.now); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	labelled := newNode("a", nil)
	labelled.Labels = map[string]string{"name": "b"}
	if first := newNode("a", nil); !a.matters(&first, &labelled) {
		t.Error("labels decide which nodes a rule selects")
	}
}

// TestReadFreezes checks that a firewall that is too large stays unchanged, while its names stay up to date.
func TestReadFreezes(t *testing.T) {
	rules := make([]apiv1.EgressFirewallRule, enforce.MaxRules+1)
	for i := range rules {
		rules[i] = allow("www.example.com")
	}
	got := newReader(Options{}).read(objects{firewalls: []apiv1.EgressFirewall{ef("ns1", 1, rules...)}})
	if len(got.input.Firewalls) != 0 || len(got.input.Frozen) != 1 || len(got.input.Names) != 1 || !got.used[www] ||
		len(got.errs["ns1"]) != 1 {
		t.Errorf("frozen %v, names %v, errors %v", got.input.Frozen, got.input.Names, got.errs)
	}
}

func TestPodPrefixes(t *testing.T) {
	nodes := []corev1.Node{
		newNode("a", map[string]string{node.SubnetsAnnotation: `{"default":["10.128.1.0/24","fd00:10:128:1::/64"]}`,
			node.ZoneAnnotation: "a"}),
		newNode("b", map[string]string{node.SubnetsAnnotation: `{"default":"10.128.2.0/24"}`, node.ZoneAnnotation: "b"}),
		newNode("c", nil), newNode("d", map[string]string{node.ZoneAnnotation: "global"}),
	}
	nodes[2].Spec.PodCIDRs = []string{"10.128.3.0/24"}
	nodes[3].Spec.PodCIDRs = []string{"10.128.4.0/24"}
	tests := []struct {
		zone string
		want []netip.Prefix
	}{
		{"a", []netip.Prefix{prefix("10.128.1.0/24"), prefix("fd00:10:128:1::/64")}},
		{"b", []netip.Prefix{prefix("10.128.2.0/24")}},
		{"global", []netip.Prefix{prefix("10.128.3.0/24"), prefix("10.128.4.0/24")}},
		{"other", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, podPrefixes(nodes, func(n *corev1.Node) bool { return inZone(n, tt.zone) }),
			cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.zone, diff)
		}
	}
}

func TestSoleNode(t *testing.T) {
	newNode := func(name, zone, chassis string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{node.ZoneAnnotation: zone, node.ChassisAnnotation: chassis}}}
	}
	for name, tt := range map[string]struct {
		zone  string
		nodes []corev1.Node
		want  ovn.Node
	}{
		"one of its own zone": {"a", []corev1.Node{newNode("a", "a", "c1"), newNode("b", "b", "c2")},
			ovn.Node{Name: "a", Chassis: "c1"}},
		"chassis is not known": {"a", []corev1.Node{newNode("a", "a", "")}, ovn.Node{Name: "a"}},
		"two":                  {"a", []corev1.Node{newNode("a", "a", ""), newNode("b", "a", "")}, ovn.Node{}},
		"three": {"a", []corev1.Node{newNode("a", "a", ""), newNode("b", "a", ""), newNode("c", "a", "")},
			ovn.Node{}},
		"none":                  {"a", []corev1.Node{newNode("b", "b", "")}, ovn.Node{}},
		"cluster of one":        {node.DefaultZone, []corev1.Node{newNode("a", "", "")}, ovn.Node{Name: "a"}},
		"cluster without zones": {node.DefaultZone, []corev1.Node{newNode("a", "", ""), newNode("b", "", "")}, ovn.Node{}},
	} {
		if got := soleNode(tt.nodes, tt.zone); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestZoneWithoutNodes checks that an agent whose zone has no nodes logs a warning once, and again only after it had
// nodes.
func TestZoneWithoutNodes(t *testing.T) {
	var log bytes.Buffer
	a := &agent{opts: Options{Zone: "z1", Log: slog.New(slog.NewTextHandler(&log, nil))}, changed: make(chan struct{})}
	programmed, elsewhere := []corev1.Node{newNode("n", map[string]string{node.ZoneAnnotation: "z1"})},
		[]corev1.Node{newNode("n", nil)}
	for i, tt := range []struct {
		nodes []corev1.Node
		said  int
	}{{nil, 0}, {elsewhere, 1}, {elsewhere, 1}, {programmed, 1}, {elsewhere, 2}} {
		a.setPrefixes(tt.nodes)
		if got := strings.Count(log.String(), `zone=z1 zoneOfTheFirstNode=global`); got != tt.said {
			t.Errorf("%d: said %d times, want %d: %s", i, got, tt.said, &log)
		}
	}
}
