package agent

import (
	"bufio"
	"context"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
	"github.com/nameplane/nameplane/kubernetes/test/authority"
)

// protected are addresses that must not be opened in the cluster of these tests, with their kinds.
var protected = map[string]string{
	"169.254.169.254":    "a cloud metadata address",
	"fd00:ec2::254":      "a cloud metadata address",
	"100.100.100.200":    "a cloud metadata address",
	"198.51.100.7":       "an address of a node",
	"198.51.100.8":       "an address of a node", // from the annotation of OVN-Kubernetes
	"10.96.0.1":          "an address of a service",
	"10.128.3.4":         "an address of a pod",
	"10.200.0.9":         "an address of a pod", // from podCIDRs
	"127.0.0.1":          "a loopback address",
	"::1":                "a loopback address",
	"0.0.0.0":            "an unspecified address",
	"224.0.0.1":          "a multicast address",
	"255.255.255.255":    "a reserved address",
	"fe80::1":            "a link-local address",
	"64:ff9b::a9fe:a9fe": "a cloud metadata address",
	"64:ff9b::a60:1":     "an address of a service",
	"2002:a9fe:a9fe::1":  "a cloud metadata address",
	"2002:c633:6407::1":  "an address of a node",
	"2a0f:64::a9fe:a9fe": "a cloud metadata address", // in the network's own NAT64 prefix
	"192.0.2.200":        "in a range that is refused",
}

var hostileOptions = Options{ClusterSubnets: []netip.Prefix{prefix("10.128.0.0/14"), prefix("fd01::/48")},
	Refuse: []netip.Prefix{prefix("192.0.2.192/26")}, NAT64: []netip.Prefix{specialaddrtest.Prefix}}

// hostileObjects returns a cluster with one rule, for www.example.com.
func hostileObjects() objects {
	n := newNode("n1", map[string]string{node.HostsAnnotation: `["198.51.100.8/24"]`}, "198.51.100.7")
	n.Spec.PodCIDRs = []string{"10.200.0.0/24"}
	services := &networkingv1.ServiceCIDR{Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}}
	return objects{
		firewalls: []apiv1.EgressFirewall{ef("shop", 1, allow("www.example.com"))},
		nodes:     []corev1.Node{n},
		services:  []client.Object{services},
	}
}

// startHostile runs an engine that reads objects, until the test ends.
func startHostile(t *testing.T, d *tables, o func() objects) *engine {
	t.Helper()
	e, r := newEngine(d, time.Hour), newReader(hostileOptions)
	e.read = func(context.Context) (reading, error) { return r.read(o()), nil }
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return e
}

// peer is a client of an agent that sends arbitrary messages.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Scanner
	id   int
}

// dialPeer starts an agent on loopback and connects to it with a valid certificate.
func dialPeer(t *testing.T, e *engine) *peer {
	t.Helper()
	ca := authority.New(t)
	files := func(name, other string) hold.Files {
		cert, key := ca.Issue(name, pkix.Name{CommonName: name}, name)
		return hold.Files{Cert: cert, Key: key, CA: ca.CA(), Peers: []string{other}}
	}
	conf, err := files(hold.AgentName, hold.PluginName).Server()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := hold.Serve(ctx, ln, conf, &agent{engine: e}); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	conn, err := files(hold.PluginName, hold.AgentName).Dial(t.Context(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := &peer{t: t, conn: conn, in: bufio.NewScanner(conn)}
	if hello := p.read(); hello.Op != "hello" {
		t.Fatalf("the agent says %+v, want hello", hello)
	}
	return p
}

type reply struct {
	Op    string `json:"op"`
	ID    int    `json:"id"`
	Error string `json:"error"`
}

func (p *peer) read() (r reply) {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if !p.in.Scan() {
		p.t.Fatalf("the agent has left: %v", p.in.Err())
	}
	if err := json.Unmarshal(p.in.Bytes(), &r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// open requests addresses for www.example.com and returns the error in the reply.
func (p *peer) open(lease time.Duration, addrs ...string) string {
	p.t.Helper()
	p.id++
	list, err := json.Marshal(addrs)
	if err != nil {
		p.t.Fatal(err)
	}
	const line = `{"op":"program","id":%d,"pattern":"www.example.com.","name":"www.example.com.","addrs":%s,"leaseMs":%d}`
	if _, err := fmt.Fprintf(p.conn, line+"\n", p.id, list, lease.Milliseconds()); err != nil {
		p.t.Fatal(err)
	}
	r := p.read()
	if r.Op != "done" || r.ID != p.id {
		p.t.Fatalf("the agent says %+v, want done %d", r, p.id)
	}
	return r.Error
}

// TestHostilePeer has a peer with a valid certificate that requests metadata, node, service, pod and special addresses,
// and others for ten years. The agent opens none of them.
func TestHostilePeer(t *testing.T) {
	const decade = 10 * 365 * 24 * time.Hour
	d := newTables()
	p := dialPeer(t, startHostile(t, d, hostileObjects))
	for a, what := range protected {
		if got := p.open(time.Minute, a); !strings.Contains(got, what) || !strings.Contains(got, "--permit") {
			t.Errorf("open %s: %q, want that it is %s, and what permits it", a, got, what)
		}
		if got := p.open(decade, a); got == "" {
			t.Errorf("open %s for ten years: no error", a)
		}
	}
	for _, a := range specialaddrtest.Hostile {
		if got := p.open(time.Minute, a.String()); got == "" {
			t.Errorf("open %s: no error", a)
		}
	}
	got, want := p.open(decade, "203.0.113.1"), "lease of 315360000000 ms is not between 1 ms and 24h0m0s"
	if got != want {
		t.Errorf("open a public address for ten years: %q, want %q", got, want)
	}
	got = p.open(time.Minute, "203.0.113.2", "169.254.169.254", "203.0.113.3")
	if !strings.HasPrefix(got, "169.254.169.254 is refused") {
		t.Errorf("open metadata among others: %q", got)
	}
	if got := p.open(24*time.Hour, "203.0.113.4"); got != "" {
		t.Errorf("open a public address: %q", got)
	}
	expect(t, d, www, "203.0.113.2", "203.0.113.3", "203.0.113.4")
}

// TestHostileStatus checks that protected addresses open nothing if they are in the status of a DNSNameResolver, or
// were left in the database by an agent that did not know the cluster's networks.
func TestHostileStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, o := newTables(), hostileObjects()
		bad := strings.Join(slices.Sorted(maps.Keys(protected)), " ")
		o.resolvers = []v1alpha1.DNSNameResolver{resolver("www.example.com.", "1", "www.example.com. 203.0.113.1 "+bad)}
		old := newEngine(d, time.Hour)
		old.read = func(context.Context) (reading, error) {
			in := newReader(hostileOptions).read(o)
			in.policy = learn.Policy{}
			return in, nil
		}
		if _, err := old.pass(t.Context(), false); err != nil || len(d.set(www)) < 5 {
			t.Fatalf("without the networks of the cluster there is %v (%v)", d.set(www), err)
		}
		startHostile(t, d, func() objects { return o })
		settle()
		expect(t, d, www, "203.0.113.1")
		if kept := d.kept(www); len(kept) > 0 {
			t.Errorf("kept for old connections: %v", kept)
		}
	})
}

// TestAddressOfNewNode checks that an address that a node gets is closed for the name that had it, and is not kept for
// existing connections.
func TestAddressOfNewNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		var mu sync.Mutex
		o := hostileObjects()
		e := startHostile(t, d, func() objects {
			mu.Lock()
			defer mu.Unlock()
			return o
		})
		settle()
		if err := program(e, www, time.Hour, "203.0.113.1", "203.0.113.2"); err != nil {
			t.Fatal(err)
		}
		settle()
		expect(t, d, www, "203.0.113.1", "203.0.113.2")
		mu.Lock()
		o.nodes = append(o.nodes, newNode("n2", nil, "203.0.113.2"))
		mu.Unlock()
		e.Changed()
		settle()
		expect(t, d, www, "203.0.113.1")
		if kept := d.kept(www); len(kept) > 0 {
			t.Errorf("kept for old connections: %v", kept)
		}
	})
}

// TestServiceKind checks that a cluster without ServiceCIDRs uses the Services.
func TestServiceKind(t *testing.T) {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{networkingv1.SchemeGroupVersion})
	if got, err := serviceKind(m); err != nil {
		t.Error(err)
	} else if _, ok := got.(*corev1.Service); !ok {
		t.Errorf("before Kubernetes 1.33: %T", got)
	}
	m.Add(networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"), meta.RESTScopeRoot)
	if got, err := serviceKind(m); err != nil {
		t.Error(err)
	} else if _, ok := got.(*networkingv1.ServiceCIDR); !ok {
		t.Errorf("since Kubernetes 1.33: %T", got)
	}
}

// TestPolicyFollows checks that the policy follows objects that come, change and go, and is otherwise not rebuilt.
func TestPolicyFollows(t *testing.T) {
	r := newReader(Options{})
	service := func(version string, ips ...string) client.Object {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: ips}}
		s.Name, s.ResourceVersion = "web", version
		return s
	}
	n := newNode("n1", nil, "198.51.100.1")
	n.ResourceVersion = "1"
	steps := []struct {
		o    objects
		want string // for 198.51.100.1, 198.51.100.2, 198.51.100.3
	}{
		{objects{nodes: []corev1.Node{n}, services: []client.Object{service("1", "198.51.100.2")}}, "a node, a service, "},
		{objects{nodes: []corev1.Node{n}, services: []client.Object{service("2", "198.51.100.3")}}, "a node, , a service"},
		{objects{nodes: []corev1.Node{n}, services: []client.Object{service("3", "None")}}, "a node, , "},
		{objects{services: []client.Object{service("4", "198.51.100.1")}}, "a service, , "},
		{objects{}, ", , "},
	}
	for i, s := range steps {
		cluster := r.policy(s.o).Cluster
		var got []string
		for _, a := range []string{"198.51.100.1", "198.51.100.2", "198.51.100.3"} {
			got = append(got, cluster.Owner(addr(a)))
		}
		if strings.Join(got, ", ") != s.want {
			t.Errorf("step %d: %q, want %q", i, got, s.want)
		}
		if r.policy(s.o).Cluster != cluster {
			t.Errorf("step %d: built again without a change", i)
		}
	}
}
