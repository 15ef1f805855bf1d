package node

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func annotated(name, value string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{name: value}}}
}

func TestZone(t *testing.T) {
	for value, want := range map[string]string{"": DefaultZone, "n1": "n1"} {
		if got := Zone(annotated(ZoneAnnotation, value)); got != want {
			t.Errorf("zone of %q is %q, want %q", value, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	tests := []struct {
		text string
		want []string
		ok   bool
	}{
		{``, nil, false},
		{`x`, nil, false},
		{`[]`, nil, false},
		{`["x) || (ip4"]`, nil, true},
		{`["192.0.2.10/24","x","::ffff:198.51.100.1/120","2001:db8::9/64"]`,
			[]string{"192.0.2.10", "198.51.100.1", "2001:db8::9"}, true},
	}
	for _, tt := range tests {
		got, ok := Hosts(annotated(HostsAnnotation, tt.text))
		if ok != tt.ok || !slices.EqualFunc(got, tt.want, func(a netip.Addr, b string) bool { return a.String() == b }) {
			t.Errorf("hosts of %s are %v, %v, want %v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestSubnets(t *testing.T) {
	tests := []struct {
		text string
		want []string
		ok   bool
	}{
		{``, nil, false},
		{`["10.1.0.0/24"]`, nil, false},
		{`{"blue":"10.9.0.0/24"}`, nil, false},
		{`{"default":7}`, nil, false},
		{`{"default":"10.4.0.9/24"}`, []string{"10.4.0.0/24"}, true},
		{`{"default":["10.1.0.0/24","x","2001:db8:1::/64"],"blue":"10.9.0.0/24"}`, []string{"10.1.0.0/24", "2001:db8:1::/64"},
			true},
	}
	for _, tt := range tests {
		got, ok := Subnets(annotated(SubnetsAnnotation, tt.text))
		if ok != tt.ok || !slices.EqualFunc(got, tt.want, func(a netip.Prefix, b string) bool { return a.String() == b }) {
			t.Errorf("subnets of %s are %v, %v, want %v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}
