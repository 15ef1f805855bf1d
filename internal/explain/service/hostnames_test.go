package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// TestIntersect checks the examples of the Gateway API specification, and their mirror images.
func TestIntersect(t *testing.T) {
	tests := []struct{ listener, route, want string }{
		{"www.example.com", "www.example.com", "www.example.com"},
		{"*.example.com", "www.example.com", "www.example.com"},
		{"*.example.com", "sub.domain.example.com", "sub.domain.example.com"},
		{"sub.domain.example.com", "*.example.com", "sub.domain.example.com"},
		{"*.com", "*.example.com", "*.example.com"},
		{"*.example.com", "*.com", "*.example.com"},
		{"", "www.example.com", "www.example.com"},
		{"www.example.com", "", "www.example.com"},
		{"*.example.com", "example.com", "none"},
		{"example.com", "*.example.com", "none"},
		{"*.example.com", "*.example.org", "none"},
		{"*.example.com", "wwwexample.com", "none"},
		{"WWW.Example.com", "www.example.com.", "www.example.com"},
		{"", "", ""},
	}
	for _, tt := range tests {
		got, ok := service.Intersect(tt.listener, tt.route)
		if !ok {
			got = "none"
		}
		if got != tt.want {
			t.Errorf("Intersect(%q, %q) = %q, want %q", tt.listener, tt.route, got, tt.want)
		}
	}
}

// parse reads objects, and fails the test if they are not valid.
func parse(t *testing.T, text string) *service.Objects {
	t.Helper()
	o, err := service.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// gateway is a Gateway with one listener for *.example.com.
const gateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: traefik
  listeners:
  - {name: web, port: 443, protocol: HTTPS, hostname: "*.example.com", allowedRoutes: {namespaces: FROM}}
---
`

// route returns a route in the namespace shop.
func route(parent string, hosts ...string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [%s]
  hostnames: [%s]
`, parent, strings.Join(hosts, ", "))
}

func TestAttachments(t *testing.T) {
	const namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: web}}\n"
	edge := "{name: edge, namespace: infra}"
	tests := []struct {
		name, from, text string
		want             []string
	}{
		{"attaches", "{from: All}", route(edge, "www.example.com"), []string{"www.example.com"}},
		{"one of three", "{from: All}", route(edge, "www.example.com", "example.com", "www.example.org"),
			[]string{"example.com no hostname", "www.example.com", "www.example.org no hostname"}},
		{"a selector of the namespace's labels", "{from: Selector, selector: {matchLabels: {team: web}}}",
			route(edge, "www.example.com") + namespace, []string{"www.example.com"}},
		{"a selector of other labels", "{from: Selector, selector: {matchLabels: {team: api}}}",
			route(edge, "www.example.com") + namespace, []string{"*.example.com no route", "www.example.com not allowed"}},
		{"an expression", "{from: Selector, selector: {matchExpressions: [{key: team, operator: In, values: [web]}]}}",
			route(edge, "www.example.com") + namespace, []string{"www.example.com"}},
		{"the same namespace", "{from: Same}", route(edge, "www.example.com"),
			[]string{"*.example.com no route", "www.example.com not allowed"}},
		{"no such gateway", "{from: All}", route("{name: edge}", "www.example.com"),
			[]string{"*.example.com no route", "www.example.com no parent"}},
		{"no such listener", "{from: All}", route("{name: edge, namespace: infra, sectionName: wbe}", "www.example.com"),
			[]string{"*.example.com no route", "www.example.com no listener"}},
		{"no hostnames", "{from: All}", route(edge), []string{"*.example.com"}},
		{"another kind", "{from: All}", strings.Replace(route(edge, "www.example.com"), "HTTPRoute", "TLSRoute", 1),
			[]string{"*.example.com no route", "www.example.com wrong kind"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := parse(t, strings.Replace(gateway, "FROM", tt.from, 1)+tt.text)
			var got []string
			for _, a := range o.Attachments() {
				got = append(got, strings.TrimSpace(a.Host+" "+string(a.Problem)))
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("Attachments = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestListenerSet checks that a listener of a ListenerSet counts like one of its Gateway.
func TestListenerSet(t *testing.T) {
	o := parse(t, strings.Replace(gateway, "FROM", "{from: All}", 1)+`
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, namespace: shop}
spec:
  parentRef: {name: edge, namespace: infra}
  listeners: [{name: shop, port: 443, protocol: HTTPS, hostname: shop.example.net}]
---
`+route("{kind: ListenerSet, name: more}", "shop.example.net"))
	at := o.At("shop.example.net")
	if len(at) != 1 || at[0].Problem != "" || at[0].Set == nil || at[0].Gateway == nil || at[0].Gateway.Name != "edge" {
		t.Errorf("At = %+v", at)
	}
	if hosts := o.Hosts(); !slices.Equal(hosts, []string{"*.example.com", "shop.example.net"}) {
		t.Errorf("Hosts = %q", hosts)
	}
}

func TestParse(t *testing.T) {
	list := `{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "traefik"}},
  {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"tls.key": "c2VjcmV0"}}]}`
	o := parse(t, list)
	if len(o.Classes) != 1 || o.Classes[0].Name != "traefik" || !slices.Equal(o.Ignored, []string{"Secret"}) {
		t.Errorf("a list of kubectl: %+v", o)
	}
	g := parse(t, strings.Replace(gateway, "FROM", "{}", 1)).Gateways[0]
	if g.Line != 1 || g.String() != "Gateway infra/edge" {
		t.Errorf("Head = %+v", g.Head)
	}
	for text, want := range map[string]string{
		"":                                    "the input has no object of a service; the kinds are Back",
		"kind: &k Gateway\nitems: [*k, *k]\n": "line 1: anchors and aliases are not supported",
		"a: [":                                "line 1: did not find expected node content",
		"kind: Gateway\n\nmetadata: \xff\n":   "line 3: the input is not text in UTF-8",
		"kind: Gateway\nmetadata: \x00\n":     "line 2: the input is not text in UTF-8",
		"a:\n " + strings.Repeat("[", 2<<20):  "line 2: exceeded max depth",
		"- 1":                                 "line 1: expected an object with apiVersion, kind and metadata",
		"\n\napiVersion: v1\nmetadata: {name: x}\n": "line 3: the object has no kind",
		"apiVersion: gateway.networking.k8s.io/v9\nkind: Gateway\nmetadata: {name: x}\n": "line 1: Gateway x has version " +
			"gateway.networking.k8s.io/v9, which is not known; the known versions are gateway.networking.k8s.io/v1",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {}\n": "line 1: the Gateway has no name",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: x}\nspec: {listeners: [{port: " +
			"https}]}\n": "line 4: " +
			"cannot unmarshal !!str `https`",
		strings.Repeat("# comment\n", 2<<20): "the input is larger than 16 MiB",
	} {
		if _, err := service.Parse(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// TestManyRoutes checks that a large input is matched in time that grows with its size, not with its square.
func TestManyRoutes(t *testing.T) {
	var b strings.Builder
	b.WriteString(strings.Replace(gateway, "FROM", "{from: All}", 1))
	const n = 10_000
	for i := range n {
		text := route("{name: edge, namespace: infra}", fmt.Sprintf("h%d.example.com", i))
		b.WriteString(strings.Replace(text, "name: web", fmt.Sprintf("name: web%d", i), 1) + "---\n")
	}
	start := time.Now()
	hosts := parse(t, b.String()).Hosts()
	if len(hosts) != n {
		t.Errorf("%d hostnames, want %d", len(hosts), n)
	}
	t.Logf("%d KiB in %v", b.Len()>>10, time.Since(start))
}

func FuzzParse(f *testing.F) {
	f.Add(gateway)
	f.Add(route("{name: edge}", "www.example.com"))
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := service.Parse(strings.NewReader(text)); err == nil {
			o.Hosts()
		}
	})
}
