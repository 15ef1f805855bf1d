package dnsnameresolver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// TestRewrittenQuestion checks `rewrite`, which changes the question in the request, and changes the reply back.
func TestRewrittenQuestion(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.plugin.Next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
		asked := m.Question[0]
		m.Question[0].Name = "inner.example.org."
		reply := new(dns.Msg)
		reply.SetReply(m)
		reply.Question = []dns.Question{asked}
		rr, err := dns.NewRR(asked.Name + " 30 A 192.0.2.1")
		reply.Answer = []dns.RR{rr}
		return dns.RcodeSuccess, errors.Join(err, w.WriteMsg(reply))
	})
	if m := r.ask(r.plugin, "a.example.com. A"); m == nil || len(m.Answer) != 1 {
		t.Errorf("reply is %v", m)
	}
	r.want(name, "a.example.com. 192.0.2.1"+ok)
}

// TestReusedName checks that an object that replaces another one of the same name between two reads gets nothing that
// was learned for the other one.
func TestReusedName(t *testing.T) {
	for _, first := range []bool{true, false} {
		r := newRig(t, nil)
		name := r.create("*.example.com.")
		if !first {
			r.authority.set("z.example.com. A", "z.example.com. 300 A 192.0.2.9")
			r.ask(r.plugin, "z.example.com. A")
			r.want(name, "z.example.com. 192.0.2.9"+ok)
		}
		replaced := make(chan struct{})
		r.api.set(func() {
			r.api.between = func() { // the watch reports it after this
				o := r.api.objects["egress/"+name].DeepCopy()
				o.UID, o.Spec.Name = "other", "*.example.org."
				o.Status = v1alpha1.DNSNameResolverStatus{}
				stored("b.example.org.", "192.0.2.2")(o)
				r.api.version++
				o.ResourceVersion = strconv.Itoa(r.api.version)
				r.api.objects["egress/"+name] = o
				close(replaced)
			}
		})
		r.authority.set("a.example.com. A", "a.example.com. 300 A 192.0.2.1")
		r.ask(r.plugin, "a.example.com. A")
		<-replaced
		eventually(t, "the write to fail", func() bool {
			o := r.object(name)
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.failed > 0
		})
		for range 9 { // any retries
			r.object(name).delayWrites(0)
			r.plugin.engine.writeOne(t.Context(), r.object(name))
		}
		if got := statusText(r.api.get(name)); got != "b.example.org. 192.0.2.2" {
			t.Errorf("the other object has %s", got)
		}
	}
}

func (r *rig) object(name string) *object {
	e := r.plugin.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, o := range e.objects {
		if key.Name == name {
			return o
		}
	}
	r.t.Fatalf("no object %s", name)
	return nil
}

// TestWarnings checks that a server that invents names does not fill the log.
func TestWarnings(t *testing.T) {
	o := &object{warned: map[warning]time.Time{}}
	now, n := time.Now(), 0
	for i := range 1000 {
		if o.warn(warning{fmt.Sprintf("n%d.example.com.", i), "a loopback address"}, now) {
			n++
		}
	}
	if n != maxWarned {
		t.Errorf("%d warnings of 1000 names at once", n)
	}
	if !o.warn(warning{"n.example.com.", "a loopback address"}, now.Add(warnEvery)) {
		t.Error("no warning later on")
	}
}

// TestOneWarning checks that there is one Event per name and reason, regardless of the number of addresses and answers.
func TestOneWarning(t *testing.T) {
	r := newRig(t, nil)
	r.create("*.example.com.")
	for i := range 20 {
		r.authority.set("a.example.com. A",
			fmt.Sprintf("a.example.com. 30 A 127.0.0.%d\na.example.com. 30 A 127.0.1.%d", i, i))
		r.ask(r.plugin, "a.example.com. A")
	}
	r.authority.set("a.example.com. A", "a.example.com. 30 A 169.254.1.1")
	r.ask(r.plugin, "a.example.com. A")
	r.authority.set("b.example.com. A", "b.example.com. 30 A 127.0.0.1")
	r.ask(r.plugin, "b.example.com. A")
	want := []string{
		"AddressRefused: a.example.com. has the address 127.0.0.0, which is not allowed: a loopback address",
		"AddressRefused: a.example.com. has the address 169.254.1.1, which is not allowed: a link-local address",
		"AddressRefused: b.example.com. has the address 127.0.0.1, which is not allowed: a loopback address",
	}
	var got []string
	eventually(t, "Events", func() bool {
		r.api.set(func() { got = slices.Clone(r.api.events) })
		return len(got) >= len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// TestPauseAfterWrite checks that an object pauses after a write, and longer after a failed one, whatever is learned
// meanwhile.
func TestPauseAfterWrite(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	e, o := r.plugin.engine, r.object(name)
	o.delayWrites(time.Hour)
	r.authority.set("a.example.com. A", "a.example.com. 300 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	if after := e.writeOne(t.Context(), o); after < 59*time.Minute {
		t.Errorf("written, and again after %v", after)
	}
	e.queue.ShutDown() // from here on only the test writes
	e.writers.Wait()
	r.api.set(func() { r.api.down = true })
	for i := range 8 {
		o.delayWrites(0)
		after := e.writeOne(t.Context(), o)
		if rest := o.writeDelay(); rest <= 0 || i == 7 && after < time.Second {
			t.Errorf("attempt %d failed: again after %v, with a rest of %v", i, after, rest)
		}
	}
	r.api.set(func() { r.api.down = false })
	o.delayWrites(0)
	e.writeOne(t.Context(), o)
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	if o.writeDelay() <= 0 {
		t.Error("no rest after a write")
	}
}

// TestStart checks that the objects and the agents are known before the first query.
func TestStart(t *testing.T) {
	r := &rig{t: t, api: newAPI(t), authority: newAuthority()}
	r.api.create("*.example.com.")
	p := r.replica(func(o *options) { o.service = service{"egress", "agents", "9000"} })
	if n := len(p.engine.tree.Load().Append(nil, "a.example.com.")); n != 1 {
		t.Errorf("%d objects are known", n)
	}
	if got := p.engine.hold.Agents(); len(got) != 1 {
		t.Errorf("agents are %+v", got)
	}
}

// TestRecallsAreFew checks that few queries are repeated at a time, however many rules appear.
func TestRecallsAreFew(t *testing.T) {
	r := newRig(t, nil)
	e := r.plugin.engine
	name := r.create("*.example.com.")
	e.recent.note(r.plugin, dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}, nil)
	for range recallers {
		e.recalls <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.recall(ctx, []*object{r.object(name)})
	if n := r.authority.asked["a.example.com. A"]; n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// TestReusedBuffer checks that a plugin may reuse the buffer of a reply after it has written it.
func TestReusedBuffer(t *testing.T) {
	m := new(dns.Msg)
	m.SetQuestion("a.example.com.", dns.TypeA)
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	c := &rawClient{}
	w := &heldWriter{ResponseWriter: c}
	want := slices.Clone(b)
	_, _ = w.Write(b)
	clear(b)
	if err := w.release(); err != nil || !slices.Equal(c.got, want) {
		t.Errorf("%x was sent, want %x: %v", c.got, want, err)
	}
}

type rawClient struct {
	client
	got []byte
}

func (o *rawClient) Write(b []byte) (int, error) { o.got = slices.Clone(b); return len(b), nil }

// TestMemoryIsBounded checks that a server that invents addresses fills a bounded amount of memory, which is freed when
// they end.
func TestMemoryIsBounded(t *testing.T) {
	o := newObject(&v1alpha1.DNSNameResolver{}, must.Pattern("*.example.com"), "replica", 1)
	rules := learn.Rules{MinTTL: 5 * time.Second, Threshold: 5}
	now := time.Now()
	observation := func(i int) learn.Observation {
		l := learn.Observation{Name: fmt.Sprintf("n%d.example.com.", i), Type: dns.TypeA}
		for k := range 1000 {
			l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom4([4]byte{198, byte(i), byte(k >> 8), byte(k)}),
				TTL: time.Minute})
		}
		return l
	}
	sum := func() (n int) {
		for _, m := range o.names {
			n += m.Known()
		}
		return n
	}
	for i := range 200 {
		o.note(rules, observation(i), now)
	}
	if n := sum(); n > maxKnown || n < maxKnown-1000 || n != o.known {
		t.Errorf("%d addresses are remembered, counted as %d", n, o.known)
	}
	for _, m := range o.names { // as after a write
		m.TakePending()
		m.dirty = false
	}
	o.note(rules, observation(201), now.Add(time.Hour))
	if n := sum(); n != 1000 || n != o.known {
		t.Errorf("%d addresses are remembered afterwards, counted as %d", n, o.known)
	}
}

// TestTotalMemoryIsBounded checks that the total memory is bounded when many objects come and go, and that freed memory
// is not counted.
func TestTotalMemoryIsBounded(t *testing.T) {
	r := newRig(t, nil)
	e := r.plugin.engine
	now := e.store.clock.now()
	observation := func(i, n int) learn.Observation {
		l := learn.Observation{Name: fmt.Sprintf("n%d.o%d.example.org.", n, i), Type: dns.TypeA}
		for k := range 4000 {
			l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom4([4]byte{198, byte(i), byte(k >> 8), byte(k)}),
				TTL: time.Minute})
		}
		return l
	}
	live := func(i int) *v1alpha1.DNSNameResolver {
		name := v1alpha1.DNSName(fmt.Sprintf("*.o%d.example.org.", i))
		o := &v1alpha1.DNSNameResolver{Spec: v1alpha1.DNSNameResolverSpec{Name: name}}
		o.Namespace, o.Name, o.UID = "egress", fmt.Sprint("o", i), types.UID(fmt.Sprint("o", i))
		return o
	}
	for i := range 10 {
		e.OnAdd(live(i), false)
		for n := range 16 {
			o := r.object(fmt.Sprint("o", i))
			o.note(e.rules, observation(i, n), now)
		}
	}
	if n := e.known.Load(); n > maxKnownTotal || n < maxKnownTotal-4000 {
		t.Errorf("%d addresses are remembered", n)
	}
	first := r.object("o0")
	e.OnDelete(live(0))
	e.OnAdd(live(0), false) // inherits
	for i := range 5 {
		e.OnDelete(live(i))
	}
	for i := range 10 {
		if i >= 5 {
			r.object(fmt.Sprint("o", i)).writtenAll()
		}
	}
	e.sweep(now.Add(time.Hour))
	first.note(e.rules, observation(0, 1), now.Add(time.Hour)) // from a query that was in flight
	e.mu.Lock()
	defer e.mu.Unlock()
	sum := 0
	for _, o := range slices.Concat(slices.Collect(maps.Values(e.objects)), slices.Collect(maps.Values(e.deleted))) {
		sum += o.known
	}
	if n := int(e.known.Load()); n != sum || n > maxKnownTotal/2 {
		t.Errorf("%d addresses are counted, %d are remembered an hour later", n, sum)
	}
}

// writtenAll sets the state after a write.
func (o *object) writtenAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.names {
		m.TakePending()
		m.dirty = false
	}
}

// TestStoredAreRenewed checks that a replica whose memory is full of invented names still renews the stored ones.
func TestStoredAreRenewed(t *testing.T) {
	rules := learn.Rules{MinTTL: 5 * time.Second, Threshold: 5}
	observation := func(name string, addrs int) learn.Observation {
		l := learn.Observation{Name: name, Type: dns.TypeA}
		for k := range addrs {
			l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom4([4]byte{192, 0, 2 + byte(k>>8), byte(k + 1)}),
				TTL: time.Hour})
		}
		return l
	}
	for _, each := range []int{1, 255} {
		o := newObject(objectOf(entryOf("a.example.com.", 0, 20, 20)), must.Pattern("*.example.com"), "replica", 1)
		for i := range maxMemories + 1 {
			o.note(rules, observation(fmt.Sprintf("n%d.example.com.", i), each), extendStart)
		}
		o.note(rules, observation("a.example.com.", 3), extendStart.Add(19*time.Second))
		w := o.begin(rules, extendStart.Add(19*time.Second))
		if got := w.want[0]; got.Name != "a.example.com." || got.Addrs[0].TTL < 3600 || got.Addrs[1].TTL < 3600 {
			t.Errorf("%d addresses each: stored would be %+v", each, got)
		}
	}
}

// TestManyTTLs checks that an answer in which each address has another TTL causes few messages to agents. No lease is
// longer than the TTL of its address plus the grace.
func TestManyTTLs(t *testing.T) {
	l := learn.Observation{Name: "a.example.com."}
	want := map[netip.Addr]time.Duration{}
	for i := range 4000 {
		a := learn.Address{Addr: netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}),
			TTL: time.Duration(4000-i) * time.Second}
		l.Addrs, want[a.Addr] = append(l.Addrs, a), a.TTL+learn.Grace
	}
	out := leases("*.example.com.", l)
	if len(out) != maxMessages {
		t.Errorf("%d messages", len(out))
	}
	for _, m := range out {
		for _, a := range m.Addrs {
			if m.Lease > want[a] || m.Lease <= 0 {
				t.Errorf("%s gets a lease of %v, want at most %v", a, m.Lease, want[a])
			}
			delete(want, a)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d addresses are in no message", len(want))
	}
}

// TestRecentAge checks that queries are remembered for a limited time.
func TestRecentAge(t *testing.T) {
	var r recent
	r.now.Store(1000)
	r.note(nil, dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}, nil)
	for at, want := range map[int64]int{1000: 1, 1029: 1, 1030: 0} {
		r.now.Store(at)
		if got := len(r.all()); got != want {
			t.Errorf("%d s later %d questions are remembered", at-1000, got)
		}
	}
}

// TestPauseAfter checks that quick writes follow each other soon, and slow ones leave the API server as much time as
// they took.
func TestPauseAfter(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 50 * time.Millisecond, 80 * time.Millisecond: 400 * time.Millisecond,
		200 * time.Millisecond: maxPause, 500 * time.Millisecond: maxPause, 2 * time.Second: 2 * time.Second,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
	for entries, want := range map[int]time.Duration{0: 0, 100: 0, 125: 200 * time.Millisecond,
		300: 1600 * time.Millisecond, 1000: maxEntriesPause} {
		if got := pauseForEntries(entries); got != want {
			t.Errorf("with %d entries: %v, want %v", entries, got, want)
		}
	}
}
