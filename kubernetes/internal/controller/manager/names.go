package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// names keeps one DNSNameResolver for each name in rules. The reconcile key is the DNS name, so that ten firewalls with
// the same name cost one reconciliation.
type names struct {
	client  client.Client
	options Options
	metrics *metrics
	denied  atomic.Bool // patches are forbidden: a cluster may still have an older role
}

// workers is the number of concurrent creations, for clusters with a thousand names that get their first manager.
const workers = 4

type nameQueue = workqueue.TypedRateLimitingInterface[string]

func (n *names) setup(mgr ctrl.Manager) error {
	return builder.TypedControllerManagedBy[string](mgr).
		Named("egress-names").
		Watches(&apiv1.EgressFirewall{}, n.firewallHandler()).
		Watches(&v1alpha1.DNSNameResolver{}, resolverHandler()).
		WithOptions(controllerOptions[string](workers)).
		Complete(n)
}

// firewallHandler enqueues the names that a firewall has or had.
func (n *names) firewallHandler() handler.TypedEventHandler[client.Object, string] {
	add := func(q nameQueue, obj client.Object) {
		for _, name := range namesOf(obj.(*apiv1.EgressFirewall), n.options.Deep) {
			q.Add(name)
		}
	}
	return handler.TypedFuncs[client.Object, string]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q nameQueue) { add(q, e.Object) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], q nameQueue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], q nameQueue) {
			if e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() && e.ObjectNew.GetGeneration() != 0 {
				return // a zone has reported; the rules are unchanged
			}
			add(q, e.ObjectOld)
			add(q, e.ObjectNew)
		},
	}
}

// resolverHandler enqueues the name of an object that was created or deleted. Its name cannot change, and other
// programs write its status.
func resolverHandler() handler.TypedEventHandler[client.Object, string] {
	add := func(q nameQueue, obj client.Object) { q.Add(string(obj.(*v1alpha1.DNSNameResolver).Spec.Name)) }
	return handler.TypedFuncs[client.Object, string]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q nameQueue) { add(q, e.Object) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], q nameQueue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], q nameQueue) {
			if burdened(e.ObjectNew.(*v1alpha1.DNSNameResolver)) {
				add(q, e.ObjectNew)
			}
		},
	}
}

// burdened reports whether the API server stores managed fields for a wildcard's object. For a status with hundreds of
// names they are larger than the status, use its room, and are rebuilt with each write.
func burdened(r *v1alpha1.DNSNameResolver) bool {
	return len(r.ManagedFields) > 0 && strings.HasPrefix(string(r.Spec.Name), "*") && r.DeletionTimestamp == nil
}

// Reconcile creates and deletes the objects of one DNS name.
func (n *names) Reconcile(ctx context.Context, name string) (ctrl.Result, error) {
	have, err := n.have(ctx, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted, err := n.wanted(ctx, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := plan{remove: objectNames(have)}
	if wanted {
		if p, err = n.plan(ctx, name, have); err != nil {
			return ctrl.Result{}, err
		}
	}
	for i := range have {
		then := n.forget
		if slices.Contains(p.remove, have[i].Name) {
			then = n.remove
		}
		if err := then(ctx, &have[i]); err != nil {
			return ctrl.Result{}, err
		}
	}
	if p.create == "" {
		return ctrl.Result{}, nil
	}
	return n.create(ctx, p, name)
}

func (n *names) have(ctx context.Context, name string) ([]v1alpha1.DNSNameResolver, error) {
	var list v1alpha1.DNSNameResolverList
	if err := n.client.List(ctx, &list, client.InNamespace(n.options.Namespace),
		client.MatchingFields{byName: name}); err != nil {
		return nil, fmt.Errorf("list objects of %s: %w", name, err)
	}
	return list.Items, nil
}

// wanted reports whether a rule has the name.
func (n *names) wanted(ctx context.Context, name string) (bool, error) {
	var list apiv1.EgressFirewallList
	err := n.client.List(ctx, &list, client.MatchingFields{byRule: name}, client.Limit(1), client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("list firewalls with %s: %w", name, err)
	}
	return len(list.Items) > 0, nil
}

func (n *names) plan(ctx context.Context, name string, have []v1alpha1.DNSNameResolver) (plan, error) {
	pattern, err := enforce.ParsePattern(name, enforce.PatternOptions{Deep: n.options.Deep})
	if err != nil {
		return plan{}, reconcile.TerminalError(err) // a rule has the name, so it was parsed before
	}
	var failed error
	owner := func(object string) string {
		var r v1alpha1.DNSNameResolver
		err := n.client.Get(ctx, client.ObjectKey{Namespace: n.options.Namespace, Name: object}, &r)
		if client.IgnoreNotFound(err) != nil {
			failed = err
		}
		return string(r.Spec.Name)
	}
	p, err := planName(pattern, objectNames(have), owner)
	if failed != nil {
		return plan{}, failed
	}
	return p, err
}

func (n *names) create(ctx context.Context, p plan, name string) (ctrl.Result, error) {
	r := &v1alpha1.DNSNameResolver{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.options.Namespace, Name: p.create},
		Spec:       v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(name)},
	}
	err := n.client.Create(ctx, r)
	if apierrors.IsAlreadyExists(err) {
		// The cache does not show the object yet: it was created a moment ago, or belongs to a name with the same hash. Try
		// again later.
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	if n.metrics.wrote("dnsnameresolvers", "create", err) != nil {
		return ctrl.Result{}, fmt.Errorf("create %s for %s: %w", p.create, name, err)
	}
	n.metrics.collisions.Add(float64(p.passed))
	n.options.Log.Info("name added", "name", name, "object", p.create, "collisions", p.passed)
	return ctrl.Result{}, nil
}

// forget deletes the managed fields of a wildcard's object. The API server does not create them again before a
// server-side apply, which is not used for wildcards.
func (n *names) forget(ctx context.Context, r *v1alpha1.DNSNameResolver) error {
	if !burdened(r) || n.denied.Load() {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"managedFields":[{}]}}`, r.UID)
	err := n.client.Patch(ctx, r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // it was deleted already; the cache will report it
	case apierrors.IsForbidden(err):
		// The manager works without it. Each write of a status would lead here again, so try only once.
		if !n.denied.Swap(true) {
			n.options.Log.Warn("the role of the manager does not allow patch, so objects of wildcards hold only half as many "+
				"names; update the role and restart", "error", err)
		}
		return nil
	case n.metrics.wrote("dnsnameresolvers", "patch", err) != nil:
		return fmt.Errorf("delete the managed fields of %s: %w", r.Name, err)
	}
	return nil
}

// remove deletes this object, but not a new one with the same name.
func (n *names) remove(ctx context.Context, r *v1alpha1.DNSNameResolver) error {
	if r.DeletionTimestamp != nil {
		return nil // a finalizer delays the deletion
	}
	err := n.client.Delete(ctx, r, client.Preconditions{UID: &r.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted already; the cache will report it
	}
	if n.metrics.wrote("dnsnameresolvers", "delete", err) != nil {
		return fmt.Errorf("delete %s of %s: %w", r.Name, r.Spec.Name, err)
	}
	n.options.Log.Info("name removed", "name", r.Spec.Name, "object", r.Name)
	return nil
}

func objectNames(list []v1alpha1.DNSNameResolver) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Name
	}
	return out
}
