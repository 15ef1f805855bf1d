package manager

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// learned returns a DNSNameResolver with a version and the addresses of each name.
func learned(version string, names map[string][]string) *v1alpha1.DNSNameResolver {
	r := resolver("dns-1", "*.example.com.")
	r.ResourceVersion = version
	for _, name := range []string{"a.example.com.", "b.example.com."} {
		ips, ok := names[name]
		if !ok {
			continue
		}
		n := v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(name),
			ResolvedAddresses: []v1alpha1.DNSNameResolverResolvedAddress{}}
		for _, ip := range ips {
			n.ResolvedAddresses = append(n.ResolvedAddresses,
				v1alpha1.DNSNameResolverResolvedAddress{IP: ip, TTLSeconds: 30,
					LastLookupTime: &metav1.Time{Time: time.Unix(1e9, 0)}})
		}
		r.Status.ResolvedNames = append(r.Status.ResolvedNames, n)
	}
	return r
}

// TestMirrored checks the life of one object. Each step has the learned addresses, the reports of zones, and the names
// that are available.
func TestMirrored(t *testing.T) {
	const a, b = "a.example.com.", "b.example.com."
	v4, v6, other := "192.0.2.1", "2001:db8::1", "192.0.2.2"
	steps := []struct {
		name      string
		version   string
		learned   map[string][]string
		reports   map[string]string // zone -> version; earlier ones remain
		zones     []string
		versions  map[string]string
		largest   string
		available map[string]bool
	}{
		{"first", "10", map[string][]string{a: {v4}}, nil, []string{"z1", "z2"}, map[string]string{a: "10"}, "10",
			map[string]bool{a: false}},
		{"one has it", "10", map[string][]string{a: {v4}}, map[string]string{"z1": "10"}, []string{"z1", "z2"},
			map[string]string{a: "10"}, "10", map[string]bool{a: false}},
		{"both have it", "10", map[string][]string{a: {v4}}, map[string]string{"z2": "10"}, []string{"z1", "z2"},
			map[string]string{a: "10"}, "10", map[string]bool{a: true}},
		{"renewed", "11", map[string][]string{a: {v4}}, nil, []string{"z1", "z2"}, map[string]string{a: "10"}, "10",
			map[string]bool{a: true}},
		{"another name", "12", map[string][]string{a: {v4}, b: {other}}, nil, []string{"z1", "z2"},
			map[string]string{a: "10", b: "12"}, "12", map[string]bool{a: true, b: false}},
		{"both again", "12", map[string][]string{a: {v4}, b: {other}}, map[string]string{"z1": "12", "z2": "13"},
			[]string{"z1", "z2"}, map[string]string{a: "10", b: "12"}, "12", map[string]bool{a: true, b: true}},
		{"more addresses", "20", map[string][]string{a: {v4, v6}, b: {other}}, nil, []string{"z1", "z2"},
			map[string]string{a: "20", b: "12"}, "20", map[string]bool{a: false, b: true}},
		{"numbers, not words", "20", map[string][]string{a: {v4, v6}, b: {other}}, map[string]string{"z1": "9", "z2": "100"},
			[]string{"z1", "z2"}, map[string]string{a: "20", b: "12"}, "20", map[string]bool{a: false, b: false}},
		{"and again", "20", map[string][]string{a: {v4, v6}, b: {other}}, map[string]string{"z1": "20"}, []string{"z1", "z2"},
			map[string]string{a: "20", b: "12"}, "20", map[string]bool{a: true, b: true}},
		{"fewer addresses", "21", map[string][]string{a: {v6}, b: {other}}, nil, []string{"z1", "z2"},
			map[string]string{a: "20", b: "12"}, "20", map[string]bool{a: true, b: true}},
		{"back again", "200", map[string][]string{a: {v4, v6}, b: {other}}, nil, []string{"z1", "z2"},
			map[string]string{a: "200", b: "12"}, "200", map[string]bool{a: false, b: true}},
		{"a new zone", "200", map[string][]string{a: {v4, v6}}, map[string]string{"z1": "200", "z2": "200"},
			[]string{"z1", "z2", "z3"}, map[string]string{a: "200"}, "200", map[string]bool{a: false}},
		{"no zone", "200", map[string][]string{a: {v4, v6}}, nil, nil, map[string]string{a: "200"}, "200",
			map[string]bool{a: false}},
		{"all gone", "201", nil, nil, []string{"z1"}, map[string]string{}, "", map[string]bool{}},
	}
	var status dnsNameStatus
	said := map[string]string{}
	for i, s := range steps {
		for zone, v := range s.reports {
			said[zone] = v
		}
		status.Programmed = nil
		for zone, v := range said {
			status.Programmed = append(status.Programmed, programmed{Zone: zone, AddressesVersion: v})
		}
		status = mirrored(learned(s.version, s.learned), status, s.zones, time.Unix(1e9+int64(i), 0))
		versions, available := map[string]string{}, map[string]bool{}
		for _, item := range status.ResolvedNames {
			versions[item.DNSName] = item.AddressesVersion
			available[item.DNSName] = meta.IsStatusConditionTrue(item.Conditions, dnsv1alpha1.ConditionAvailable)
			if len(item.Info) != len(s.learned[item.DNSName]) {
				t.Errorf("%s: %s has %v", s.name, item.DNSName, item.Info)
			}
		}
		if diff := cmp.Diff(s.versions, versions); diff != "" {
			t.Errorf("%s: versions (-want +got)\n%s", s.name, diff)
		}
		if diff := cmp.Diff(s.available, available); diff != "" {
			t.Errorf("%s: available (-want +got)\n%s", s.name, diff)
		}
		if status.AddressesVersion != s.largest {
			t.Errorf("%s: largest version %s, want %s", s.name, status.AddressesVersion, s.largest)
		}
	}
}

func TestReconcileMirror(t *testing.T) {
	r := learned("", map[string][]string{"a.example.com.": {"192.0.2.1"}})
	c := fakeClient(t, interceptor.Funcs{}, r)
	m := &mirror{client: c, metrics: newMetrics(), zones: newZones()}
	m.zones.put("node", "z1")
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r)}
	step := func(times int) *dnsv1alpha1.EgressFirewallDNSName {
		t.Helper()
		for range times {
			if _, err := m.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		var d dnsv1alpha1.EgressFirewallDNSName
		if err := c.Get(t.Context(), req.NamespacedName, &d); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return &d
	}
	d := step(2)
	if d.Spec.Name != "*.example.com." || len(d.Status.ResolvedNames) != 1 || d.Status.ResolvedNames[0].Info[0].TTL != 30 {
		t.Fatalf("mirror %+v", d)
	}
	d.Status.Programmed = []programmed{{Zone: "z1", AddressesVersion: d.Status.AddressesVersion},
		{Zone: "z0", AddressesVersion: "1"}}
	if err := c.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if d = step(1); !meta.IsStatusConditionTrue(d.Status.ResolvedNames[0].Conditions, "Available") {
		t.Errorf("not available: %+v", d.Status)
	}
	if len(d.Status.Programmed) != 2 {
		t.Errorf("the word of a zone that was never seen to go is lost: %v", d.Status.Programmed)
	}
	m.zones.put("node", "z2")
	if d = step(1); len(d.Status.Programmed) != 1 || d.Status.Programmed[0].Zone != "z0" {
		t.Errorf("the word of a zone that has gone is kept: %v", d.Status.Programmed)
	}
	// The agent of z1 still runs and reports again. Removing that again would never end.
	d.Status.Programmed = append(d.Status.Programmed, programmed{Zone: "z1", AddressesVersion: d.Status.AddressesVersion})
	if err := c.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if d = step(1); len(d.Status.Programmed) != 2 {
		t.Errorf("an agent that does not know that its zone has gone is fought: %v", d.Status.Programmed)
	}
	rv := d.ResourceVersion
	if d = step(1); d.ResourceVersion != rv {
		t.Error("written without need")
	}
	if err := c.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if d = step(1); d.Name != "" {
		t.Error("the mirror of nothing is kept")
	}
}

// TestMirrorDoesNotOverwrite has an agent that writes between the read and the write of the manager.
func TestMirrorDoesNotOverwrite(t *testing.T) {
	r := learned("", map[string][]string{"a.example.com.": {"192.0.2.1"}})
	d := &dnsv1alpha1.EgressFirewallDNSName{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name},
		Spec: dnsv1alpha1.EgressFirewallDNSNameSpec{Name: string(r.Spec.Name)}}
	first := true
	c := fakeClient(t, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if first {
				first = false
				var now dnsv1alpha1.EgressFirewallDNSName
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), &now); err != nil {
					return err
				}
				now.Status.Programmed = []programmed{{Zone: "z1", AddressesVersion: "1"}}
				if err := c.Status().Update(ctx, &now); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}, r, d)
	m := &mirror{client: c, metrics: newMetrics(), zones: newZones()}
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r)}
	if again, err := m.Reconcile(t.Context(), req); err != nil || again.RequeueAfter == 0 {
		t.Errorf("first try = %v, %v; want another", again, err)
	}
	if _, err := m.Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	var got dnsv1alpha1.EgressFirewallDNSName
	if err := c.Get(t.Context(), req.NamespacedName, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Programmed) != 1 || len(got.Status.ResolvedNames) != 1 {
		t.Errorf("status %+v", got.Status)
	}
}
