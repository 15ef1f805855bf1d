package manager

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
)

// zones are those of the cluster's nodes: who has to say that a firewall is applied.
type zones struct {
	mu   sync.Mutex // guards all below
	node map[string]string
	size map[string]int                       // nodes in a zone
	gone map[string]map[client.ObjectKey]bool // and the objects from which their word was removed
}

func newZones() *zones {
	return &zones{node: map[string]string{}, size: map[string]int{}, gone: map[string]map[client.ObjectKey]bool{}}
}

// put notes the zone of a node, "" when there is no such node any more, and reports whether there are other zones now.
func (z *zones) put(node, zone string) (changed bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	old := z.node[node]
	if old == zone {
		return false
	}
	if zone != "" {
		z.node[node] = zone
		z.size[zone]++
		delete(z.gone, zone)
		changed = z.size[zone] == 1
	} else {
		delete(z.node, node)
	}
	if old == "" {
		return changed
	}
	if z.size[old]--; z.size[old] == 0 {
		delete(z.size, old)
		z.gone[old] = map[client.ObjectKey]bool{}
		changed = true
	}
	return changed
}

// list are the zones there are.
func (z *zones) list() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Sorted(maps.Keys(z.size))
}

// left are those of the given zones that were seen to go, and whose word is still on the object. A zone that was never seen is not
// among them: it may be that of an agent with a name that no node bears, and to remove what it writes would be answered by
// writing it again, for ever. So it is with an agent that outlives its node, whose word is removed once.
func (z *zones) left(on client.ObjectKey, of []string) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(of), func(zone string) bool {
		removed, gone := z.gone[zone]
		return !gone || removed[on]
	})
}

// removed notes that the word of zones was removed from an object.
func (z *zones) removed(on client.ObjectKey, zones ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, zone := range zones {
		if m, gone := z.gone[zone]; gone {
			m[on] = true
		}
	}
}

// nodeMetadata is a Node of which only the metadata is watched.
func nodeMetadata() *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return n
}

// handler follows the nodes. When there are other zones, it asks for all objects of a kind to be reconciled, and calls failed if they
// cannot be listed.
func (z *zones) handler(c client.Client, kind client.ObjectList, failed func(error)) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	put := func(ctx context.Context, node client.Object, zone string, q queue) {
		if !z.put(node.GetName(), zone) {
			return
		}
		list := kind.DeepCopyObject().(client.ObjectList)
		if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			failed(err)
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))})
			return nil
		})
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { put(ctx, e.Object, node.Zone(e.Object), q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			put(ctx, e.ObjectNew, node.Zone(e.ObjectNew), q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { put(ctx, e.Object, "", q) },
	}
}
