// Package manager creates a DNSNameResolver for each name in EgressFirewalls, and reports in the status of each
// firewall its errors and whether all zones have applied it.
//
// Start with Setup in manager.go. The reconcilers are names (names.go), firewalls (firewalls.go) and mirror
// (mirror.go).
//
// The package keeps no state. The wanted objects follow from the firewalls in the cache, and the existing ones are in
// the cache. A restart, a failed write and an object edited by hand therefore all end in the same state.
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

// LeaderElectionID differs from that of the stock cluster manager, so that neither waits for the other. Both must not
// run at the same time: each would undo the other's work for names that only one of them knows.
const LeaderElectionID = "manager.egress.nameplane"

// Options are the options of Setup.
type Options struct {
	Namespace string // namespace of the DNSNameResolvers
	Deep      bool   // names of rules may begin with "**."
	DNSNames  bool   // create an EgressFirewallDNSName for each DNSNameResolver
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Cache returns the options of the manager's cache. The statuses of DNSNameResolvers are by far the largest part, and
// are only needed for mirrors.
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

// strip replaces the managed fields of a DNSNameResolver by one empty entry, if there are any. If status is set, it
// also removes the status.
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

// Indexed fields of the cache, so that no event needs a scan of all objects.
const (
	byRule = "rules" // EgressFirewalls by the names in their rules
	byName = "spec.name"
)

// Setup adds the reconcilers to a manager whose cache has the options of Cache.
func Setup(mgr ctrl.Manager, o Options) error {
	m := newMetrics()
	for _, c := range m.collectors() {
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
	f := &firewalls{client: mgr.GetClient(), events: mgr.GetEventRecorder("nameplane-egress-manager"), options: o,
		metrics: m, zones: newZones()}
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

// controllerOptions returns the options of all controllers in this package.
func controllerOptions[request comparable](workers int) controller.TypedOptions[request] {
	return controller.TypedOptions[request]{
		MaxConcurrentReconciles: workers,
		// The default limit is a quarter of an hour, which is long after most problems have been fixed.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[request](5*time.Millisecond, 30*time.Second),
	}
}
