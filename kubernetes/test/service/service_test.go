package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

func TestService(t *testing.T) {
	r := start(t)
	for _, ns := range []string{"infra", "shop"} {
		if err := r.CreateNamespace(ns, nil); err != nil {
			t.Fatal(err)
		}
	}
	metrics := prometheus.NewRegistry()
	stop := r.run(t, metrics)
	t.Run("life", func(t *testing.T) { testLife(t, r, metrics) })
	t.Run("class absent", func(t *testing.T) { testClassAbsent(t, r) })
	t.Run("reasons", func(t *testing.T) { testReasons(t, r) })
	t.Run("Ingress", func(t *testing.T) { testIngress(t, r) })
	t.Run("grant", func(t *testing.T) { testGrant(t, r) })
	stop()
	t.Run("rights", func(t *testing.T) { testRights(t, r) })
	stop = r.run(t, prometheus.NewRegistry())
	t.Run("API server down", func(t *testing.T) { testAPIDown(t, r) })
	stop()
	t.Run("next leader", func(t *testing.T) { testNextLeader(t, r) })
}

// gateway returns a class, a Gateway with one listener and an HTTPRoute, all with the same name, for NAME.example.test.
func gateway(name string) string {
	return strings.ReplaceAll(`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: NAME}
spec: {controllerName: example.org/edge}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: NAME, namespace: infra}
spec:
  gatewayClassName: NAME
  listeners:
  - name: web
    port: 443
    protocol: HTTPS
    hostname: NAME.example.test
    tls: {certificateRefs: [{name: web}]}
    allowedRoutes: {namespaces: {from: All}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: NAME, namespace: shop}
spec:
  parentRefs: [{name: NAME, namespace: infra}]
  hostnames: [NAME.example.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`, "NAME", name)
}

const backend = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}]
`

// condition returns a condition in JSON.
func condition(kind, status, reason string) string {
	return fmt.Sprintf(`{"type":%q,"status":%q,"reason":%q,"message":"","observedGeneration":1,`+
		`"lastTransitionTime":"2026-11-17T12:00:00Z"}`, kind, status, reason)
}

// statuses are the statuses of the objects of a Gateway that works.
type statuses struct{ class, gateway, listener, route []string }

func working() statuses {
	return statuses{
		class:   []string{condition("Accepted", "True", "Accepted")},
		gateway: []string{condition("Accepted", "True", "Accepted"), condition("Programmed", "True", "Programmed")},
		listener: []string{condition("Accepted", "True", "Accepted"), condition("Conflicted", "False", "NoConflicts"),
			condition("ResolvedRefs", "True", "ResolvedRefs"), condition("Programmed", "True", "Programmed")},
		route: []string{condition("Accepted", "True", "Accepted"), condition("ResolvedRefs", "True", "ResolvedRefs")},
	}
}

// set writes the statuses of the objects with a name.
func (r *rig) set(t *testing.T, name string, s statuses) {
	t.Helper()
	all := func(conditions []string) string { return "[" + strings.Join(conditions, ",") + "]" }
	r.setStatus(t, "GatewayClass", "", name, fmt.Sprintf(`{"conditions":%s}`, all(s.class)))
	r.setStatus(t, "Gateway", "infra", name, fmt.Sprintf(`{"addresses":[{"type":"IPAddress","value":"93.184.20.1"}],`+
		`"conditions":%s,"listeners":[{"name":"web","attachedRoutes":1,"supportedKinds":[],"conditions":%s}]}`,
		all(s.gateway), all(s.listener)))
	r.setStatus(t, "HTTPRoute", "shop", name, fmt.Sprintf(`{"parents":[{"parentRef":{"name":%q,"namespace":"infra"},`+
		`"controllerName":"example.org/edge","conditions":%s}]}`, name, all(s.route)))
}

// ready are the conditions of a hostname that works.
var ready = []string{"RouteReady=True Working", "DNSReady=True Working", "TLSReady=True Working",
	"BackendReady=True Working", "Current=True Checked"}

// testLife follows a hostname: it works, its backend fails and comes back, and its report goes with the route.
func testLife(t *testing.T, r *rig, metrics *prometheus.Registry) {
	r.apply(t, backend+"---"+gateway("life"))
	r.set(t, "life", working())
	x := r.want(t, "working", "shop", "life.example.test", "", ready...)
	if len(x.OwnerReferences) != 1 || x.OwnerReferences[0].Kind != "HTTPRoute" || x.OwnerReferences[0].Name != "life" {
		t.Errorf("owners %+v", x.OwnerReferences)
	}
	for what, n := range map[string]int{"nameplane_hostname_ready": 6, "nameplane_certificate_expiry_seconds": 1} {
		if got := count(t, metrics, what, "life.example.test"); got != n {
			t.Errorf("%d metrics %s, want %d", got, what, n)
		}
	}
	since := transition(x, v1alpha1.BackendReady)

	time.Sleep(time.Until(since.Add(time.Second + time.Millisecond))) // times of conditions are whole seconds
	r.apply(t, strings.Replace(backend, "ready: true", "ready: false", 1))
	x = r.want(t, "no endpoint", "shop", "life.example.test", "backend", "BackendReady=False HTTP06")
	broken := transition(x, v1alpha1.BackendReady)
	if !broken.After(since.Time) || !transition(x, v1alpha1.DNSReady).Time.Equal(since.Time) {
		t.Errorf("the backend changed at %v, then at %v; DNS at %v", since, broken, transition(x, v1alpha1.DNSReady))
	}
	r.apply(t, backend)
	r.want(t, "repaired", "shop", "life.example.test", "", ready...)
	soon(t, "Events", func() error {
		// The first checks ran before the statuses were written. Kubernetes merges Events that differ only in time.
		if got := r.events(t, "life"); !slices.Equal(got, []string{"HostnameNotWorking", "HostnameWorking"}) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})

	// The API server has no garbage collection here. The controller deletes the report too.
	r.remove(t, "gateway.networking.k8s.io/v1", "HTTPRoute", "shop", "life")
	soon(t, "gone with its route", func() error { return r.absent(t.Context(), "shop", "life.example.test") })
	soon(t, "its metrics too", func() error {
		if n := count(t, metrics, "nameplane_hostname_ready", "life.example.test"); n > 0 {
			return fmt.Errorf("%d metrics", n)
		}
		return nil
	})
}

// absent returns an error if there is a report.
func (r *rig) absent(ctx context.Context, ns, host string) error {
	switch _, err := r.report(ctx, ns, host); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return errors.New("it is there")
}

// events returns the different reasons of the Events about a route.
func (r *rig) events(t *testing.T, route string) (out []string) {
	t.Helper()
	var list eventsv1.EventList
	if err := r.admin.List(t.Context(), &list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Regarding.Kind == "HTTPRoute" && e.Regarding.Name == route && e.Related.Kind == "HostnameReport" {
			out = append(out, e.Reason)
		}
	}
	slices.Sort(out)
	return out
}

func transition(x *v1alpha1.HostnameReport, kind string) metav1.Time {
	return meta.FindStatusCondition(x.Status.Conditions, kind).LastTransitionTime
}

// count returns the number of metrics with a name of a hostname.
func count(t *testing.T, metrics *prometheus.Registry, name, host string) (n int) {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == "hostname" && l.GetValue() == host {
					n++
				}
			}
		}
	}
	return n
}

// testClassAbsent checks that nothing after the class is judged if the class does not exist.
func testClassAbsent(t *testing.T, r *rig) {
	r.apply(t, gateway("noclass"))
	r.set(t, "noclass", working())
	r.remove(t, "gateway.networking.k8s.io/v1", "GatewayClass", "", "noclass")
	r.want(t, "no class", "shop", "noclass.example.test", "class", "RouteReady=False SVC01", "DNSReady=Unknown NotJudged",
		"TLSReady=Unknown NotJudged", "BackendReady=Unknown NotJudged")
	r.apply(t, gateway("noclass"))
	r.set(t, "noclass", working())
	r.want(t, "with its class", "shop", "noclass.example.test", "", ready...)
}

// testIngress checks a hostname of an Ingress, and one of a wildcard.
func testIngress(t *testing.T, r *rig) {
	r.apply(t, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: old, namespace: shop}
spec:
  rules:
  - host: old.example.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
  - {host: "*.old.example.test"}
`)
	u := map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{
		map[string]any{"ip": "93.184.20.1"}}}}}
	r.patchStatus(t, "networking.k8s.io/v1", "Ingress", "shop", "old", u)
	x := r.want(t, "Ingress", "shop", "old.example.test", "", "DNSReady=True Working", "BackendReady=True Working")
	if x.OwnerReferences[0].Kind != "Ingress" || x.OwnerReferences[0].APIVersion != "networking.k8s.io/v1" {
		t.Errorf("owners %+v", x.OwnerReferences)
	}
	r.want(t, "wildcard", "shop", "*.old.example.test", "", "DNSReady=True Working")
}

// testGrant checks that the API server accepts the ReferenceGrant of a report, and that it repairs the backend.
func testGrant(t *testing.T, r *rig) {
	if err := r.CreateNamespace("pay", nil); err != nil {
		t.Fatal(err)
	}
	r.apply(t, strings.ReplaceAll(backend, "namespace: shop", "namespace: pay")+"---"+
		strings.Replace(gateway("grant"), "{name: web, port: 80}", "{name: web, namespace: pay, port: 80}", 1))
	refused := working()
	refused.route = replaced(refused.route, "ResolvedRefs", condition("ResolvedRefs", "False", "RefNotPermitted"))
	r.set(t, "grant", refused)
	x := r.want(t, "no grant", "shop", "grant.example.test", "backend", "BackendReady=False SVC11")
	var fixes []string
	for _, f := range x.Status.Findings {
		if _, grant, ok := strings.Cut(f.Fix, "kubectl apply: "); ok && f.ID == "SVC11" {
			fixes = append(fixes, grant)
		}
	}
	if len(fixes) == 0 {
		t.Fatalf("no ReferenceGrant in %+v", x.Status.Findings)
	}
	r.apply(t, fixes[0])
	r.set(t, "grant", working())
	r.want(t, "granted", "shop", "grant.example.test", "", ready...)
}

// testRights checks in the audit log that no request of the account was forbidden, that it never asked for a Secret,
// and that it writes nothing but its reports, Events and lease. The log has a watch when it ends, so the controller
// must have stopped. After a restart of the API server some requests are forbidden until it has read the roles.
func testRights(t *testing.T, r *rig) {
	watched := []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "tlsroutes",
		"referencegrants", "backendtlspolicies", "ingresses", "services", "endpointslices", "namespaces", "hostnamereports"}
	n := map[string]int{}
	soon(t, "the ends of all watches", func() error {
		all, err := r.Requests()
		if err != nil {
			return err
		}
		clear(n)
		for _, q := range all {
			if q.User == user {
				n[q.Verb+" "+q.Resource]++
			}
		}
		for _, resource := range watched {
			if n["watch "+resource] == 0 {
				return fmt.Errorf("no watch of %s: %v", resource, n)
			}
		}
		return nil
	})
	all, err := r.Requests()
	if err != nil {
		t.Fatal(err)
	}
	reads, writes := append([]string{"leases"}, watched...), []string{"hostnamereports", "events", "leases"}
	for _, q := range all {
		switch {
		case q.User != user:
		case q.Code == 403:
			t.Errorf("forbidden: %s %s/%s %s", q.Verb, q.Resource, q.Subresource, q.Name)
		case q.Write() && !slices.Contains(writes, q.Resource), !q.Write() && !slices.Contains(reads, q.Resource):
			t.Errorf("%s %s %s/%s", q.Verb, q.Resource, q.Namespace, q.Name) // a Secret, for example
		}
	}
	t.Logf("requests of the controller: %v", n)
	if n["create hostnamereports"] == 0 || n["delete hostnamereports"] == 0 || n["create events"] == 0 ||
		n["update leases"] == 0 {
		t.Errorf("requests %v", n)
	}
}

// testAPIDown checks that reports stay while the API server is away, and are kept current again afterwards.
func testAPIDown(t *testing.T, r *rig) {
	r.apply(t, backend+"---"+gateway("down"))
	r.set(t, "down", working())
	before := r.want(t, "before", "shop", "down.example.test", "", ready...)
	r.API.Kill()
	r.dns("set down.example.test. 60 A 93.184.20.9")
	if err := errors.Join(r.API.Start(), r.Ready()); err != nil {
		t.Fatal(err)
	}
	after, err := r.report(t.Context(), "shop", "down.example.test")
	if err != nil || after.UID != before.UID {
		t.Fatalf("the report is another one: %v", err)
	}
	// A change of an object must be seen again, and with it the change of DNS.
	r.patchMeta(t, "HTTPRoute", "shop", "down",
		`{"metadata":{"annotations":{"external-dns.alpha.kubernetes.io/ttl":"60"}}}`)
	x := r.want(t, "after", "shop", "down.example.test", "DNS", "DNSReady=False SVC21")
	if x.UID != before.UID || !x.Status.LastChecked.After(before.Status.LastChecked.Time) {
		t.Errorf("checked at %v, before at %v", x.Status.LastChecked, before.Status.LastChecked)
	}
	r.dns("drop down.example.test.")
}

// testNextLeader checks that a controller that starts later finds the reports, deletes those of routes that went while
// none ran, and those that somebody created by hand.
func testNextLeader(t *testing.T, r *rig) {
	stray := &v1alpha1.HostnameReport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stray.example.test"}}
	if err := r.admin.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	r.remove(t, "gateway.networking.k8s.io/v1", "HTTPRoute", "shop", "down")
	before, err := r.report(t.Context(), "shop", "noclass.example.test")
	if err != nil {
		t.Fatal(err)
	}
	defer r.run(t, prometheus.NewRegistry())()
	for _, host := range []string{"stray.example.test", "down.example.test"} {
		soon(t, host, func() error { return r.absent(t.Context(), "shop", host) })
	}
	stray = stray.DeepCopy()
	stray.ResourceVersion, stray.UID = "", ""
	if err := r.admin.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	soon(t, "created by hand", func() error { return r.absent(t.Context(), "shop", "stray.example.test") })
	after := r.want(t, "stays", "shop", "noclass.example.test", "", ready...)
	if after.UID != before.UID {
		t.Error("the report was deleted and created again")
	}
	if err := r.admin.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	soon(t, "deleted by hand, written again", func() error {
		x, err := r.report(t.Context(), "shop", "noclass.example.test")
		if err == nil && (x.UID == after.UID || x.Status.Verdict == "") {
			err = errors.New("it is the old one")
		}
		return err
	})
}
