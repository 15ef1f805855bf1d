package egress

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/forward"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/plugin/dnsnameresolver"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// TestPlugin runs CoreDNS with our plugin against a real API server, with the rights of its manifest.
func TestPlugin(t *testing.T) {
	m := startManaged(t)
	if err := m.ApplyFS(os.DirFS("../../../deploy/kubernetes/egress"), "coredns.yaml"); err != nil {
		t.Fatal(err)
	}
	p := &plugged{managed: m, answers: map[string]string{}}
	p.upstream = p.serveUpstream(t)
	t.Run("entries", func(t *testing.T) { testEntries(t, p) })
	t.Run("burst", func(t *testing.T) { testBurst(t, p) })
	t.Run("same names", func(t *testing.T) { testSameNames(t, p) })
	t.Run("refused", func(t *testing.T) { testRefusedAddress(t, p) })
	t.Run("bounds", func(t *testing.T) { testStatusBounds(t, p) })
}

// plugged is a cluster, and names that resolve.
type plugged struct {
	*managed
	upstream string
	mu       sync.Mutex
	answers  map[string]string // records by "name TYPE"; other names do not exist
}

func (p *plugged) set(question, records string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[question] = records
}

func (p *plugged) serveUpstream(t *testing.T) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	s := &dns.Server{PacketConn: pc, NotifyStartedFunc: func() { close(started) },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
			p.mu.Lock()
			records, ok := p.answers[strings.ToLower(r.Question[0].Name)+" "+dns.TypeToString[r.Question[0].Qtype]]
			p.mu.Unlock()
			m := new(dns.Msg)
			m.SetReply(r)
			if !ok {
				m.Rcode = dns.RcodeNameError
			}
			for line := range strings.Lines(records) {
				if rr, err := dns.NewRR(line); err == nil {
					m.Answer = append(m.Answer, rr)
				}
			}
			_ = w.WriteMsg(m)
		})}
	go func() { _ = s.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { _ = s.Shutdown() })
	return pc.LocalAddr().String()
}

// coredns starts a CoreDNS with lines for the directive, and returns a function that queries it.
func (p *plugged) coredns(t *testing.T, lines string) (ask func(question string) *dns.Msg) {
	t.Helper()
	if !slices.Contains(dnsserver.Directives, dnsnameresolver.Name) {
		dnsserver.Directives = slices.Insert(slices.Clone(dnsserver.Directives), slices.Index(dnsserver.Directives, "cache"),
			dnsnameresolver.Name)
	}
	caddy.Quiet, dnsserver.Quiet = true, true
	cfg, err := p.ConfigFor("kube-system", "coredns")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.Kubeconfig(cfg, kubeconfig); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(".:0 {\n bind 127.0.0.1\n %s {\n namespaces %s\n kubeconfig %s\n %s\n }\n cache 30\n forward . "+
		"%s\n}\n", dnsnameresolver.Name, ovnNamespace, kubeconfig, lines, p.upstream)
	i, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(text), Filepath: "Corefile", ServerTypeName: "dns"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range i.ShutdownCallbacks() {
			t.Error(err)
		}
		_ = i.Stop()
	})
	at := i.Servers()[0].LocalAddr().String()
	return func(question string) *dns.Msg {
		name, qtype, _ := strings.Cut(question, " ")
		q := new(dns.Msg)
		q.SetQuestion(name, dns.StringToType[qtype])
		reply, _, err := (&dns.Client{Timeout: 20 * time.Second}).Exchange(q, at)
		if err != nil {
			t.Errorf("%s: %v", question, err)
			return new(dns.Msg)
		}
		return reply
	}
}

// create creates the object of a pattern, and returns its key.
func (p *plugged) create(t *testing.T, pattern string) types.NamespacedName {
	t.Helper()
	o := &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Namespace: ovnNamespace,
		Name: enforce.ObjectName(must.Pattern(pattern), 0)},
		Spec: v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(pattern)}}
	if err := p.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(o)
}

// status formats the status of an object, with the names in order: each with its addresses, failures and reason.
func (p *plugged) status(key types.NamespacedName) (string, *v1alpha1.DNSNameResolver, error) {
	o := &v1alpha1.DNSNameResolver{}
	if err := p.admin.Get(context.Background(), key, o); err != nil {
		return "", nil, err
	}
	var out []string
	for _, n := range o.Status.ResolvedNames {
		line := string(n.DNSName)
		for _, a := range n.ResolvedAddresses {
			line += " " + a.IP
		}
		if n.ResolutionFailures > 0 {
			line += fmt.Sprintf(" failures=%d", n.ResolutionFailures)
		}
		for _, c := range n.Conditions {
			line += " " + c.Reason
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return strings.Join(out, "; "), o, nil
}

func (p *plugged) wantStatus(t *testing.T, what string, key types.NamespacedName, want string) {
	t.Helper()
	soon(t, what, func() error {
		got, _, err := p.status(key)
		if err == nil && got != want {
			err = fmt.Errorf("status is\n%s, want\n%s", got, want)
		}
		return err
	})
}

// testEntries checks the first write, another entry, a change of an entry, a failure, underscores, and a name that was
// queried too early.
func testEntries(t *testing.T, p *plugged) {
	ask := p.coredns(t, "minTTL 1\nfailureThreshold 2")
	p.set("early.one.test. A", "early.one.test. 300 A 192.0.2.1")
	p.set("a.one.test. A", "a.one.test. 300 A 192.0.2.2")
	p.set("a.one.test. AAAA", "a.one.test. 300 AAAA 2001:db8::2")
	p.set("_b.one.test. A", "_b.one.test. 2 A 192.0.2.3")
	ask("early.one.test. A")
	key := p.create(t, "*.one.test.")
	p.wantStatus(t, "asked for before there was an object", key, "early.one.test. 192.0.2.1 NOERROR")
	ask("a.one.test. A")
	p.wantStatus(t, "another entry", key, "a.one.test. 192.0.2.2 NOERROR; early.one.test. 192.0.2.1 NOERROR")
	ask("a.one.test. AAAA")
	p.wantStatus(t, "another address", key, "a.one.test. 192.0.2.2 2001:db8::2 NOERROR; early.one.test. 192.0.2.1 NOERROR")
	ask("_b.one.test. A")
	p.wantStatus(t, "an underscore", key,
		"_b.one.test. 192.0.2.3 NOERROR; a.one.test. 192.0.2.2 2001:db8::2 NOERROR; early.one.test. 192.0.2.1 NOERROR")
	p.mu.Lock()
	delete(p.answers, "_b.one.test. A")
	p.mu.Unlock()
	soon(t, "a name that is gone", func() error {
		ask("_b.one.test. A")
		got, _, err := p.status(key)
		if err == nil && strings.Contains(got, "_b.") {
			err = fmt.Errorf("status is %s", got)
		}
		return err
	})
}

// testBurst queries 100 new names under one wildcard in one second, half of them at each of two replicas.
func testBurst(t *testing.T, p *plugged) {
	first, second := p.coredns(t, ""), p.coredns(t, "")
	key := p.create(t, "*.two.test.")
	p.set("ready.two.test. A", "ready.two.test. 1 A 192.0.2.200")
	soon(t, "both replicas to know the object", func() error {
		first("ready.two.test. A")
		second("ready.two.test. A")
		if got, _, err := p.status(key); err != nil || got == "" {
			return fmt.Errorf("status is %q, %v", got, err)
		}
		return nil
	})
	for i := range 100 {
		host := fmt.Sprintf("n%02d.two.test.", i)
		p.set(host+" A", fmt.Sprintf("%s 300 A 192.0.2.%d", host, i))
	}
	began := time.Now()
	for i := range 100 {
		[]func(string) *dns.Msg{first, second}[i%2](fmt.Sprintf("n%02d.two.test. A", i))
		// the rate at which the stock plugin lost 85 of 100 names
		time.Sleep(time.Until(began.Add(time.Duration(i) * 10 * time.Millisecond)))
	}
	defer func() { t.Logf("writes of all replicas so far: %v", statusWrites(t)) }()
	soon(t, "all hundred names", func() error {
		got, _, err := p.status(key)
		for i := range 100 {
			if err == nil && !strings.Contains(got, fmt.Sprintf("n%02d.two.test. 192.0.2.%d NOERROR", i, i)) {
				err = fmt.Errorf("n%02d is missing", i)
			}
		}
		return err
	})
}

// testSameNames checks that replicas that see the same answers at once agree, without duplicates.
func testSameNames(t *testing.T, p *plugged) {
	replicas := []func(string) *dns.Msg{p.coredns(t, ""), p.coredns(t, ""), p.coredns(t, "")}
	key := p.create(t, "*.three.test.")
	var want []string
	for i := range 20 {
		host := fmt.Sprintf("n%02d.three.test.", i)
		p.set(host+" A", fmt.Sprintf("%s 300 A 192.0.2.%d", host, i))
		want = append(want, fmt.Sprintf("%s 192.0.2.%d NOERROR", host, i))
	}
	var wg sync.WaitGroup
	for _, ask := range replicas {
		wg.Go(func() {
			for i := range 20 {
				ask(fmt.Sprintf("n%02d.three.test. A", i))
			}
		})
	}
	wg.Wait()
	p.wantStatus(t, "what three replicas saw", key, strings.Join(want, "; "))
}

// testRefusedAddress checks that refused addresses are not learned, and the Events about them. The cluster defines the
// addresses of nodes, pods and services.
func testRefusedAddress(t *testing.T, p *plugged) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "four"},
		Spec: corev1.NodeSpec{PodCIDR: "10.4.0.0/24", PodCIDRs: []string{"10.4.0.0/24"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.40"},
			{Type: corev1.NodeExternalIP, Address: "192.0.2.41"}}}}
	if err := p.admin.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	ask, permitting := p.coredns(t, "refuse 198.51.100.0/24"), p.coredns(t, "permit nodes services")
	addrs := func(all ...string) (records string) {
		for _, a := range all {
			records += "a.four.test. 1 A " + a + "\n"
		}
		return records
	}
	p.set("a.four.test. A", addrs("169.254.169.254", "10.96.0.1", "10.96.77.7", "192.0.2.40", "192.0.2.41", "10.4.0.9",
		"198.51.100.1", "192.0.2.1"))
	key := p.create(t, "a.four.test.")
	learns := func(what, want string, ask func(string) *dns.Msg) {
		t.Helper()
		soon(t, what, func() error {
			ask("a.four.test. A")
			if got, _, _ := p.status(key); got != "a.four.test. "+want+" NOERROR" {
				return fmt.Errorf("status is %s", got)
			}
			return nil
		})
	}
	learns("the object to be known", "192.0.2.1", ask)
	p.wantRefusals(t, key.Name, "a cloud metadata address", "an address of a service", "an address of a node",
		"an address of a pod", "in a range that is refused")
	late := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "late"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.42"}}}}
	if err := p.admin.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	key = p.create(t, "b.four.test.")
	soon(t, "a node that came later to be refused", func() error {
		p.set("b.four.test. A", "b.four.test. 1 A 192.0.2.42")
		ask("b.four.test. A")
		return p.refusals(key.Name, "an address of a node")
	})
	key = client.ObjectKey{Namespace: key.Namespace, Name: enforce.ObjectName(must.Pattern("a.four.test."), 0)}
	learns("exceptions to be made", "192.0.2.1 10.96.0.1 10.96.77.7 192.0.2.40 192.0.2.41 198.51.100.1", permitting)
}

// refusals reports whether there is exactly one Event for each of the reasons.
func (p *plugged) refusals(name string, causes ...string) error {
	var l corev1.EventList
	if err := p.admin.List(context.Background(), &l, client.InNamespace(ovnNamespace)); err != nil {
		return err
	}
	var got []string
	for _, e := range l.Items {
		if _, why, ok := strings.Cut(e.Message, "which is not allowed: "); ok && e.Reason == "AddressRefused" &&
			e.InvolvedObject.Name == name {
			got = append(got, why)
		}
	}
	slices.Sort(got)
	slices.Sort(causes)
	if !slices.Equal(got, causes) {
		return fmt.Errorf("Events about %q, want %q", got, causes)
	}
	return nil
}

func (p *plugged) wantRefusals(t *testing.T, name string, causes ...string) {
	t.Helper()
	soon(t, "Events", func() error { return p.refusals(name, causes...) })
}

// testStatusBounds checks that many names do not make an object that the API server cannot store.
func testStatusBounds(t *testing.T, p *plugged) {
	ask := p.coredns(t, "")
	key := p.create(t, "*.five.test.")
	for i := range 2000 {
		host := fmt.Sprintf("n%04d.five.test.", i)
		p.set(host+" A", fmt.Sprintf("%s 300 A 198.51.%d.%d", host, i/250, i%250))
	}
	soon(t, "the object to be known", func() error {
		ask("n0000.five.test. A")
		if got, _, _ := p.status(key); got == "" {
			return fmt.Errorf("nothing is learned")
		}
		return nil
	})
	for i := range 2000 {
		ask(fmt.Sprintf("n%04d.five.test. A", i))
	}
	soon(t, "the last names to find no room", func() error {
		var l corev1.EventList
		if err := p.admin.List(context.Background(), &l, client.InNamespace(ovnNamespace)); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.Reason == "NoRoom" && e.InvolvedObject.Name == key.Name {
				return nil
			}
		}
		return fmt.Errorf("no Event about it")
	})
	_, o, err := p.status(key)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d entries, %d bytes", len(o.Status.ResolvedNames), len(whole))
	if len(whole) > 256<<10 {
		t.Errorf("the object has %d bytes", len(whole))
	}
}

// statusWrites returns the number of writes of all replicas of this process, by result.
func statusWrites(t *testing.T) map[string]float64 {
	t.Helper()
	all, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range all {
		if f.GetName() != "coredns_dnsnameresolver_status_writes_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return out
}
