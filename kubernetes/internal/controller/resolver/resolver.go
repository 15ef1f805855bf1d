// Package resolver keeps the names of DNSNameResolvers fresh: it asks CoreDNS for each before its addresses are over, so that the
// plugin there learns what is true now, and removes from their status what is over.
//
// It writes no address itself. What it asks for it asks to let the plugin see the answer; only removing is its own, because
// nobody asks for a name that nobody uses.
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

// LeaderElectionID is the name of the lease that the one who works holds.
const LeaderElectionID = "resolver.egress.nameplane"

// A removal that the API server leaves without an answer is given up after writeTimeout. Until then it is one of atOnce: what else is over does
// not stay because of it.
const (
	writeTimeout = 10 * time.Second
	atOnce       = 4
)

// unsure is how long after its end an address stays of which nobody could be asked.
const unsure = 3 * grace

// Options of the controller.
type Options struct {
	Namespace string // of the DNSNameResolvers

	// The CoreDNS pods are the ready addresses of this service, at this port, unless Servers names them.
	ServiceNamespace, ServiceName string
	Port                          uint16
	Servers                       []netip.AddrPort

	Rate int // most queries that are begun in a second
}

// Cache says what a manager needs to watch for the controller, and no more: that is what its role lets it read.
func Cache(opts Options) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1alpha1.DNSNameResolver{}: {Namespaces: map[string]cache.Config{opts.Namespace: {}}},
		&discovery.EndpointSlice{}: {
			Namespaces: map[string]cache.Config{opts.ServiceNamespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: opts.ServiceName}),
		},
	}}
}

// reconciler looks at one DNSNameResolver at a time.
type reconciler struct {
	client  client.Client
	opts    Options
	tracker *follow.Tracker
	names   *names
	pods    *pods
	count   counters
}

// Setup adds the controller to a manager. It runs where the manager is the leader.
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
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce}).Complete(r)
	if err != nil || len(opts.Servers) > 0 {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("coredns-pods").For(&discovery.EndpointSlice{}).Complete(podWatcher{r})
}

func newReconciler(c client.Client, dns resolve.Exchanger, opts Options) *reconciler {
	r := &reconciler{client: c, opts: opts, pods: newPods(time.Now()), count: newCounters()}
	r.pods.set(opts.Servers, time.Now())
	r.tracker = follow.New(follow.Options{
		Exchanger: &fan{client: dns, pods: r.pods, width: func(n dnsname.Name) int { return r.names.width(n) }, home: func(n dnsname.Name) string { return r.names.home(n) }},
		Servers:   []resolve.Server{{Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), opts.Port)}}, // the fan knows the pods
		Changed:   func(follow.Change) {},                                                           // the plugin tells of changes
		Floor:     time.Second,
		Ceiling:   30 * time.Minute,
		Timeout:   askTimeout + time.Second, // the fan ends by itself
		Parallel:  512,
		Rate:      opts.Rate,
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
	l := lapsed(&obj, now, r.pods.inTheDark(now), func(name v1alpha1.DNSName, ip string, end time.Time) bool { return r.stands(name, ip, end, now) })
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
	// A little late rather than a little early, or the same is found once more.
	return ctrl.Result{RequeueAfter: max(next.Sub(now), 0) + 10*time.Millisecond}, nil
}

// stands tells whether an address that was to be over at a moment stays: because it was in the last answer, which is still good, or, for
// some time, because nobody has answered since then.
func (r *reconciler) stands(name v1alpha1.DNSName, ip string, end, now time.Time) bool {
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

// learned reports whether an object has what can be expected of it. A wildcard has what pods ask for, perhaps nothing.
func learned(r *v1alpha1.DNSNameResolver) bool {
	return strings.HasPrefix(string(r.Spec.Name), "*") || len(r.Status.ResolvedNames) > 0
}

// remove takes what is over out of the status. That the status has changed meanwhile is no error: the change brings us back,
// and if what we know was not old after all, time does.
func (r *reconciler) remove(ctx context.Context, obj *v1alpha1.DNSNameResolver, l lapse) (ctrl.Result, error) {
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

// podWatcher keeps the set of CoreDNS pods.
type podWatcher struct{ *reconciler }

// Reconcile implements reconcile.Reconciler. Whatever changed, it reads all slices of the service: they are few.
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

// ready are the addresses that a service's traffic may go to.
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
