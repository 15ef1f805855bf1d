package dnsnameresolver

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
)

// The networks that the objects of a cluster publish.
var (
	someNodes = list{version: "v1", kind: "Node", delay: 200 * time.Millisecond, items: []string{
		`,"spec":{"podCIDRs":["10.1.0.0/24","2001:db8:1::/64"]},"status":{"addresses":[` +
			`{"type":"InternalIP","address":"192.0.2.10"},{"type":"ExternalIP","address":"2001:db8::10"},` +
			`{"type":"Hostname","address":"192.0.2.99"}]}`,
		`,"spec":{"podCIDRs":["10.2.0.0/24"]},"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.11"}]}`,
	}}
	someCIDRs = list{version: "networking.k8s.io/v1", kind: "ServiceCIDR",
		items: []string{`,"spec":{"cidrs":["10.96.0.0/12","fd00:96::/112"]}`}}
	someServices = list{version: "v1", kind: "Service", delay: 200 * time.Millisecond,
		items: []string{`,"spec":{"clusterIPs":["10.96.0.1","fd00:96::1"]}`, `,"spec":{"clusterIPs":["None"]}`}}
)

// TestClusterNetworks checks which addresses of nodes, pods and services are refused, from the first query on and
// without configuration.
func TestClusterNetworks(t *testing.T) {
	all := []string{"192.0.2.10", "192.0.2.11", "192.0.2.12", "192.0.2.99", "10.1.0.7", "10.96.0.1", "10.96.0.2"}
	tests := []struct {
		name   string
		lists  map[string]list
		denied []string
		change func(*options)
		want   string
	}{
		{"all readable", map[string]list{"nodes": someNodes, "servicecidrs": someCIDRs, "services": someServices}, nil, nil,
			"192.0.2.12 192.0.2.99"},
		{"an old cluster", map[string]list{"nodes": someNodes, "services": someServices}, nil, nil,
			"192.0.2.12 192.0.2.99 10.96.0.2"},
		{"rights of the stock plugin", nil, []string{"nodes", "servicecidrs", "services"}, nil, strings.Join(all, " ")},
		{"nodes and services are permitted", map[string]list{"nodes": someNodes, "servicecidrs": someCIDRs}, nil,
			func(o *options) { o.permitNodes, o.permitServices = true, true },
			"192.0.2.10 192.0.2.11 192.0.2.12 192.0.2.99 10.96.0.1 10.96.0.2"},
		{"one node is permitted", map[string]list{"nodes": someNodes, "servicecidrs": someCIDRs}, nil,
			func(o *options) { o.permit = []netip.Prefix{netip.MustParsePrefix("192.0.2.11/32")} },
			"192.0.2.11 192.0.2.12 192.0.2.99"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &rig{t: t, api: newAPI(t), authority: newAuthority()}
			for plural, l := range tt.lists {
				r.api.lists[plural] = l
			}
			r.api.denied = tt.denied
			r.plugin = r.replica(tt.change)
			var got []string
			for _, a := range r.plugin.engine.allowed(nil, observationOf(all...), r.plugin.engine.store.clock.now()) {
				got = append(got, a.Addr.String())
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("learned is %v, want %s", got, tt.want)
			}
		})
	}
}

func observationOf(addrs ...string) learn.Observation {
	l := learn.Observation{Name: "a.example.com."}
	for _, a := range addrs {
		l.Addrs = append(l.Addrs, learn.Address{Addr: netip.MustParseAddr(a)})
	}
	return l
}

// TestNodeNetworks checks that the annotations of OVN-Kubernetes on nodes count, and that invalid ones do not.
func TestNodeNetworks(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			node.HostsAnnotation:   `["192.0.2.10/24","198.51.100.1/24","x"]`,
			node.SubnetsAnnotation: `{"default":["10.1.0.0/24","2001:db8:1::/64"],"blue":"10.9.0.0/24"}`}},
		Spec: corev1.NodeSpec{PodCIDRs: []string{"10.3.0.0/24", "0.0.0.0/0", "none"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "fe80::1%eth0"},
			{Type: corev1.NodeExternalIP, Address: "::ffff:192.0.2.77"}}},
	}
	stripped, err := strip(n)
	if err != nil {
		t.Fatal(err)
	}
	one := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{node.SubnetsAnnotation: `{"default":"10.4.0.0/24"}`}}}
	nets := learn.NewNetworks(slices.Concat(nodeNetworks(stripped, false), nodeNetworks(one, false)))
	for addr, want := range map[string]string{"192.0.2.10": "a node", "198.51.100.1": "a node", "192.0.2.77": "a node",
		"198.51.100.2": "",
		"10.1.0.9":     "a pod", "2001:db8:1::9": "a pod", "10.3.0.1": "a pod", "10.4.0.1": "a pod", "10.9.0.1": "",
		"203.0.113.1": ""} {
		if got := nets.Owner(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is of %q, want %q", addr, got, want)
		}
	}
	for _, n := range nodeNetworks(stripped, true) {
		if n.Owner != "a pod" {
			t.Errorf("permitted, and still %v of %s", n.Net, n.Owner)
		}
	}
}

// TestNetworksMove checks that a changed object loses its old networks.
func TestNetworksMove(t *testing.T) {
	n := networks{changed: make(chan struct{}, 1), byObject: map[string][]learn.Network{}}
	at := func(text string) []learn.Network {
		return []learn.Network{{Net: netip.MustParsePrefix(text + "/32"), Owner: "a node"}}
	}
	whose := func(text string) string { n.rebuild(); return n.now.Load().Owner(netip.MustParseAddr(text)) }
	n.set("a", at("192.0.2.1"))
	<-n.changed
	if n.set("a", at("192.0.2.1")); len(n.changed) > 0 {
		t.Error("a change was signalled, but nothing changed")
	}
	n.set("a", at("192.0.2.2"))
	n.set("b", at("192.0.2.3"))
	if whose("192.0.2.1") != "" || whose("192.0.2.2") != "a node" || whose("192.0.2.3") != "a node" {
		t.Errorf("networks are %v", n.byObject)
	}
	if n.set("a", nil); whose("192.0.2.2") != "" || whose("192.0.2.3") != "a node" || len(n.changed) != 1 {
		t.Errorf("networks are %v", n.byObject)
	}
}
