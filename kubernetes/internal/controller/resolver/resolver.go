// Package resolver keeps the names of DNSNameResolvers fresh: it queries CoreDNS for each name before its addresses
// end, so that the plugin learns the current ones, and removes ended addresses from the status.
//
// Start with Setup in resolver.go. The reconciler follows the names of each object (names.go) and removes what
// expire.go finds. fan.go queries several CoreDNS pods, and pods.go has the health of the pods.
//
// The package writes no address itself: it sends queries so that the plugin sees the answers. Only the removal is its
// own task, because the plugin sees no queries for an unused name.
package resolver

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// LeaderElectionID is the name of the leader election lease.
const LeaderElectionID = "resolver.egress.nameplane"

// A removal without a reply from the API server is given up after writeTimeout. maxConcurrent removals run at once, so
// that one of them does not block the other ones.
const (
	writeTimeout  = 10 * time.Second
	maxConcurrent = 4
)

// unsure is the time for which an address stays after its end if no server could be queried.
const unsure = 3 * grace

// Options configure the controller.
type Options struct {
	Namespace string // namespace of the DNSNameResolvers

	// The CoreDNS pods are the ready endpoints of this service, at this port, unless Servers is set.
	ServiceNamespace, ServiceName string
	Port                          uint16
	Servers                       []netip.AddrPort

	Rate int // maximum number of queries started per second
}

// Cache returns the cache options for the objects that the controller watches. Its role allows no others.
func Cache(opts Options) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1alpha1.DNSNameResolver{}: {Namespaces: map[string]cache.Config{opts.Namespace: {}}},
		&discovery.EndpointSlice{}: {
			Namespaces: map[string]cache.Config{opts.ServiceNamespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: opts.ServiceName}),
		},
	}}
}

// reconciler handles one DNSNameResolver at a time.
type reconciler struct {
	client  client.Client
	opts    Options
	tracker *follow.Tracker
	names   *names
	pods    *pods
	count   counters
}

// Setup adds the controller to a manager. It runs in the leader.
func Setup(mgr ctrl.Manager, opts Options) error {
	r := newReconciler(mgr.GetClient(), &resolve.Client{}, opts)
	for _, c := range slices.Concat(r.tracker.Collectors(), r.collectors()) {
		if err := metrics.Registry.Register(c); err != nil {
			return err
		}
	}
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		r.pods.begin(time.Now())
		return r.tracker.Run(ctx)
	}))
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("dnsnameresolver").For(&v1alpha1.DNSNameResolver{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrent}).Complete(r)
	if err != nil || len(opts.Servers) > 0 {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("coredns-pods").For(&discovery.EndpointSlice{}).Complete(podWatcher{r})
}

func newReconciler(c client.Client, dns resolve.Exchanger, opts Options) *reconciler {
	r := &reconciler{client: c, opts: opts, pods: newPods(time.Now()), count: newCounters()}
	r.pods.set(opts.Servers, time.Now())
	r.tracker = follow.New(follow.Options{
		Exchanger: &fan{client: dns, pods: r.pods, width: func(n dnsname.Name) int { return r.names.width(n) },
			home: func(n dnsname.Name) string { return r.names.home(n) }},
		// the fan knows the pods
		Servers:  []resolve.Server{{Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), opts.Port)}},
		Changed:  func(follow.Change) {}, // the plugin reports changes
		Floor:    time.Second,
		Ceiling:  30 * time.Minute,
		Timeout:  askTimeout + time.Second, // the fan has its own timeout
		Parallel: 512,
		Rate:     opts.Rate,
	})
	r.names = newNames(
		func(n dnsname.Name) { r.tracker.Follow(n, follow.Both) },
		func(n dnsname.Name) { r.tracker.Unfollow(n, follow.Both) },
	)
	return r
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj v1alpha1.DNSNameResolver
	switch err := r.client.Get(ctx, req.NamespacedName, &obj); {
	case apierrors.IsNotFound(err):
		r.names.set(req.NamespacedName, nil)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	r.names.set(req.NamespacedName, &obj)

	now := time.Now()
	l := expired(&obj, now, r.pods.inTheDark(now),
		func(name v1alpha1.DNSName, ip string, end time.Time) bool { return r.stays(name, ip, end, now) })
	for _, name := range l.ended {
		r.refresh(name)
	}
	if l.patch != nil {
		return r.remove(ctx, &obj, l)
	}
	next := l.next
	if due, at := r.names.unlearned(req.NamespacedName, learned(&obj), now); !at.IsZero() {
		if due {
			r.refresh(string(obj.Spec.Name))
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	// Slightly late rather than slightly early: otherwise the same state is found again.
	return ctrl.Result{RequeueAfter: max(next.Sub(now), 0) + 10*time.Millisecond}, nil
}

// stays reports whether an address stays although its end has passed. It stays if the last answer contained it and is
// still valid. It also stays for a limited time if no server has answered since.
func (r *reconciler) stays(name v1alpha1.DNSName, ip string, end, now time.Time) bool {
	n, err := dnsname.Parse(string(name))
	addr, err2 := netip.ParseAddr(ip)
	if err != nil || err2 != nil {
		return false
	}
	family := follow.IPv4
	if addr.Is6() {
		family = follow.IPv6
	}
	s, ok := r.tracker.State(n, family)
	if !ok || s.Answer != follow.Found {
		return false
	}
	if slices.Contains(s.Addrs, addr) && now.Before(s.ValidUntil.Add(grace)) {
		return true
	}
	unanswered := s.LastSuccess.Before(end) && (s.Failures > 0 || !s.NextAttempt.After(now))
	return unanswered && now.Before(end.Add(unsure))
}

func (r *reconciler) refresh(name string) {
	if n, err := dnsname.Parse(name); err == nil {
		r.tracker.Refresh(n)
	}
}

// learned reports whether an object has the expected entries. A wildcard has the names that pods query, perhaps none.
func learned(r *v1alpha1.DNSNameResolver) bool {
	return strings.HasPrefix(string(r.Spec.Name), "*") || len(r.Status.ResolvedNames) > 0
}

// remove removes ended addresses from the status. A concurrent change of the status is not an error: the change causes
// another reconciliation, and otherwise the delay does.
func (r *reconciler) remove(ctx context.Context, obj *v1alpha1.DNSNameResolver, l expiry) (ctrl.Result, error) {
	body, err := json.Marshal(l.patch)
	if err != nil {
		return ctrl.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = r.client.Status().Patch(ctx, obj, client.RawPatch(types.JSONPatchType, body))
	switch {
	case apierrors.IsInvalid(err), apierrors.IsConflict(err):
		r.count.lost.Inc()
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.count.removed.Add(float64(l.gone))
	return ctrl.Result{}, nil
}

// podWatcher maintains the set of CoreDNS pods.
type podWatcher struct{ *reconciler }

// Reconcile implements reconcile.Reconciler. It reads all slices of the service after any change: there are few.
func (w podWatcher) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var slices discovery.EndpointSliceList
	err := w.client.List(ctx, &slices, client.InNamespace(w.opts.ServiceNamespace),
		client.MatchingLabels{discovery.LabelServiceName: w.opts.ServiceName})
	if err != nil {
		return ctrl.Result{}, err
	}
	w.pods.set(ready(slices.Items, w.opts.Port), time.Now())
	return ctrl.Result{}, nil
}

// ready returns the addresses of ready endpoints.
func ready(all []discovery.EndpointSlice, port uint16) []netip.AddrPort {
	var out []netip.AddrPort
	for _, s := range all {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, a := range e.Addresses {
				if ip, err := netip.ParseAddr(a); err == nil {
					out = append(out, netip.AddrPortFrom(ip, port))
				}
			}
		}
	}
	return out
}
