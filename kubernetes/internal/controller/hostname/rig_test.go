package hostname

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

// healthy are the objects of a service at www.example.test that works.
const healthy = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: example.org/edge}
status: {conditions: [{type: Accepted, status: "True", reason: Accepted}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra, uid: g}
spec:
  gatewayClassName: edge
  listeners:
  - {name: web, port: 80, protocol: HTTP, hostname: "*.example.test", allowedRoutes: {namespaces: {from: All}}}
status:
  addresses: [{type: IPAddress, value: 93.184.20.1}]
  conditions:
  - {type: Accepted, status: "True", reason: Accepted}
  - {type: Programmed, status: "True", reason: Programmed}
  listeners:
  - {name: web, attachedRoutes: 1, conditions: [{type: Conflicted, status: "False", reason: NoConflicts}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop, uid: r, generation: 2, creationTimestamp: "2026-11-17T12:00:00Z"}
spec:
  parentRefs: [{name: edge, namespace: infra}]
  hostnames: [www.example.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
status:
  parents:
  - parentRef: {name: edge, namespace: infra}
    controllerName: example.org/edge
    conditions:
    - {type: Accepted, status: "True", reason: Accepted}
    - {type: ResolvedRefs, status: "True", reason: ResolvedRefs}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80, targetPort: http}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
endpoints: [{addresses: [10.0.0.1]}]
`

// load parses the objects of YAML documents.
func load(t *testing.T, text string) (out []*object) {
	t.Helper()
	in := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := in.Decode(&u.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		o, err := parse(u)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
}

// edited returns the healthy objects with replacements.
func edited(pairs ...string) string {
	text := healthy
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			panic("the objects have no " + pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// newNet returns a small internet with the zone example.test.
func newNet() *simnet.Net {
	n := simnet.New(1)
	n.MustServer("93.184.10.1", `
		zone .
		. 60 NS a.root.
		. 60 SOA a.root. hostmaster.root. 1 7200 3600 1209600 60
		a.root. 60 A 93.184.10.1
		test. 60 NS ns.nic.test.
		ns.nic.test. 60 A 93.184.10.2
	`)
	n.MustServer("93.184.10.2", `
		zone test. 900
		test. 60 NS ns.nic.test.
		ns.nic.test. 60 A 93.184.10.2
		example.test. 3600 NS ns1.example.test., ns2.example.test.
		ns1.example.test. 3600 A 93.184.10.3
		ns2.example.test. 3600 A 93.184.10.4
	`)
	for _, addr := range []string{"93.184.10.3", "93.184.10.4"} {
		n.MustServer(addr, `
			zone example.test. 1800
			example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 3600 1209600 1800
			example.test. 3600 NS ns1.example.test., ns2.example.test.
			ns1.example.test. 3600 A 93.184.10.3
			ns2.example.test. 3600 A 93.184.10.4
			www.example.test. 300 A 93.184.20.1
		`)
	}
	return n
}

// both runs a command at both servers of example.test.
func both(n *simnet.Net, command string) {
	n.MustServer("93.184.10.3", command)
	n.MustServer("93.184.10.4", command)
}

// answer serves one HTTP request on a connection in memory.
func answer(_ context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = ours.Close() }()
		if _, err := http.ReadRequest(bufio.NewReader(ours)); err == nil {
			_, _ = io.WriteString(ours, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
		}
	}()
	return theirs, nil
}

// rig is a controller with a fake API server and a simulated internet.
type rig struct {
	*Controller
	net    *simnet.Net
	client client.WithWatch
	events *recorder
	writes atomic.Int32
}

// recorder is an event recorder that keeps the events.
type recorder struct {
	mu  sync.Mutex
	all []string
}

func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%s %s %s: "+note, append([]any{kind, reason, action}, args...)...))
}

func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.all...)
}

func newRig(t *testing.T, objects string) *rig {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	r := &rig{net: newNet(), events: &recorder{}}
	r.client = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.HostnameReport{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string,
			obj client.Object, opts ...client.SubResourceUpdateOption) error {
			r.writes.Add(1)
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}}).Build()
	g := gather.Gatherer{Exchanger: r.net, Connect: answer, Anchors: []secure.Anchor{},
		Hints:   []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("93.184.10.1")}}},
		Options: gather.Options{Seed: 1, Rate: 100, Pace: &resolve.Pace{Rate: 100}}}
	r.Controller = &Controller{options: Options{Gatherer: g, Log: slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry()}, index: newIndex(), schedule: newSchedule(),
		metrics: newMetrics(), strays: make(chan types.NamespacedName, 10), states: map[Key]*state{},
		reports: &reports{client: r.client, events: r.events, have: map[types.NamespacedName]*v1alpha1.HostnameReport{}}}
	for _, k := range kinds {
		r.index.watching(k.name)
	}
	r.put(t, objects)
	return r
}

// put puts objects into the index.
func (r *rig) put(t *testing.T, objects string) {
	t.Helper()
	for _, o := range load(t, objects) {
		r.index.put(o)
	}
}

// run runs the controller until the test ends.
func (r *rig) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	r.begin(ctx)
	for range workers {
		group.Go(func() { r.work(ctx) })
	}
	group.Go(func() { r.settle(ctx) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}

// status returns the status of the report of www.example.test.
func (r *rig) status(t *testing.T) status {
	t.Helper()
	x := &v1alpha1.HostnameReport{}
	at := client.ObjectKey{Namespace: "shop", Name: "www.example.test"}
	if err := r.client.Get(t.Context(), at, x); err != nil {
		t.Fatal(err)
	}
	return x.Status
}

// checks returns the times at which the hostname was looked up, by the queries of one type to one server.
func (r *rig) checks() (out []time.Duration) {
	for _, q := range r.net.History() {
		if q.Server.Addr().String() == "93.184.10.1" && (len(out) == 0 || q.At-out[len(out)-1] > 500*time.Millisecond) {
			out = append(out, q.At)
		}
	}
	return out
}
