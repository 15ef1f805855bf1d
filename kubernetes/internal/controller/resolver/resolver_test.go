package resolver

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

var key = types.NamespacedName{Namespace: "ovn-kubernetes", Name: "dns-1"}

// simulation is the controller with an object, one CoreDNS pod in memory, and a substitute for the plugin, which writes
// the pod's answers.
type simulation struct {
	t   *testing.T
	net *simnet.Net
	r   *reconciler

	mu   sync.Mutex // guards the fields below
	deaf bool       // the plugin does not know the object
}

func newSimulation(t *testing.T, spec string, script string) *simulation {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	obj := object(spec)
	obj.Namespace, obj.Name = key.Namespace, key.Name
	w := &simulation{t: t, net: simnet.New(1)}
	w.net.MustServer("10.0.0.1", script)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).WithStatusSubresource(obj).Build()
	w.r = newReconciler(c, w, Options{Servers: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:53")}, Port: 53,
		Rate: 5000})
	return w
}

// run reconciles the object like a manager for some time: after changes and at requested times only.
func (w *simulation) run(length time.Duration, each func()) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); w.r.tracker.Run(ctx) }()
	var due time.Time // zero means not requested
	seen := ""
	for ctx.Err() == nil {
		if version := w.object().ResourceVersion; version != seen || !due.IsZero() && !time.Now().Before(due) {
			res, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			if err != nil && ctx.Err() == nil {
				w.t.Error(err)
			}
			seen, due = version, time.Time{}
			if res.RequeueAfter > 0 {
				due = time.Now().Add(res.RequeueAfter)
			}
		}
		each()
		wait := 100 * time.Millisecond
		if !due.IsZero() {
			wait = min(wait, max(time.Until(due), 0))
		}
		time.Sleep(wait)
	}
	<-ended
	time.Sleep(askTimeout)
}

// Exchange implements resolve.Exchanger.
func (w *simulation) Exchange(ctx context.Context, s resolve.Server, q *dns.Msg) (*dns.Msg, error) {
	reply, err := w.net.Exchange(ctx, s, q)
	if err == nil {
		w.learn(reply)
	}
	return reply, err
}

func (w *simulation) learn(reply *dns.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf {
		return
	}
	obj := w.object()
	var n *v1alpha1.DNSNameResolverResolvedName
	for i := range obj.Status.ResolvedNames {
		if string(obj.Status.ResolvedNames[i].DNSName) == reply.Question[0].Name {
			n = &obj.Status.ResolvedNames[i]
		}
	}
	if n == nil {
		obj.Status.ResolvedNames = append(obj.Status.ResolvedNames,
			v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(reply.Question[0].Name)})
		n = &obj.Status.ResolvedNames[len(obj.Status.ResolvedNames)-1]
	}
	now := metav1.Now()
	found := false
	for _, r := range reply.Answer {
		a, ok := r.(*dns.A)
		if !ok {
			continue
		}
		found = true
		ip := a.A.String()
		n.ResolvedAddresses = slices.DeleteFunc(n.ResolvedAddresses,
			func(x v1alpha1.DNSNameResolverResolvedAddress) bool { return x.IP == ip })
		n.ResolvedAddresses = append(n.ResolvedAddresses,
			v1alpha1.DNSNameResolverResolvedAddress{IP: ip, TTLSeconds: int32(a.Hdr.Ttl), LastLookupTime: &now})
	}
	if !found {
		return
	}
	if err := w.r.client.Status().Update(context.Background(), obj); err != nil {
		w.t.Error(err)
	}
}

func (w *simulation) object() *v1alpha1.DNSNameResolver {
	var obj v1alpha1.DNSNameResolver
	if err := w.r.client.Get(context.Background(), key, &obj); err != nil {
		w.t.Error(err)
	}
	return &obj
}

// has reports whether the object has an address.
func (w *simulation) has(ip string) bool {
	for _, n := range w.object().Status.ResolvedNames {
		for _, a := range n.ResolvedAddresses {
			if a.IP == ip {
				return true
			}
		}
	}
	return false
}

// lasted runs the simulation. It returns the first and the last time at which the object had an address, and the number
// of gaps.
func (w *simulation) lasted(length time.Duration, ip string) (first, last time.Duration, gaps int) {
	first = -1
	w.run(length, func() {
		switch now := w.net.Age(); {
		case !w.has(ip):
			return
		case first < 0:
			first, last = now, now
		default:
			if now-last > time.Second {
				gaps++
			}
			last = now
		}
	})
	return first, last, gaps
}

// TestLiveNameNeverLeaves checks very short TTLs.
func TestLiveNameNeverLeaves(t *testing.T) {
	for _, ttl := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newSimulation(t, "www.example.net.", fmt.Sprintf("zone example.net.\nwww.example.net. %d A 203.0.113.1", ttl))
			first, last, gaps := w.lasted(10*time.Minute, "203.0.113.1")
			if first > time.Second || last < 10*time.Minute-time.Second || gaps > 0 {
				t.Errorf("TTL %d: the address was there from %v to %v, with %d gaps", ttl, first, last, gaps)
			}
		})
	}
}

func TestAddressLeavesInTime(t *testing.T) {
	for name, end := range map[string]string{
		"another address": "at 1m set www.example.net. 4 A 203.0.113.2",
		"no such name":    "at 1m drop www.example.net.",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSimulation(t, "www.example.net.", "zone example.net.\nwww.example.net. 4 A 203.0.113.1\n"+end)
				_, last, gaps := w.lasted(3*time.Minute, "203.0.113.1")
				if limit := time.Minute + 4*time.Second + grace + time.Second; last < time.Minute || last > limit || gaps > 0 {
					t.Errorf("the address left after %v with %d gaps before, want between 1m and %v", last, gaps, limit)
				}
			})
		})
	}
}

// TestPluginIsLate has a plugin that learns of the object some time after the controller.
func TestPluginIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, "www.example.net.", "zone example.net.\nwww.example.net. 1800 A 203.0.113.1")
		w.deaf = true
		time.AfterFunc(2*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.deaf = false
		})
		if first, _, _ := w.lasted(time.Minute, "203.0.113.1"); first < 0 || first > 5*time.Second {
			t.Errorf("the address was there after %v, want within 5s", first)
		}
	})
}

// TestDark has no answering pod for ten minutes: nothing is removed, and afterwards nothing that is still valid.
func TestDark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, "www.example.net.",
			"zone example.net.\nwww.example.net. 4 A 203.0.113.1\nat 1m fault timeout *\nat 11m heal")
		_, last, gaps := w.lasted(15*time.Minute, "203.0.113.1")
		if last < 15*time.Minute-time.Second || gaps > 0 {
			t.Errorf("the address was there until %v, with %d gaps", last, gaps)
		}
	})
}

func TestObjectGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, "*.example.net. a.example.net.=192.0.2.1@3", "zone example.net.")
		ctx := context.Background()
		reconcile := func() {
			if _, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
		}
		reconcile()
		if n := len(w.r.names.of[key]); n != 2 {
			t.Errorf("%d names are followed, want the wildcard and one of it", n)
		}
		if err := w.r.client.Delete(ctx, w.object()); err != nil {
			t.Fatal(err)
		}
		reconcile()
		if w.r.names.len() != 0 || len(w.r.names.many) != 0 || len(w.r.names.again) != 0 {
			t.Error("something is left of an object that is gone")
		}
	})
}

func TestReadyPods(t *testing.T) {
	yes, no := true, false
	slice := discovery.EndpointSlice{Endpoints: []discovery.Endpoint{
		{Addresses: []string{"10.1.0.1"}, Conditions: discovery.EndpointConditions{Ready: &yes}},
		{Addresses: []string{"10.1.0.2"}, Conditions: discovery.EndpointConditions{Ready: &no}},
		{Addresses: []string{"2001:db8::3"}},
		{Addresses: []string{"dns.example.net"}},
	}}
	want := []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:5353"), netip.MustParseAddrPort("[2001:db8::3]:5353")}
	if got := ready([]discovery.EndpointSlice{slice}, 5353); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
