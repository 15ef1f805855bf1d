package hostname

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

// reports has the HostnameReports of the cluster, and writes them. It is the store of their watch.
type reports struct {
	client client.Client
	events events.EventRecorder
	synced func() // called once, when all reports are known
	once   sync.Once
	// appeared and deleted are called when another program creates or deletes a report.
	appeared, deleted func(types.NamespacedName)

	mu   sync.Mutex // guards the following
	have map[types.NamespacedName]*v1alpha1.HostnameReport
}

var _ cache.TransformingStore = (*reports)(nil)

// get returns the newest known version of a report, or nil. The caller must not change it.
func (r *reports) get(at types.NamespacedName) *v1alpha1.HostnameReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.have[at]
}

// names returns the names of all reports.
func (r *reports) names() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]types.NamespacedName, 0, len(r.have))
	for at := range r.have {
		out = append(out, at)
	}
	return out
}

// keep stores a report, unless a newer version is known.
func (r *reports) keep(x *v1alpha1.HostnameReport) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.ManagedFields = nil
	at := client.ObjectKeyFromObject(x)
	old := r.have[at]
	if old != nil && old.UID == x.UID {
		if c, err := resourceversion.CompareResourceVersion(x.ResourceVersion, old.ResourceVersion); err == nil && c < 0 {
			return false
		}
	}
	r.have[at] = x
	return old == nil
}

// write writes a status. It creates the report if needed, and records an Event if the result is another one.
func (r *reports) write(ctx context.Context, key Key, owners []*object, now status) error {
	at := types.NamespacedName{Namespace: key.Namespace, Name: Name(key.Host)}
	have := r.get(at)
	want := ownerReferences(owners)
	var err error
	switch {
	case have == nil:
		have = &v1alpha1.HostnameReport{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name,
			OwnerReferences: want}}
		err = r.client.Create(ctx, have)
	case !slices.EqualFunc(have.OwnerReferences, want, sameOwner):
		have = have.DeepCopy()
		have.OwnerReferences = want
		err = r.client.Update(ctx, have)
	case !mustWrite(have.Status, now):
		return nil
	default:
		have = have.DeepCopy()
	}
	if err != nil {
		return r.failed(at, "write", err)
	}
	before := have.Status
	have.Status = now
	if err := r.client.Status().Update(ctx, have); err != nil {
		return r.failed(at, "write the status of", err)
	}
	r.keep(have)
	if !sameResult(before, now) {
		r.record(have, owners[0], now)
	}
	return nil
}

// failed returns the error of a write. After a conflict the known version is old: another program has written or
// deleted the report.
func (r *reports) failed(at types.NamespacedName, verb string, err error) error {
	return fmt.Errorf("%s HostnameReport %s: %w", verb, at, err)
}

// record records an Event about a new result at the route, where its owner sees it.
func (r *reports) record(x *v1alpha1.HostnameReport, owner *object, now status) {
	kind, reason := corev1.EventTypeWarning, "HostnameNotWorking"
	switch now.Verdict {
	case string(report.Working):
		kind, reason = corev1.EventTypeNormal, "HostnameWorking"
	case string(report.Soon):
		kind, reason = corev1.EventTypeNormal, "HostnameWorkingSoon"
	case string(report.Undecided):
		reason = "HostnameUnknown"
	}
	note := now.Summary
	for _, c := range now.Conditions {
		if c.Type == v1alpha1.Current && c.Status == metav1.ConditionFalse {
			kind, reason, note = corev1.EventTypeWarning, "HostnameNotChecked", c.Message
		}
	}
	// The hostname is part of the action: Events that differ only in their note are merged, and a route may have many.
	r.events.Eventf(&corev1.ObjectReference{APIVersion: owner.apiVersion, Kind: owner.id.kind, Namespace: x.Namespace,
		Name: owner.id.name, UID: owner.uid}, &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(),
		Kind: "HostnameReport", Namespace: x.Namespace, Name: x.Name, UID: x.UID}, kind, reason,
		clean("Check "+now.Hostname, 128), "%s", clean(note, v1alpha1.MaxText))
}

// remove deletes a report, but not a new one with the same name.
func (r *reports) remove(ctx context.Context, at types.NamespacedName) error {
	have := r.get(at)
	if have == nil || have.DeletionTimestamp != nil {
		return nil
	}
	err := r.client.Delete(ctx, have.DeepCopy(), client.Preconditions{UID: &have.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return r.failed(at, "delete", err)
	}
	return nil
}

// ownerReferences returns the owners of a report. Kubernetes deletes the report with the last of them.
func ownerReferences(owners []*object) (out []metav1.OwnerReference) {
	for _, o := range owners {
		out = append(out, metav1.OwnerReference{APIVersion: o.apiVersion, Kind: o.id.kind, Name: o.id.name, UID: o.uid})
	}
	return out
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
}

// Add stores a report of the watch.
func (r *reports) Add(obj any) error {
	x, from := &v1alpha1.HostnameReport{}, obj.(*unstructured.Unstructured).Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, x); err != nil {
		return fmt.Errorf("read a HostnameReport: %w", err)
	}
	if r.keep(x) {
		r.appeared(client.ObjectKeyFromObject(x))
	}
	return nil
}

// Update stores a new version of a report.
func (r *reports) Update(obj any) error { return r.Add(obj) }

// Delete removes a report that was deleted.
func (r *reports) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	at := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
	r.mu.Lock()
	gone := r.have[at] != nil && r.have[at].UID == u.GetUID()
	if gone {
		delete(r.have, at)
	}
	r.mu.Unlock()
	if gone {
		r.deleted(at)
	}
	return nil
}

// Replace stores all reports.
func (r *reports) Replace(list []any, _ string) error {
	there := map[types.NamespacedName]bool{}
	for _, obj := range list {
		u := obj.(*unstructured.Unstructured)
		there[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = true
		if err := r.Add(u); err != nil {
			return err
		}
	}
	for _, at := range r.names() {
		if x := r.get(at); x != nil && !there[at] {
			u := &unstructured.Unstructured{}
			u.SetNamespace(at.Namespace)
			u.SetName(at.Name)
			u.SetUID(x.UID)
			_ = r.Delete(u) // it never fails
		}
	}
	r.once.Do(r.synced)
	return nil
}

// Resync does nothing.
func (r *reports) Resync() error { return nil }

// Transformer returns the function that trims a report as soon as it is decoded.
func (r *reports) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if m, ok := obj.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		return obj, nil
	}
}

// outdated reports whether a write failed because the known version of the report is old. The watch brings a newer one.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// ending reports whether a write failed because the namespace is being deleted, or the program ends.
func ending(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || errors.Is(err, context.Canceled)
}
