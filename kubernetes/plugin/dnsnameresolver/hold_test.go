package dnsnameresolver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// agent programs addresses when the test permits it.
type agent struct {
	mu       sync.Mutex
	got      []hold.Learned
	let      chan error // one value per Program; closed: at once
	endpoint string
}

func (a *agent) Prefixes() ([]netip.Prefix, <-chan struct{}) {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("198.51.100.0/24")}, nil
}

func (a *agent) Program(ctx context.Context, l hold.Learned) error {
	a.mu.Lock()
	a.got = append(a.got, l)
	a.mu.Unlock()
	select {
	case err := <-a.let:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *agent) Explain(context.Context, string, netip.Addr) (hold.Explanation, error) {
	return hold.Explanation{}, errors.New("not asked for here")
}

// files creates a self-signed certificate that both sides use.
func files(t *testing.T) hold.Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "both"},
		DNSNames: []string{hold.AgentName, hold.PluginName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f := hold.Files{Cert: filepath.Join(t.TempDir(), "crt"), Key: filepath.Join(t.TempDir(), "key"),
		Peers: []string{hold.AgentName}}
	f.CA = f.Cert
	for file, b := range map[string]*pem.Block{f.Cert: {Type: "CERTIFICATE", Bytes: der},
		f.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// newAgent starts an agent, and a rig whose plugin knows it.
func newAgent(t *testing.T, change func(*options)) (*rig, *agent) {
	t.Helper()
	a := &agent{let: make(chan error)}
	f := files(t)
	server := f
	server.Peers = []string{hold.PluginName}
	conf, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.endpoint = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = hold.Serve(ctx, ln, conf, a) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	r := newRig(t, func(o *options) {
		o.agents, o.tls, o.timeout = []string{a.endpoint}, f, 10*time.Second
		if change != nil {
			change(o)
		}
	})
	eventually(t, "the connection", func() bool { return r.plugin.engine.hold.Agents()[0].Connected })
	return r, a
}

// TestHold checks that the reply is sent only after the agent has programmed the address.
func TestHold(t *testing.T) {
	r, a := newAgent(t, nil)
	r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1\na.example.com. 30 A 10.1.2.3")
	replies := make(chan *dns.Msg)
	go func() { replies <- r.ask(r.plugin, "a.example.com. A") }()
	select {
	case m := <-replies:
		t.Fatalf("the reply did not wait: %v", m)
	case a.let <- nil:
	}
	if m := <-replies; m == nil || len(m.Answer) != 2 {
		t.Errorf("reply is %v", m)
	}
	if m := r.ask(r.plugin, "a.example.com. A"); m == nil { // known: it does not wait for the agent
		t.Error("no reply")
	}
	want := []hold.Learned{{Pattern: "*.example.com.", Name: "a.example.com.",
		Addrs: []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("192.0.2.1")}, Lease: 35 * time.Second}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(want, a.got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("messages to the agent (-want +got):\n%s", diff)
	}
}

// TestHoldRunsOut checks the configured actions after a timeout.
func TestHoldRunsOut(t *testing.T) {
	tests := []struct {
		act  action
		want func(*dns.Msg) bool
	}{
		{answer, func(m *dns.Msg) bool { return m != nil && len(m.Answer) == 1 }},
		{servfail, func(m *dns.Msg) bool { return m != nil && m.Rcode == dns.RcodeServerFailure && len(m.Answer) == 0 }},
		{drop, func(m *dns.Msg) bool { return m == nil }},
	}
	for _, tt := range tests {
		r, _ := newAgent(t, func(o *options) { o.timeout, o.onTimeout = time.Millisecond, tt.act })
		name := r.create("*.example.com.")
		r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
		if m := r.ask(r.plugin, "a.example.com. A"); !tt.want(m) {
			t.Errorf("action %d: reply is %v", tt.act, m)
		}
		r.want(name, "a.example.com. 192.0.2.1"+ok) // learned nevertheless
		r.authority.set("b.example.com. A", "NXDOMAIN")
		if m := r.ask(r.plugin, "b.example.com. A"); m == nil || m.Rcode != dns.RcodeNameError {
			t.Errorf("action %d: a reply without addresses is %v", tt.act, m)
		}
	}
}

// TestExtendedError checks that a client with EDNS gets the reason.
func TestExtendedError(t *testing.T) {
	r, a := newAgent(t, func(o *options) { o.onTimeout = servfail })
	r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	m := new(dns.Msg)
	m.SetQuestion("a.example.com.", dns.TypeA)
	m.SetEdns0(1232, false)
	c := &client{}
	go func() { a.let <- errors.New("no such set") }()
	code, err := r.plugin.ServeDNS(t.Context(), c, m)
	if err != nil || !plugin.ClientWrite(code) || len(c.got) != 1 {
		t.Fatalf("ServeDNS = %d, %v, %d replies", code, err, len(c.got))
	}
	if o := c.got[0].IsEdns0(); o == nil || len(o.Option) != 1 || o.Option[0].Option() != dns.EDNS0EDE {
		t.Errorf("reply is %v", c.got[0])
	}
}

// TestHoldOff checks that agents get the addresses and no reply waits.
func TestHoldOff(t *testing.T) {
	r, a := newAgent(t, func(o *options) { o.wait = waitNone })
	r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	if m := r.ask(r.plugin, "a.example.com. A"); m == nil || len(m.Answer) != 1 {
		t.Errorf("reply is %v", m)
	}
	a.let <- nil
}

// TestLingers checks that answers are held as before while a deleted object is created again. Their addresses are
// stored in the new object, also if it appeared while the query was in flight.
func TestLingers(t *testing.T) {
	r, a := newAgent(t, nil)
	close(a.let)
	e, name := r.plugin.engine, r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	r.authority.set("b.example.com. A", "b.example.com. 30 A 192.0.2.2")
	old := r.object(name)
	r.api.remove(name)
	eventually(t, "the deletion", func() bool { return !old.isDeletedAt().IsZero() })
	old.setDeletedAt(time.Now().Add(time.Hour)) // independent of the speed of the machine
	e.rebuild()
	r.ask(r.plugin, "a.example.com. A")
	a.mu.Lock()
	held := len(a.got)
	a.mu.Unlock()
	if held != 1 {
		t.Errorf("the agent got %d answers before the reply", held)
	}
	r.api.create("*.example.com.")
	eventually(t, "the new object", func() bool { return old.current() != old })
	e.record([]*object{old}, learn.Observation{Name: "b.example.com.", Type: dns.TypeA,
		Addrs: []learn.Address{{Addr: netip.MustParseAddr("192.0.2.2"), TTL: 30 * time.Second}}})
	r.want(name, "a.example.com. 192.0.2.1"+ok+"; b.example.com. 192.0.2.2"+ok)

	r.api.remove(name)
	last := old.current()
	eventually(t, "the deletion", func() bool { return !last.isDeletedAt().IsZero() })
	last.setDeletedAt(time.Now().Add(-linger))
	e.rebuild()
	if n := len(e.tree.Load().Append(nil, "a.example.com.")); n != 0 {
		t.Errorf("%d objects are known long after", n)
	}
}

func (o *object) isDeletedAt() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deletedAt
}

func (o *object) setDeletedAt(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deletedAt = at
}

// TestPodAddress checks that an answer with the address of a pod does not open the firewall to it.
func TestPodAddress(t *testing.T) {
	r, a := newAgent(t, func(o *options) { o.permit = []netip.Prefix{netip.MustParsePrefix("198.51.100.9/32")} })
	close(a.let)
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A",
		"a.example.com. 30 A 198.51.100.7\na.example.com. 30 A 198.51.100.9\na.example.com. 30 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1 198.51.100.9"+ok)
	r.authority.set("a.example.com. AAAA",
		"a.example.com. 30 AAAA 64:ff9b::198.51.100.7\na.example.com. 30 AAAA 2002:c633:6407::1\na.example.com. 30 AAAA "+
			"64:ff9b::192.0.2.1")
	r.ask(r.plugin, "a.example.com. AAAA")
	r.want(name, "a.example.com. 192.0.2.1 198.51.100.9 64:ff9b::c000:201"+ok)
}

func TestEndpoints(t *testing.T) {
	yes, no, port, web := true, false, int32(6642), "stream"
	slices := map[string]*discoveryv1.EndpointSlice{
		"one": {Ports: []discoveryv1.EndpointPort{{Name: &web, Port: &port}}, Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}},
			{Addresses: []string{"192.0.2.1"}},
			{Addresses: []string{"192.0.2.3"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}},
			{Addresses: []string{"192.0.2.4"}, Conditions: discoveryv1.EndpointConditions{Ready: &no, Serving: &yes}},
		}},
		"two": {Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"2001:db8::1"}}}},
	}
	if diff := cmp.Diff([]string{"192.0.2.1:7000", "192.0.2.2:7000", "192.0.2.4:7000", "[2001:db8::1]:7000"},
		endpoints(slices, "7000")); diff != "" {
		t.Errorf("by number (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"192.0.2.1:6642", "192.0.2.2:6642", "192.0.2.4:6642"},
		endpoints(slices, "stream")); diff != "" {
		t.Errorf("by name (-want +got):\n%s", diff)
	}
}

// TestAllAgentsConnected checks that a status is written as often as before if agents are disconnected: it is all they
// have.
func TestAllAgentsConnected(t *testing.T) {
	if newRig(t, nil).plugin.engine.allAgentsConnected() {
		t.Error("there are no agents, and all hear")
	}
	r, a := newAgent(t, nil)
	e := r.plugin.engine
	eventually(t, "the agent to hear", e.allAgentsConnected)
	e.hold.SetAgents([]string{a.endpoint, "127.0.0.1:1"})
	if e.allAgentsConnected() {
		t.Error("one agent cannot be reached, and all hear")
	}
	e.hold.SetAgents(nil)
	if e.allAgentsConnected() {
		t.Error("no agent is left, and all hear")
	}
}
