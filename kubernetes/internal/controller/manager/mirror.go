package manager

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// mirror keeps an EgressFirewallDNSName with the same name for each DNSNameResolver.
type mirror struct {
	client  client.Client
	metrics *metrics
	zones   *zones
}

func (m *mirror) setup(mgr ctrl.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("egress-dnsnames").
		For(&v1alpha1.DNSNameResolver{}).
		Watches(&dnsv1alpha1.EgressFirewallDNSName{}, &handler.EnqueueRequestForObject{}).
		WatchesMetadata(nodeMetadata(), m.zones.handler(m.client, &dnsv1alpha1.EgressFirewallDNSNameList{}, func(error) {
			// The cache is being stopped.
		})).
		WithOptions(controllerOptions[reconcile.Request](workers)).
		Complete(m)
}

// Reconcile makes one step towards the mirror of an object. The event of that step causes the next one.
func (m *mirror) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var r v1alpha1.DNSNameResolver
	err := m.client.Get(ctx, req.NamespacedName, &r)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	gone := err != nil || r.DeletionTimestamp != nil
	var d dnsv1alpha1.EgressFirewallDNSName
	err = m.client.Get(ctx, req.NamespacedName, &d)
	switch {
	case apierrors.IsNotFound(err) && gone:
		return ctrl.Result{}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, m.create(ctx, &r)
	case err != nil:
		return ctrl.Result{}, err
	case gone || d.Spec.Name != string(r.Spec.Name):
		err := m.client.Delete(ctx, &d, client.Preconditions{UID: &d.UID})
		return ctrl.Result{}, client.IgnoreNotFound(m.metrics.wrote("egressfirewalldnsnames", "delete", err))
	}
	return m.update(ctx, &r, &d)
}

func (m *mirror) create(ctx context.Context, r *v1alpha1.DNSNameResolver) error {
	err := m.client.Create(ctx, &dnsv1alpha1.EgressFirewallDNSName{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name},
		Spec:       dnsv1alpha1.EgressFirewallDNSNameSpec{Name: string(r.Spec.Name)},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache will report it as an event
	}
	return m.metrics.wrote("egressfirewalldnsnames", "create", err)
}

// update writes the status, with the version that it has read as a precondition. An address may disappear and come back
// between two reads. A report of an agent about its first presence must not count for the second one.
func (m *mirror) update(ctx context.Context, r *v1alpha1.DNSNameResolver,
	d *dnsv1alpha1.EgressFirewallDNSName) (ctrl.Result, error) {
	was := d.DeepCopy()
	said := make([]string, len(d.Status.Programmed))
	for i, p := range d.Status.Programmed {
		said[i] = p.Zone
	}
	left := m.zones.left(client.ObjectKeyFromObject(d), said)
	d.Status.Programmed = slices.DeleteFunc(d.Status.Programmed, func(p programmed) bool {
		return slices.Contains(left, p.Zone)
	})
	d.Status = mirrored(r, d.Status, m.zones.list(), time.Now())
	if reflect.DeepEqual(was.Status, d.Status) {
		return ctrl.Result{}, nil
	}
	err := m.client.Status().Patch(ctx, d, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 20 * time.Millisecond}, nil // an agent wrote first
	}
	if client.IgnoreNotFound(m.metrics.wrote("egressfirewalldnsnames", "patch", err)) != nil {
		return ctrl.Result{}, fmt.Errorf("patch status of %s: %w", d.Name, err)
	}
	m.zones.removed(client.ObjectKeyFromObject(d), left...)
	return ctrl.Result{}, nil
}
