package dnsnameresolver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

const ok = " Degraded=False/NOERROR"

// TestLearn checks that all matching objects learn, and that the reply is passed on unchanged.
func TestLearn(t *testing.T) {
	r := newRig(t, nil)
	exact, wild := r.create("a.example.com."), r.create("*.example.com.")
	r.authority.set("a.example.com. A",
		"a.example.com. 30 CNAME b.example.net.\nb.example.net. 30 A 192.0.2.1\nevil.example.net. 30 A 192.0.2.66")
	if m := r.ask(r.plugin, "A.example.com. A"); m == nil || len(m.Answer) != 3 {
		t.Errorf("reply is %v", m)
	}
	r.want(exact, "a.example.com. 192.0.2.1"+ok) // an exact name and a wildcard
	r.want(wild, "a.example.com. 192.0.2.1"+ok)
	r.authority.set("a.example.com. AAAA", "a.example.com. 30 AAAA 2001:db8::1")
	r.ask(r.plugin, "a.example.com. AAAA")
	r.want(exact, "a.example.com. 192.0.2.1 2001:db8::1"+ok)
	r.authority.set("*.example.com. A", "*.example.com. 300 A 192.0.2.9") // a query for the wildcard itself
	r.ask(r.plugin, "*.example.com. A")
	r.want(wild, "*.example.com. 192.0.2.9"+ok+"; a.example.com. 192.0.2.1 2001:db8::1"+ok)
	if got := statusText(r.api.get(wild)); !strings.HasPrefix(got, "*.") {
		t.Errorf("the wildcard's own entry is not first: %s", got)
	}
	r.authority.set("_x.example.com. HTTPS", "_x.example.com. 30 HTTPS 1 . ipv4hint=192.0.2.7")
	r.ask(r.plugin, "_x.example.com. HTTPS")
	r.want(wild, "*.example.com. 192.0.2.9"+ok+"; _x.example.com. 192.0.2.7"+ok+"; a.example.com. 192.0.2.1 2001:db8::1"+
		ok)
	for _, n := range r.api.get(exact).Status.ResolvedNames {
		if a := n.ResolvedAddresses[0]; a.TTLSeconds < 30 || a.TTLSeconds > 31 ||
			time.Since(a.LastLookupTime.Time).Abs() > 10*time.Second {
			t.Errorf("stored %+v", a)
		}
		if n.Conditions[0].Message != "No Error" {
			t.Errorf("condition is %+v", n.Conditions[0])
		}
	}
}

// TestPass checks that queries without a rule are not touched.
func TestPass(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.authority.set("example.com. A", "example.com. 30 A 192.0.2.1")
	r.authority.set("b.a.example.com. A", "b.a.example.com. 30 A 192.0.2.1")
	r.authority.set("a.example.com. ANY", "a.example.com. 30 A 192.0.2.1")
	r.authority.set("c.example.com. A", "c.example.com. 30 A 192.0.2.1")
	for _, q := range []string{"example.com. A", "b.a.example.com. A", "a.example.com. ANY", "x.example.com. TXT",
		"x.example.com. HTTPS", "x.example.com. A"} {
		if m := r.ask(r.plugin, q); m == nil {
			t.Errorf("%s has no reply", q)
		}
	}
	m := new(dns.Msg)
	m.SetQuestion("c.example.com.", dns.TypeA)
	m.Opcode = dns.OpcodeNotify
	if _, err := r.plugin.ServeDNS(t.Context(), &client{}, m); err != nil {
		t.Error(err)
	}
	r.authority.set("z.example.com. A", "z.example.com. 30 A 192.0.2.1")
	r.ask(r.plugin, "z.example.com. A")
	r.want(name, "z.example.com. 192.0.2.1"+ok)
}

// TestFailures checks that failures count behind plugins that report success, or nothing at all.
func TestFailures(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("a.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 5 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	for n, failure := range []string{"NXDOMAIN", "none", "REFUSED", "SERVFAIL", "NXDOMAIN"} {
		r.wait(10 * time.Second)
		r.authority.set("a.example.com. A", failure)
		if m := r.ask(r.plugin, "a.example.com. A"); m == nil != (failure == "none") {
			t.Errorf("%s: reply is %v", failure, m)
		}
		reason := failure
		if failure == "none" {
			reason = "SERVFAIL"
		}
		r.want(name, fmt.Sprintf("a.example.com. 192.0.2.1 failures=%d Degraded=True/%s", n+1, reason))
	}
	r.wait(10 * time.Second)
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "")
}

// TestSilence checks that nothing is learned from a plugin that writes no reply without a failure, or from a client
// that left.
func TestSilence(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("a.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 5 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	r.wait(10 * time.Second)
	r.authority.set("a.example.com. A", "silent")
	r.ask(r.plugin, "a.example.com. A")
	r.authority.set("a.example.com. A", "none")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m := new(dns.Msg)
	m.SetQuestion("a.example.com.", dns.TypeA)
	_, _ = r.plugin.ServeDNS(gone, &client{}, m)
	r.authority.set("a.example.com. AAAA", "a.example.com. 5 AAAA 2001:db8::1")
	r.ask(r.plugin, "a.example.com. AAAA")
	r.want(name, "a.example.com. 192.0.2.1 2001:db8::1"+ok)
}

// TestBurst checks that names that are queried at once, on two replicas, are all stored.
func TestBurst(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	second := r.replica(nil)
	r.known(second, "*.example.com.", true)
	r.api.set(func() { r.api.delay = 5 * time.Millisecond })
	var want []string
	var wg sync.WaitGroup
	for i := range 100 {
		host := fmt.Sprintf("n%02d.example.com.", i)
		r.authority.set(host+" A", fmt.Sprintf("%s 30 A 192.0.2.%d", host, i))
		want = append(want, fmt.Sprintf("%s 192.0.2.%d%s", host, i, ok))
		wg.Go(func() { r.ask(r.plugin, host+" A") })
		wg.Go(func() { r.ask(second, host+" A") })
	}
	wg.Wait()
	r.want(name, strings.Join(want, "; "))
	if w, _ := r.api.counts(); w > 40 {
		t.Errorf("%d writes for what could go together", w)
	}
}

// TestRaces checks that concurrent writes of another client are kept, and ours is written.
func TestRaces(t *testing.T) {
	now := metav1.Now()
	other := v1alpha1.DNSNameResolverResolvedName{DNSName: "other.example.com.",
		ResolvedAddresses: []v1alpha1.DNSNameResolverResolvedAddress{{IP: "192.0.2.99", TTLSeconds: 300,
			LastLookupTime: &now}}}
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 300 A 192.0.2.1")
	r.authority.set("a.example.com. AAAA", "a.example.com. 300 AAAA 2001:db8::1")
	// The very first write.
	r.api.set(func() {
		r.api.between = func() {
			r.api.editLocked(name, func(o *v1alpha1.DNSNameResolver) {
				o.Status.ResolvedNames = append(o.Status.ResolvedNames,
					other)
			})
		}
	})
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok+"; other.example.com. 192.0.2.99")
	// A change of an entry, while indexes change.
	r.api.set(func() {
		r.api.between = func() {
			r.api.editLocked(name, func(o *v1alpha1.DNSNameResolver) { o.Status.ResolvedNames = o.Status.ResolvedNames[1:] })
		}
	})
	r.ask(r.plugin, "a.example.com. AAAA")
	r.want(name, "a.example.com. 192.0.2.1 2001:db8::1"+ok)
	// An entry that another client adds at the same time.
	mine := *other.DeepCopy()
	mine.DNSName = "b.example.com."
	r.api.set(func() {
		r.api.between = func() {
			r.api.editLocked(name, func(o *v1alpha1.DNSNameResolver) {
				o.Status.ResolvedNames = append(o.Status.ResolvedNames,
					mine)
			})
		}
	})
	r.authority.set("b.example.com. A", "b.example.com. 300 A 192.0.2.2")
	r.ask(r.plugin, "b.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1 2001:db8::1"+ok+"; b.example.com. 192.0.2.99 192.0.2.2"+ok)
}

// TestOutage checks that DNS works while the API server is unavailable, and that observations are written when it is
// back.
func TestOutage(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.api.set(func() { r.api.down = true })
	for i := range 3 {
		host := fmt.Sprintf("n%d.example.com.", i)
		r.authority.set(host+" A", host+" 300 A 192.0.2.1")
		if m := r.ask(r.plugin, host+" A"); m == nil {
			t.Errorf("no reply for %s", host)
		}
	}
	r.api.set(func() { r.api.down = false })
	r.want(name, "n0.example.com. 192.0.2.1"+ok+"; n1.example.com. 192.0.2.1"+ok+"; n2.example.com. 192.0.2.1"+ok)
}

// TestForbiddenForAMoment checks an API server that has just started: it forbids both methods of writing at first, and
// then only the one that the role does not allow.
func TestForbiddenForAMoment(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("www.example.com.")
	r.api.set(func() { r.api.noPatch, r.api.noPut = true, true })
	r.authority.set("www.example.com. A", "www.example.com. 300 A 192.0.2.1")
	r.ask(r.plugin, "www.example.com. A")
	eventually(t, "both transports to be refused", func() bool {
		_, refusals := r.api.counts()
		return refusals >= 2
	})
	r.api.set(func() { r.api.noPatch = false })
	r.want(name, "www.example.com. 192.0.2.1"+ok)
}

// TestStockRights checks that the status is replaced with the role of the stock plugin, which does not allow patches.
func TestStockRights(t *testing.T) {
	r := newRig(t, nil)
	r.api.set(func() { r.api.noPatch = true })
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 300 A 192.0.2.1")
	r.authority.set("b.example.com. A", "b.example.com. 300 A 192.0.2.2")
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	r.api.set(func() {
		r.api.between = func() {
			r.api.editLocked(name, func(o *v1alpha1.DNSNameResolver) { o.Labels = map[string]string{"x": "y"} })
		}
	})
	r.ask(r.plugin, "b.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok+"; b.example.com. 192.0.2.2"+ok)
}

// TestStockDefinition checks that a name that the stock definition rejects does not prevent others from being stored.
func TestStockDefinition(t *testing.T) {
	r := newRig(t, nil)
	r.api.set(func() {
		r.api.names = regexp.MustCompile(`^(\*\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){2,}$`)
	})
	name := r.create("*.example.com.")
	r.authority.set("_a.example.com. A", "_a.example.com. 300 A 192.0.2.1")
	r.authority.set("b.example.com. A", "b.example.com. 300 A 192.0.2.2")
	r.ask(r.plugin, "_a.example.com. A")
	r.ask(r.plugin, "b.example.com. A")
	r.want(name, "*.example.com. 192.0.2.1; b.example.com. 192.0.2.2"+ok)
}

// TestRefused checks that refused addresses are not learned, and that an Event names them.
func TestRefused(t *testing.T) {
	r := newRig(t, func(o *options) {
		o.refuse = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}
		o.permit = []netip.Prefix{netip.MustParsePrefix("169.254.20.10/32")}
	})
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A", `a.example.com. 30 A 127.0.0.1
a.example.com. 30 A 169.254.169.254
a.example.com. 30 A 10.96.0.1
a.example.com. 30 A 169.254.20.10
a.example.com. 30 A 192.0.2.1`)
	if m := r.ask(r.plugin, "a.example.com. A"); len(m.Answer) != 5 {
		t.Errorf("the reply was changed: %v", m)
	}
	r.want(name, "a.example.com. 169.254.20.10 192.0.2.1"+ok)
	eventually(t, "Events", func() bool {
		r.api.mu.Lock()
		defer r.api.mu.Unlock()
		return len(r.api.events) == 3 && strings.HasPrefix(r.api.events[0], "AddressRefused: a.example.com. has the address ")
	})
}

// TestTooEarly checks a pod that queries a name before the plugin knows the object.
func TestTooEarly(t *testing.T) {
	r := newRig(t, nil)
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	r.authority.set("a.example.com. AAAA", "a.example.com. 30 AAAA 2001:db8::1")
	r.authority.set("b.example.org. A", "b.example.org. 30 A 192.0.2.2")
	r.ask(r.plugin, "A.example.com. A")
	r.ask(r.plugin, "a.Example.com. AAAA")
	r.ask(r.plugin, "b.example.org. A")
	name := r.create("*.example.com.")
	r.want(name, "a.example.com. 192.0.2.1 2001:db8::1"+ok)
	r.authority.mu.Lock()
	defer r.authority.mu.Unlock()
	if n := r.authority.asked["b.example.org. A"]; n != 1 {
		t.Errorf("a name of no object was asked for %d times", n)
	}
}

// TestRecreated checks that an object that is deleted and created again has its addresses again.
func TestRecreated(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	r.api.remove(name)
	r.known(r.plugin, "*.example.com.", false)
	r.create("*.example.com.")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
}

// TestTombstone checks a deletion that the watch missed.
func TestTombstone(t *testing.T) {
	r := newRig(t, nil)
	name, other := r.create("*.example.com."), r.create("*.example.org.")
	r.plugin.engine.OnDelete(cache.DeletedFinalStateUnknown{Key: "egress/" + name, Obj: r.api.get(name)})
	r.known(r.plugin, "*.example.com.", false)
	r.plugin.engine.OnDelete(cache.DeletedFinalStateUnknown{Key: "egress/" + other})
	r.known(r.plugin, "*.example.org.", false)
}

// TestTwice checks that the first of two objects for one name in one namespace counts. In other namespaces each one
// does.
func TestTwice(t *testing.T) {
	r := newRig(t, nil)
	first := r.create("a.example.com.")
	r.api.edit(first, func(o *v1alpha1.DNSNameResolver) { o.Name, o.UID = "second", "other" })
	r.api.edit(first, func(o *v1alpha1.DNSNameResolver) { o.Namespace, o.UID = "elsewhere", "third" })
	eventually(t, "both namespaces",
		func() bool { return len(r.plugin.engine.tree.Load().Append(nil, "a.example.com.")) == 2 })
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	r.want(first, "a.example.com. 192.0.2.1"+ok)
	r.want("second", "")
	r.api.remove(first)
	eventually(t, "the second", func() bool {
		objects := r.plugin.engine.tree.Load().Append(nil, "a.example.com.")
		return len(objects) == 2 && (objects[0].key.Name == "second" || objects[1].key.Name == "second")
	})
}

// TestDeep checks that names of several levels match a wildcard only if `deep` is set.
func TestDeep(t *testing.T) {
	r := newRig(t, nil)
	deep := r.replica(func(o *options) { o.deep = true })
	name := r.api.create("**.example.com.")
	r.known(deep, "b.a.example.com.", true)
	r.known(r.plugin, "b.a.example.com.", false)
	r.authority.set("b.a.example.com. A", "b.a.example.com. 30 A 192.0.2.1")
	r.ask(deep, "b.a.example.com. A")
	r.want(name, "b.a.example.com. 192.0.2.1"+ok)
}

// TestHoldStatus checks that `hold status` waits for the write, up to the timeout.
func TestHoldStatus(t *testing.T) {
	r := newRig(t, func(o *options) { o.wait, o.timeout, o.onTimeout = waitStatus, 5*time.Second, servfail })
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	if m := r.ask(r.plugin, "a.example.com. A"); m.Rcode != dns.RcodeSuccess {
		t.Errorf("reply is %v", m)
	}
	if got := statusText(r.api.get(name)); got != "a.example.com. 192.0.2.1"+ok {
		t.Errorf("the reply did not wait for %q", got)
	}
	r.plugin.engine.opts.timeout = 20 * time.Millisecond
	r.api.set(func() { r.api.down = true })
	r.authority.set("b.example.com. A", "b.example.com. 30 A 192.0.2.1")
	if m := r.ask(r.plugin, "b.example.com. A"); m.Rcode != dns.RcodeServerFailure || len(m.Answer) != 0 {
		t.Errorf("reply is %v", m)
	}
	if m := r.ask(r.plugin, "a.example.com. A"); m.Rcode != dns.RcodeSuccess {
		t.Errorf("what is stored had to wait: %v", m)
	}
}

// TestRawReply checks that a reply in wire form is held too.
func TestRawReply(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.plugin.Next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, q *dns.Msg) (int, error) {
		m := new(dns.Msg)
		m.SetReply(q)
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET,
			Ttl: 30}, A: net.IPv4(192, 0, 2, 1)}}
		b, err := m.Pack()
		if err == nil {
			_, err = w.Write(b)
		}
		return 0, err
	})
	m := new(dns.Msg)
	m.SetQuestion("a.example.com.", dns.TypeA)
	c := &client{}
	if _, err := r.plugin.ServeDNS(t.Context(), c, m); err != nil || c.raw != 1 || len(c.got) != 0 {
		t.Errorf("%v, %d replies in wire form, %d others", err, c.raw, len(c.got))
	}
	r.want(name, "a.example.com. 192.0.2.1"+ok)
}

// TestFailureMeanwhile checks that a failure is counted if it occurs while its entry is being written.
func TestFailureMeanwhile(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("a.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 1 A 192.0.2.1")
	r.api.set(func() { r.api.delay = 300 * time.Millisecond })
	r.ask(r.plugin, "a.example.com. A")
	o := r.plugin.engine.tree.Load().Append(nil, "a.example.com.")[0]
	eventually(t, "the write to begin", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.writing
	})
	r.authority.set("a.example.com. A", "NXDOMAIN")
	r.plugin.engine.store.clock.offset.Add(int64(5 * time.Second)) // the address has ended by then
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1 failures=1 Degraded=True/NXDOMAIN")
}
