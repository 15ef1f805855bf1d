// Package manager turns the names in EgressFirewalls into DNSNameResolvers, and tells on each firewall what is wrong with it and whether
// all zones have it.
//
// It remembers nothing: what is wanted follows from the firewalls in the cache, what is there from the objects in the cache, so that a
// restart, a failed write and an object edited by hand all end in the same state.
package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// LeaderElectionID is of our own, so that a stock cluster manager beside ours does not wait for it. Two of different kinds
// would undo each other's work for names of which only one knows, and must not run at once.
const LeaderElectionID = "manager.egress.nameplane"

// Options are those of Setup.
type Options struct {
	Namespace string // of the DNSNameResolvers
	Deep      bool   // names of rules may begin with "**."
	DNSNames  bool   // keep an EgressFirewallDNSName beside each DNSNameResolver
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Cache says what the manager's cache needs to hold. The statuses of DNSNameResolvers are by far the largest part, and nobody here
// reads them unless they are mirrored.
func Cache(o Options) cache.Options {
	here := map[string]cache.Config{o.Namespace: {}}
	resolvers := cache.ByObject{Namespaces: here, Transform: strip(!o.DNSNames)}
	out := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&v1alpha1.DNSNameResolver{}: resolvers},
	}
	if o.DNSNames {
		out.ByObject[&dnsv1alpha1.EgressFirewallDNSName{}] = cache.ByObject{Namespaces: here}
	}
	return out
}

// strip leaves of the record of who set which field of a DNSNameResolver only that there is one, and drops its status, if that is wanted.
func strip(status bool) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if r, ok := obj.(*v1alpha1.DNSNameResolver); ok {
			if len(r.ManagedFields) > 0 {
				r.ManagedFields = []metav1.ManagedFieldsEntry{{}}
			}
			if status {
				r.Status = v1alpha1.DNSNameResolverStatus{}
			}
		}
		return obj, nil
	}
}

// The fields by which the cache is asked, so that no event costs a walk through all objects.
const (
	byRule = "rules" // EgressFirewalls by the names in their rules
	byName = "spec.name"
)

// Setup adds the reconcilers to a manager whose cache was made with Cache.
func Setup(mgr ctrl.Manager, o Options) error {
	m := newMetrics()
	for _, c := range []prometheus.Collector{m.writes, m.collisions, m.badRules} {
		if err := o.Metrics.Register(c); err != nil {
			return err
		}
	}
	index := mgr.GetFieldIndexer()
	if err := index.IndexField(context.Background(), &apiv1.EgressFirewall{}, byRule, indexRules(o.Deep)); err != nil {
		return err
	}
	if err := index.IndexField(context.Background(), &v1alpha1.DNSNameResolver{}, byName, indexName); err != nil {
		return err
	}
	n := &names{client: mgr.GetClient(), options: o, metrics: m}
	if err := n.setup(mgr); err != nil {
		return err
	}
	f := &firewalls{client: mgr.GetClient(), events: mgr.GetEventRecorder("nameplane-egress-manager"), options: o, metrics: m, zones: newZones()}
	if err := f.setup(mgr); err != nil {
		return err
	}
	if !o.DNSNames {
		return nil
	}
	return (&mirror{client: mgr.GetClient(), metrics: m, zones: newZones()}).setup(mgr)
}

func indexRules(deep bool) client.IndexerFunc {
	return func(obj client.Object) []string { return namesOf(obj.(*apiv1.EgressFirewall), deep) }
}

func indexName(obj client.Object) []string {
	return []string{string(obj.(*v1alpha1.DNSNameResolver).Spec.Name)}
}

// controllerOptions are those of all our controllers.
func controllerOptions[request comparable](workers int) controller.TypedOptions[request] {
	return controller.TypedOptions[request]{
		MaxConcurrentReconciles: workers,
		// The default grows to a quarter of an hour, which is long after whatever was wrong has been put right.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[request](5*time.Millisecond, 30*time.Second),
	}
}
