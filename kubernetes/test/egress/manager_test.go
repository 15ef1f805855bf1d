package egress

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/manager"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

func TestManager(t *testing.T) {
	m := startManaged(t)
	t.Run("definitions", func(t *testing.T) { testDefinitions(t, m) })
	t.Run("lifecycle", func(t *testing.T) { testLifecycle(t, m) })
	t.Run("managed fields", func(t *testing.T) { testManagedFields(t, m) })
	t.Run("collision", func(t *testing.T) { testCollision(t, m) })
	t.Run("status", func(t *testing.T) { testStatus(t, m) })
	t.Run("mirror", func(t *testing.T) { testMirror(t, m) })
	t.Run("turns", func(t *testing.T) { testTurns(t, m) })
	t.Run("rights", func(t *testing.T) { testRights(t, m) })
	t.Run("API server down", func(t *testing.T) { testAPIDown(t, m) })
}

// testLifecycle checks that objects are created, shared, created again and deleted with the rules for their names, in
// any case.
func testLifecycle(t *testing.T, m *managed) {
	defer m.run(t, manager.Options{})()
	a := m.put(t, "a", "www.example.com", "WWW.example.com.", "*.example.com")
	m.want(t, "two names", "www.example.com.", "*.example.com.")
	b := m.put(t, "b", "www.Example.com")
	m.want(t, "the same in another namespace", "www.example.com.", "*.example.com.")
	for _, r := range m.resolvers(t) {
		if want := enforce.ObjectName(must.Pattern(string(r.Spec.Name)), 0); r.Name != want || r.Namespace != ovnNamespace {
			t.Errorf("%s is %s/%s, want %s", r.Spec.Name, r.Namespace, r.Name, want)
		}
	}
	m.remove(t, a)
	m.want(t, "one firewall is gone", "www.example.com.")
	m.put(t, "b", "new.example.com", "www.example.com")
	m.want(t, "a name more", "new.example.com.", "www.example.com.")
	m.put(t, "b", "new.example.com")
	m.want(t, "a name less", "new.example.com.")
	m.put(t, "b", "new.example.com", "www.example.com")
	m.want(t, "and again", "new.example.com.", "www.example.com.")

	old := m.resolvers(t)
	m.remove(t, &old[0])
	soon(t, "deleted by hand, made again", func() error {
		for _, r := range m.resolvers(t) {
			if r.Name == old[0].Name && r.UID != old[0].UID {
				return nil
			}
		}
		return errors.New("it is not there")
	})
	for _, name := range []string{"www.example.com.", "mine.example.com."} {
		extra := &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Namespace: ovnNamespace, GenerateName: "mine-"},
			Spec: v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(name)}}
		if err := m.admin.Create(t.Context(), extra); err != nil {
			t.Fatal(err)
		}
	}
	m.want(t, "made by hand, deleted", "new.example.com.", "www.example.com.")
	m.remove(t, b)
	m.want(t, "all gone")
}

// testManagedFields checks that the API server stores no managed fields of a wildcard's object, even after an apply,
// and does store those of other objects.
func testManagedFields(t *testing.T, m *managed) {
	defer m.run(t, manager.Options{})()
	a := m.put(t, "a", "www.example.com", "*.example.com")
	m.want(t, "two names", "www.example.com.", "*.example.com.")
	forgotten := func() error {
		for _, r := range m.resolvers(t) {
			if r.Spec.Name == "*.example.com." && len(r.ManagedFields) > 0 || r.Spec.Name == "www.example.com." &&
				len(r.ManagedFields) == 0 {
				return fmt.Errorf("%s has %d lists of fields", r.Spec.Name, len(r.ManagedFields))
			}
		}
		return nil
	}
	soon(t, "fields of nobody", forgotten)
	for _, r := range m.resolvers(t) {
		if r.Spec.Name != "*.example.com." {
			continue
		}
		const learned = `{"status":{"resolvedNames":[{"dnsName":"a.example.com.","resolvedAddresses":[` +
			`{"ip":"192.0.2.1","ttlSeconds":5,"lastLookupTime":"2030-01-01T00:00:00Z"}]}]}}`
		if err := m.admin.Status().Patch(t.Context(), &r,
			client.RawPatch(types.MergePatchType, []byte(learned))); err != nil {
			t.Fatal(err)
		}
		if err := forgotten(); err != nil {
			t.Errorf("after a write of the status: %v", err)
		}
		applied := fmt.Sprintf(`{"apiVersion":%q,"kind":"DNSNameResolver",`+
			`"metadata":{"name":%q,"namespace":%q,"labels":{"x":"y"}}}`, v1alpha1.GroupVersion, r.Name, r.Namespace)
		if err := m.admin.Patch(t.Context(), &r, client.RawPatch(types.ApplyPatchType, []byte(applied)),
			client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		if len(r.Status.ResolvedNames) != 1 || r.Labels["x"] != "y" {
			t.Errorf("the object has become %v", r)
		}
	}
	soon(t, "fields of nobody again", forgotten)
	m.remove(t, a)
	m.want(t, "all gone")
}

// colliding are names with the same hash.
var colliding = []string{"v2cyta.example.com.", "kgxe1a.example.com.", "gt2mcb.example.com."}

// testCollision checks names that all have the same hashes, and that a manager that starts later finds their objects.
func testCollision(t *testing.T, m *managed) {
	stop := m.run(t, manager.Options{})
	ef := m.put(t, "a", colliding[:2]...)
	m.want(t, "two names", colliding[:2]...)
	before := m.resolvers(t)
	stop()
	defer m.run(t, manager.Options{})()
	m.put(t, "a", colliding...)
	m.want(t, "a third, by another manager", colliding...)
	for _, b := range before {
		if !slices.ContainsFunc(m.resolvers(t),
			func(r v1alpha1.DNSNameResolver) bool { return r.UID == b.UID && r.Spec.Name == b.Spec.Name }) {
			t.Errorf("%s of %s did not stay", b.Name, b.Spec.Name)
		}
	}
	for c, name := range colliding {
		if got := enforce.ObjectName(must.Pattern(name), 0); got != enforce.ObjectName(must.Pattern(colliding[0]), 0) {
			t.Errorf("name %d does not collide: its object is %s", c, got)
		}
	}
	m.remove(t, ef)
	m.want(t, "all gone")
}

// testStatus checks the messages about invalid rules, and the summary of the reports of zones.
func testStatus(t *testing.T, m *managed) {
	defer m.run(t, manager.Options{})()
	const wrong, right = "EgressFirewall Rules not correctly applied", "EgressFirewall Rules applied"
	n1, n2 := m.node(t, "n1", "east"), m.node(t, "n2", "west")
	defer m.remove(t, n1)
	ef := m.put(t, "a", "www.example.com", "-a.example.com", "com")
	m.want(t, "the good one", "www.example.com.")
	status := func(what, want string, messages ...string) {
		t.Helper()
		soon(t, what, func() error {
			if err := m.admin.Get(t.Context(), client.ObjectKeyFromObject(ef), ef); err != nil {
				return err
			}
			s := ef.Status
			if s.Status != want || len(s.Messages) != len(messages) {
				return fmt.Errorf("status %q %q", s.Status, s.Messages)
			}
			for _, w := range messages {
				if !slices.ContainsFunc(s.Messages, func(m string) bool { return strings.HasPrefix(m, w) }) {
					return fmt.Errorf("messages %q, want %q", s.Messages, w)
				}
			}
			return nil
		})
	}
	own := "cluster-manager: " + wrong + ": spec.egress"
	status("bad rules", wrong, own+"[1].to.dnsName: ", own+"[2].to.dnsName: ")
	say := func(zone, text string) {
		m.say(t, ef, "EgressFirewall", zone, map[string]any{"messages": []any{zone + ": " + text}})
	}
	say("east", right)
	status("bad rules, and a zone", wrong, own+"[1]", own+"[2]", "east: ")
	soon(t, "an event of each", func() error {
		var list eventsv1.EventList
		if err := m.admin.List(t.Context(), &list, client.InNamespace("a")); err != nil {
			return err
		}
		reported := 0
		for _, e := range list.Items {
			if e.Reason == "InvalidRule" && e.Regarding.Name == "default" && strings.HasPrefix(e.Note, "spec.egress[") {
				reported++
			}
		}
		if reported != 2 {
			return fmt.Errorf("%d events, %d of them about rules", len(list.Items), reported)
		}
		return nil
	})
	m.put(t, "a", "www.example.com")
	status("put right, one zone of two", "", "east: ")
	say("west", right)
	status("both zones", right, "east: ", "west: ")
	say("west", wrong+": no such table")
	status("one failed", wrong, "east: ", "west: ")
	m.remove(t, n2)
	status("the zone that failed is gone", right, "east: ")
	m.remove(t, ef)
	m.want(t, "all gone")
}

// testMirror checks the older API, with two agents that report.
func testMirror(t *testing.T, m *managed) {
	defer m.run(t, manager.Options{DNSNames: true})()
	n1, n2 := m.node(t, "n1", "east"), m.node(t, "n2", "west")
	defer m.remove(t, n1)
	ef := m.put(t, "a", "*.example.com")
	m.want(t, "the name", "*.example.com.")
	r := m.resolvers(t)[0]
	d := &dnsv1alpha1.EgressFirewallDNSName{}
	is := func(what string, names int, available ...string) {
		t.Helper()
		soon(t, what, func() error {
			if err := m.admin.Get(t.Context(), client.ObjectKeyFromObject(&r), d); err != nil {
				return err
			}
			var got []string
			for _, n := range d.Status.ResolvedNames {
				if meta.IsStatusConditionTrue(n.Conditions, dnsv1alpha1.ConditionAvailable) {
					got = append(got, n.DNSName)
				}
			}
			if d.Spec.Name != "*.example.com." || len(d.Status.ResolvedNames) != names || !slices.Equal(got, available) {
				return fmt.Errorf("%s: %+v", d.Spec.Name, d.Status)
			}
			return nil
		})
	}
	learn := func(name, ip string) {
		t.Helper()
		if err := m.admin.Get(t.Context(), client.ObjectKeyFromObject(&r), &r); err != nil {
			t.Fatal(err)
		}
		r.Status.ResolvedNames = append(r.Status.ResolvedNames,
			v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(name),
				ResolvedAddresses: []v1alpha1.DNSNameResolverResolvedAddress{{IP: ip, TTLSeconds: 5,
					LastLookupTime: &metav1.Time{Time: time.Now()}}}})
		if err := m.admin.Status().Update(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	programmed := func(zone string) {
		t.Helper()
		m.say(t, d, "EgressFirewallDNSName", zone,
			map[string]any{"programmed": []any{map[string]any{"zone": zone, "addressesVersion": d.Status.AddressesVersion}}})
	}
	const a, b = "a.example.com.", "b_c.example.com."
	is("nothing learned", 0)
	learn(a, "192.0.2.1")
	is("learned", 1)
	programmed("east")
	programmed("west")
	is("programmed by both", 1, a)
	learn(b, "192.0.2.2")
	is("another name", 2, a)
	programmed("east")
	m.remove(t, n2)
	is("programmed by the one that is left", 2, a, b)
	if len(d.Status.Programmed) != 1 {
		t.Errorf("the word of a zone that is gone is kept: %v", d.Status.Programmed)
	}
	m.remove(t, d)
	is("deleted by hand, made again", 2)
	m.remove(t, ef)
	m.want(t, "all gone")
	soon(t, "the mirror too", func() error {
		if err := m.admin.Get(t.Context(), client.ObjectKeyFromObject(&r), d); client.IgnoreNotFound(err) != nil ||
			err == nil {
			return fmt.Errorf("it is there (%v)", err)
		}
		return nil
	})
}

// testAPIDown stops the API server of a manager. The manager must continue when it is back, and must see what was
// deleted while it did not run itself. This test is last: a server that has just started knows no roles yet, and
// forbids what it grants a moment later.
func testAPIDown(t *testing.T, m *managed) {
	stop := m.run(t, manager.Options{})
	ef := m.put(t, "a", "www.example.com")
	m.want(t, "before", "www.example.com.")
	m.API.Kill()
	if err := errors.Join(m.API.Start(), m.Ready()); err != nil {
		t.Fatal(err)
	}
	m.put(t, "a", "new.example.com")
	m.want(t, "after", "new.example.com.")
	stop()
	m.remove(t, ef)
	defer m.run(t, manager.Options{})()
	m.want(t, "what went while no manager ran")
}

// testTurns has two managers, of which the second one becomes the leader when the first one has ended.
func testTurns(t *testing.T, m *managed) {
	first := m.run(t, manager.Options{})
	ef := m.put(t, "a", "www.example.com")
	m.want(t, "the first", "www.example.com.")
	defer m.run(t, manager.Options{})()
	first()
	m.put(t, "a", "new.example.com")
	m.want(t, "the second", "new.example.com.")
	m.remove(t, ef)
	m.want(t, "all gone")
}

// testRights checks in the audit log that no request of the account was forbidden, and that it reads nothing from the
// API server that its cache has. It watches what it reads, and writes rarely.
func testRights(t *testing.T, m *managed) {
	all, err := m.Requests()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, r := range all {
		if r.User != managerUser {
			continue
		}
		n[r.Verb+" "+r.Resource]++
		if r.Code == 403 {
			t.Errorf("forbidden: %s %s/%s %s", r.Verb, r.Resource, r.Subresource, r.Name)
		}
		if (r.Verb == "get" || r.Verb == "list") && r.Resource != "leases" {
			t.Errorf("asked for what it follows: %s %s %s", r.Verb, r.Resource, r.Name)
		}
	}
	t.Logf("requests of the manager: %v", n)
	for what, most := range map[string]int{"patch egressfirewalls": 12, "patch egressfirewalldnsnames": 12,
		"create dnsnameresolvers": 30, "delete dnsnameresolvers": 30} {
		if n[what] == 0 || n[what] > most {
			t.Errorf("%d times %s, want some and at most %d", n[what], what, most)
		}
	}
}
