package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// fieldManager owns the fields that the manager applies: the overall status and its own messages.
const fieldManager = "nameplane-egress-manager"

// firewalls maintains the cluster manager's part of each firewall's status.
type firewalls struct {
	client  client.Client
	events  events.EventRecorder
	options Options
	metrics *metrics
	zones   *zones
}

func (f *firewalls) setup(mgr ctrl.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("egress-firewalls").
		For(&apiv1.EgressFirewall{}).
		WatchesMetadata(nodeMetadata(), f.zones.handler(f.client, &apiv1.EgressFirewallList{}, func(err error) {
			f.options.Log.Error("zones changed, but the firewalls could not be listed", "err", err)
		})).
		WithOptions(controllerOptions[reconcile.Request](1)).
		Complete(f)
}

// Reconcile updates the manager's part of a firewall's status.
func (f *firewalls) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ef apiv1.EgressFirewall
	if err := f.client.Get(ctx, req.NamespacedName, &ef); err != nil {
		if client.IgnoreNotFound(err) == nil {
			f.metrics.badRules.DeleteLabelValues(req.Namespace)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ef.Name != egress.Name || ef.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if err := f.forget(ctx, &ef); err != nil {
		return ctrl.Result{}, err
	}
	wrong := egress.Read(&ef, f.options.Deep).Errs
	f.count(req.Namespace, len(wrong))
	want := judge(messages(wrong), ef.Status.Messages, f.zones.list())
	have := egress.MessagesOf(egress.ManagerZone, ef.Status.Messages)
	if want.Status == ef.Status.Status && sameSet(want.Messages, have) {
		return ctrl.Result{}, nil
	}
	if err := f.apply(ctx, &ef, fieldManager, want); err != nil {
		return ctrl.Result{}, err
	}
	f.recordEvents(&ef, want.Messages, have)
	return ctrl.Result{}, nil
}

// recordEvents records an Event for each new error. The position of the rule is part of the action: Events that differ
// only in their note are merged, and only the first note is kept.
func (f *firewalls) recordEvents(ef *apiv1.EgressFirewall, want, have []string) {
	for _, m := range want {
		if slices.Contains(have, m) {
			continue
		}
		m = strings.TrimPrefix(m, egress.ManagerZone+": "+egress.NotApplied+": ")
		position, _, _ := strings.Cut(m, ": ")
		f.events.Eventf(ef, nil, corev1.EventTypeWarning, "InvalidRule", cut("Validate "+position, 128), "%s", cut(m, 1024))
	}
}

func (f *firewalls) count(namespace string, wrong int) {
	if wrong == 0 {
		f.metrics.badRules.DeleteLabelValues(namespace)
		return
	}
	f.metrics.badRules.WithLabelValues(namespace).Set(float64(wrong))
}

// forget removes the messages of deleted zones, by applying an empty status in their name.
func (f *firewalls) forget(ctx context.Context, ef *apiv1.EgressFirewall) error {
	var said []string
	for _, m := range ef.Status.Messages {
		zone, _, _ := strings.Cut(m, ": ")
		said = append(said, zone)
	}
	key := client.ObjectKeyFromObject(ef)
	for _, zone := range f.zones.left(key, said) {
		if err := f.apply(ctx, ef, zone, apiv1.EgressFirewallStatus{}); err != nil {
			return err
		}
		f.zones.removed(key, zone)
	}
	return nil
}

// apply performs a server-side apply, so that zones and the manager each own their entries of one list.
func (f *firewalls) apply(ctx context.Context, ef *apiv1.EgressFirewall, owner string,
	s apiv1.EgressFirewallStatus) error {
	err := egress.Apply(ctx, f.client, ef, owner, &s)
	if client.IgnoreNotFound(f.metrics.wrote("egressfirewalls", "apply", err)) != nil {
		return fmt.Errorf("apply status of %s as %s: %w", client.ObjectKeyFromObject(ef), owner, err)
	}
	return nil
}

// cut shortens s to the given number of bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
