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

// zones is the set of zones of the cluster's nodes. Each of them must report that a firewall is applied.
type zones struct {
	mu   sync.Mutex // guards the fields below
	node map[string]string
	size map[string]int                       // number of nodes in a zone
	gone map[string]map[client.ObjectKey]bool // deleted zones, and the objects from which their messages were removed
}

func newZones() *zones {
	return &zones{node: map[string]string{}, size: map[string]int{}, gone: map[string]map[client.ObjectKey]bool{}}
}

// put sets the zone of a node; "" means that the node was deleted. It reports whether the set of zones changed.
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

// list returns the current zones.
func (z *zones) list() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Sorted(maps.Keys(z.size))
}

// left returns the given zones that were deleted and whose messages are still on the object. It does not return zones
// that were never seen. Such a zone may belong to an agent with a zone name that no node has. The agent would write a
// removed message again, endlessly. The message of an agent that outlives its node is removed once, for the same
// reason.
func (z *zones) left(on client.ObjectKey, of []string) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(of), func(zone string) bool {
		removed, gone := z.gone[zone]
		return !gone || removed[on]
	})
}

// removed notes that the messages of zones were removed from an object.
func (z *zones) removed(on client.ObjectKey, zones ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, zone := range zones {
		if m, gone := z.gone[zone]; gone {
			m[on] = true
		}
	}
}

// nodeMetadata returns a Node of which only the metadata is watched.
func nodeMetadata() *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return n
}

// handler watches the nodes. When the set of zones changes, it enqueues all objects of a kind. It calls failed if they
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
