package dnsnameresolver

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// authority is the rest of the chain. It answers from a table.
type authority struct {
	mu sync.Mutex
	// "name type" -> records in lines, a response code, "none" for a failure without a message, "silent"
	answers map[string]string
	asked   map[string]int
}

func newAuthority() *authority {
	return &authority{answers: map[string]string{}, asked: map[string]int{}}
}

func (a *authority) set(question, answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[question] = answer
}

func (a *authority) Name() string { return "authority" }

func (a *authority) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	q := strings.ToLower(r.Question[0].Name) + " " + dns.TypeToString[r.Question[0].Qtype]
	a.mu.Lock()
	answer, ok := a.answers[q]
	a.asked[q]++
	a.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(r)
	code, isCode := dns.StringToRcode[answer]
	switch {
	case answer == "none":
		return dns.RcodeServerFailure, errNoUpstream
	case answer == "silent":
		return dns.RcodeSuccess, nil
	case !ok:
		m.Rcode = dns.RcodeNameError
	case isCode:
		m.Rcode = code
	default:
		for line := range strings.Lines(answer) {
			rr, err := dns.NewRR(line)
			if err != nil {
				panic(err)
			}
			m.Answer = append(m.Answer, rr)
		}
	}
	_ = w.WriteMsg(m)
	return dns.RcodeSuccess, nil // as forward and cache do, whatever the message says
}

var errNoUpstream = plugin.Error("authority", net.ErrClosed)

// client is the DNS client.
type client struct {
	discardWriter
	got []*dns.Msg
	raw int
}

func (c *client) WriteMsg(m *dns.Msg) error { c.got = append(c.got, m); return nil }

// Write counts replies in wire form.
func (c *client) Write(b []byte) (int, error) { c.raw++; return len(b), nil }

// rig is a plugin with an API server and an authority.
type rig struct {
	t         testing.TB
	api       *api
	authority *authority
	plugin    *Plugin
}

func newRig(t testing.TB, change func(*options)) *rig {
	t.Helper()
	r := &rig{t: t, api: newAPI(t), authority: newAuthority()}
	r.plugin = r.replica(change)
	return r
}

// replica returns another plugin with the same API server and authority.
func (r *rig) replica(change func(*options)) *Plugin {
	r.t.Helper()
	o := defaults()
	if change != nil {
		change(&o)
	}
	e := newEngine(o, r.api.store())
	if err := e.start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = e.shutdown() })
	return &Plugin{Next: r.authority, engine: e}
}

// create creates an object and waits until the plugin knows it.
func (r *rig) create(pattern string) string {
	r.t.Helper()
	name := r.api.create(pattern)
	r.known(r.plugin, pattern, true)
	return name
}

func (r *rig) known(p *Plugin, pattern string, want bool) {
	r.t.Helper()
	ask := strings.Replace(pattern, "*", "probe", 1)
	eventually(r.t, "the plugin to know "+pattern,
		func() bool { return len(p.engine.tree.Load().Append(nil, ask)) > 0 == want })
}

// ask sends a query such as "a.example.com. A", and returns the reply or nil.
func (r *rig) ask(p *Plugin, question string) *dns.Msg {
	r.t.Helper()
	name, qtype, _ := strings.Cut(question, " ")
	m := new(dns.Msg)
	m.SetQuestion(name, dns.StringToType[qtype])
	c := &client{}
	_, _ = p.ServeDNS(r.t.Context(), c, m)
	if len(c.got) > 1 {
		r.t.Errorf("%s: %d replies", question, len(c.got))
	}
	if len(c.got) == 0 {
		return nil
	}
	return c.got[0]
}

// want waits until the status of an object is as given.
func (r *rig) want(name, status string) {
	r.t.Helper()
	var got string
	for range 500 {
		if got = sorted(r.api.get(name)); got == status {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.t.Errorf("status of %s is\n%s, want\n%s", name, got, status)
}

// eventually polls until ok returns true, in real time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

// wait advances the clocks of the API server and of the plugins that follow it.
func (r *rig) wait(d time.Duration, replicas ...*Plugin) {
	replicas = append(replicas, r.plugin)
	for _, p := range replicas { // the reply to a write in flight has the old time
		eventually(r.t, "writes to end", func() bool { return !p.engine.writing() })
	}
	r.api.set(func() { r.api.skew += d })
	for _, p := range replicas {
		p.engine.store.clock.offset.Add(int64(d))
	}
}

// writing reports whether a write of any object is in flight.
func (e *engine) writing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range e.objects {
		o.mu.Lock()
		busy := o.writing
		o.mu.Unlock()
		if busy {
			return true
		}
	}
	return false
}

// fixedClient is a client whose address is created once, like that of a socket.
type fixedClient struct {
	*client
	addr net.UDPAddr
}

func (s *fixedClient) RemoteAddr() net.Addr { return &s.addr }

// stored adds an entry whose address is about to end.
func stored(name, addr string) func(*v1alpha1.DNSNameResolver) {
	now := metav1.Now()
	return func(o *v1alpha1.DNSNameResolver) {
		o.Status.ResolvedNames = append(o.Status.ResolvedNames,
			v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(name),
				ResolvedAddresses: []v1alpha1.DNSNameResolverResolvedAddress{{IP: addr, TTLSeconds: 1, LastLookupTime: &now}}})
	}
}

// statusTextOf is statusText for one name.
func statusTextOf(o *v1alpha1.DNSNameResolver, name string) string {
	for s := range strings.SplitSeq(statusText(o), "; ") {
		if strings.HasPrefix(s, name) {
			return s
		}
	}
	return ""
}
