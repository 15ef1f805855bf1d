package hostname

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// changes returns the hostnames that settle returns, sorted.
func changes(x *index) (out []string) {
	for _, k := range x.settle() {
		out = append(out, k.Namespace+"/"+k.Host)
	}
	slices.Sort(out)
	return out
}

// TestIndexChanges checks which hostnames a change concerns.
func TestIndexChanges(t *testing.T) {
	const other = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: other, uid: o}
spec: {parentRefs: [{name: lost, namespace: infra}], hostnames: [other.example.test]}
`
	www := []string{"shop/www.example.test"}
	for _, tt := range []struct {
		name, objects string
		want          []string
	}{
		{"nothing", healthy, nil},
		{"the class", edited("controllerName: example.org/edge}", "controllerName: x}"), www},
		{"the Gateway", edited("93.184.20.1", "93.184.20.2"), www},
		{"the number of routes", edited("attachedRoutes: 1", "attachedRoutes: 2"), nil},
		{"the Service", edited("port: 80, targetPort", "port: 81, targetPort"), www},
		{"the endpoints", edited("addresses: [10.0.0.1]", "addresses: [10.0.0.1], conditions: {ready: false}"), www},
		{"the labels of the namespace", edited("{name: shop}", "{name: shop, labels: {a: b}}"), www},
		{"the hostname", edited("hostnames: [www.", "hostnames: [new."), []string{"shop/new.example.test",
			"shop/www.example.test"}},
		{"a hostname that no listener has", edited("hostnames: [www.example.test]", "hostnames: [www.example.com]"),
			[]string{"shop/www.example.com", "shop/www.example.test"}},
		{"a Certificate", `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: infra}
spec: {dnsNames: [www.example.test, example.test]}
`, www},
		{"the Gateway that another route names", `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: lost, namespace: infra}
spec: {gatewayClassName: edge, listeners: [{name: a, port: 80, protocol: HTTP}]}
`, []string{"other/other.example.test"}},
		{"another Service", `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: other}
`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, healthy)
			r.put(t, other)
			r.index.settle()
			r.put(t, tt.objects)
			if diff := cmp.Diff(tt.want, changes(r.index)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestIndexRemove checks that a deleted route concerns its hostnames, also if it was created again before the next
// evaluation.
func TestIndexRemove(t *testing.T) {
	r := newRig(t, healthy)
	r.index.settle()
	at := types.NamespacedName{Namespace: "shop", Name: "www.example.test"}
	if _, ok := r.index.named(at); !ok {
		t.Error("the report has no hostname")
	}
	r.index.remove(objectID{"HTTPRoute", "shop", "web"})
	r.put(t, edited("hostnames: [www.", "hostnames: [new."))
	if got := changes(r.index); !slices.Equal(got, []string{"shop/new.example.test", "shop/www.example.test"}) {
		t.Errorf("changed %v", got)
	}
	if _, ok := r.index.named(at); ok {
		t.Error("the report of a hostname that is gone is wanted")
	}
	r.index.replace("HTTPRoute", nil)
	if got := changes(r.index); !slices.Equal(got, []string{"shop/new.example.test"}) || len(r.index.keys) != 0 ||
		len(r.index.needers) != 0 {
		t.Errorf("changed %v, left %v", got, r.index.keys)
	}
}

// TestIndexMany checks that a change in a cluster with ten thousand routes evaluates only what depends on it.
func TestIndexMany(t *testing.T) {
	r := newRig(t, healthy)
	route := func(i int, host string) *object {
		o := load(t, healthy)[3]
		text := fmt.Sprintf("r%d", i)
		o.id.name, o.uid = text, types.UID(text)
		o.parsed.Routes[0].Name, o.parsed.Routes[0].Spec.Hostnames = text, []string{host}
		return o
	}
	one := route(0, "")
	for i := range 10_000 {
		o := *one
		p := *one.parsed
		p.Routes = slices.Clone(one.parsed.Routes)
		o.parsed = &p
		o.id.name, o.uid = fmt.Sprintf("r%d", i), types.UID(fmt.Sprint(i))
		p.Routes[0].Name, p.Routes[0].Spec.Hostnames = o.id.name, []string{fmt.Sprintf("h%d.example.test", i)}
		r.index.put(&o)
	}
	if got := r.index.settle(); len(got) != 10_001 {
		t.Fatalf("%d hostnames", len(got))
	}
	r.index.put(route(7, "new.example.test"))
	if got := changes(r.index); !slices.Equal(got, []string{"shop/h7.example.test", "shop/new.example.test"}) {
		t.Errorf("changed %v", got)
	}
	objects, owners := r.index.subset(Key{"shop", "h8.example.test"})
	if objects.Len() != 6 || len(owners) != 1 {
		t.Errorf("a check reads %d objects of %d owners", objects.Len(), len(owners))
	}
}

// TestSubset checks that the report of a hostname does not depend on routes of another namespace with the same
// hostname, and that two routes of one namespace share it.
func TestSubset(t *testing.T) {
	r := newRig(t, healthy)
	r.put(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: evil, namespace: evil}
spec: {parentRefs: [{name: none}], hostnames: [www.example.test]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: old, namespace: shop}
spec: {rules: [{host: www.example.test}, {host: www.example.test}, {}]}
`)
	r.index.settle()
	objects, owners := r.index.subset(Key{"shop", "www.example.test"})
	var names []string
	for _, o := range owners {
		names = append(names, o.id.kind+" "+o.id.name)
	}
	if !slices.Equal(names, []string{"HTTPRoute web", "Ingress old"}) || len(objects.Routes) != 1 ||
		len(objects.Ingresses) != 1 {
		t.Errorf("owners %v of %+v", names, objects.Routes)
	}
	if objects, _ := r.index.subset(Key{"evil", "www.example.test"}); len(objects.Gateways) != 1 {
		t.Errorf("%d Gateways are suggested to a route with a wrong name", len(objects.Gateways))
	}
}

// TestParse checks that nothing in an object can hide it, and that what no check reads is dropped.
func TestParse(t *testing.T) {
	o := load(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  namespace: shop
  creationTimestamp: "2026-11-17T12:00:00Z"
  annotations: {external-dns.alpha.kubernetes.io/target: "a\u007f\u0080\ufeffb", x: y}
spec: {hostnames: [www.example.test]}
`)[0]
	trimmed, _ := trim(unstructuredOf(t, "{metadata: {managedFields: [{}], annotations: {x: z, cert-manager.io/a: b}}}"))
	if got := fmt.Sprint(trimmed); got != "&{map[metadata:map[annotations:map[cert-manager.io/a:b]]]}" {
		t.Errorf("kept is %s", got)
	}
	r := o.parsed.Routes[0]
	if r.Name != "web" || r.Created.IsZero() || r.Annotations["external-dns.alpha.kubernetes.io/target"] != "a???b" {
		t.Errorf("%+v", r)
	}
	for _, text := range []string{
		"{apiVersion: v9, kind: Service, metadata: {name: a}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: a}}",
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: x}}",
	} {
		if err := (&objectStore{kind: "Service", index: newIndex(), log: newRig(t, "").options.Log}).Add(
			unstructuredOf(t, text)); err != nil {
			t.Errorf("%s stops the watch: %v", text, err)
		}
		if _, err := parse(unstructuredOf(t, text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
