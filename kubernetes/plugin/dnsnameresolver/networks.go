package dnsnameresolver

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
)

const (
	networksPause = 100 * time.Millisecond // minimum time between two rebuilds
	// A source that is forbidden is tried again after minDenied, then less and less often, up to maxDenied. An API server
	// that has just started rejects requests that it grants a moment later, so only denial number deniedAttempts counts.
	minDenied, maxDenied = time.Second, 5 * time.Minute
	deniedAttempts       = 3
)

// networks is the set of networks of the cluster's nodes, pods and services. No DNS answer may open the firewall to
// them.
type networks struct {
	now     atomic.Pointer[learn.Networks]
	changed chan struct{} // signals that now is older than byObject; has capacity one

	mu       sync.Mutex                 // guards byObject
	byObject map[string][]learn.Network // networks of each Kubernetes object
}

// set stores the networks of an object; nil removes the object.
func (n *networks) set(object string, now []learn.Network) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Equal(n.byObject[object], now) {
		return
	}
	if n.byObject[object] = now; now == nil {
		delete(n.byObject, object)
	}
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// rebuild builds now from byObject.
func (n *networks) rebuild() {
	n.mu.Lock()
	var all []learn.Network
	for _, some := range n.byObject {
		all = append(all, some...)
	}
	n.mu.Unlock()
	n.now.Store(learn.NewNetworks(all))
}

// follow rebuilds after changes, until ctx ends.
func (n *networks) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.changed:
		}
		n.rebuild()
		sleep(ctx, networksPause)
	}
}

// source is a kind of Kubernetes objects that define networks.
type source struct {
	what     string // description of the networks, for the log
	without  string // consequence if they are unknown, for the log
	objects  cache.Getter
	plural   string
	kind     runtime.Object
	read     func(any) []learn.Network
	fallback *source // used if the kind does not exist or may not be read
}

// sources returns the sources of the networks that the options do not permit.
func (e *engine) sources() []source {
	core, networking := e.store.core.CoreV1().RESTClient(), e.store.core.NetworkingV1().RESTClient()
	const open = "answers with their addresses are refused only if `refuse` lists them"
	out := []source{{what: "nodes and their pods", without: open, objects: core, plural: "nodes", kind: &corev1.Node{},
		read: func(o any) []learn.Network { return nodeNetworks(o, e.opts.permitNodes) }}}
	if !e.opts.permitServices {
		// ServiceCIDR is served since Kubernetes 1.33. The account of CoreDNS can always read Services.
		services := source{what: "services", without: open, objects: core, plural: "services", kind: &corev1.Service{},
			read: node.ServiceNetworks}
		out = append(out, source{what: "services by their networks", without: "single services are read", objects: networking,
			plural: "servicecidrs",
			kind:   &networkingv1.ServiceCIDR{}, read: node.ServiceNetworks, fallback: &services})
	}
	return out
}

// watchNetworks watches a source. The returned function reports whether all its networks are known, or cannot be known.
func (e *engine) watchNetworks(ctx context.Context, s source) cache.InformerSynced {
	set := func(o any) {
		if m, ok := o.(metav1.Object); ok {
			e.cluster.set(s.plural+"/"+m.GetNamespace()+"/"+m.GetName(), s.read(o))
		}
	}
	lw := cache.NewListWatchFromClient(s.objects, s.plural, metav1.NamespaceAll, fields.Everything())
	_, c := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: s.kind, Transform: strip,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, o any) { set(o) },
			DeleteFunc: func(o any) {
				if key, err := cache.DeletionHandlingObjectToName(o); err == nil {
					e.cluster.set(s.plural+"/"+key.Namespace+"/"+key.Name, nil)
				}
			}},
	})
	var other atomic.Pointer[cache.InformerSynced] // of the fallback source
	var denied atomic.Bool
	e.running.Go(func() {
		e.waitReadable(ctx, s, lw, &denied, func() {
			synced := cache.InformerSynced(func() bool { return true })
			if s.fallback != nil {
				synced = e.watchNetworks(ctx, *s.fallback)
			}
			other.Store(&synced)
		})
		c.RunWithContext(ctx)
	})
	return func() bool {
		if o := other.Load(); o != nil && (*o)() {
			return true
		}
		return c.HasSynced() || denied.Load() && other.Load() == nil
	}
}

// waitReadable blocks until a source may be read, or ctx ends. Without it, the informer would log an error for each
// attempt. It calls giveUp once, when denials count.
func (e *engine) waitReadable(ctx context.Context, s source, lw *cache.ListWatch, denied *atomic.Bool, giveUp func()) {
	gaveUp := false
	for n := 1; ctx.Err() == nil; n++ {
		_, err := lw.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case err == nil:
			return
		case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
			n = 0
		case !gaveUp && (n == deniedAttempts || apierrors.IsNotFound(err)):
			gaveUp = true
			e.log.Warningf("addresses of %s are unknown, so %s: %v", s.what, s.without, err)
			giveUp()
		}
		denied.Store(n > 0)
		sleep(ctx, min(minDenied<<min(max(n-1, 0), 10), maxDenied))
	}
}

// strip returns an object with only the fields that define networks, because the informer keeps it in memory.
func strip(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Node:
		read := map[string]string{
			node.HostsAnnotation:   o.Annotations[node.HostsAnnotation],
			node.SubnetsAnnotation: o.Annotations[node.SubnetsAnnotation],
		}
		return &corev1.Node{ObjectMeta: bare(o.ObjectMeta, read),
			Spec: corev1.NodeSpec{PodCIDRs: o.Spec.PodCIDRs}, Status: corev1.NodeStatus{Addresses: o.Status.Addresses}}, nil
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: bare(o.ObjectMeta, nil), Spec: corev1.ServiceSpec{ClusterIPs: o.Spec.ClusterIPs}},
			nil
	}
	return o, nil
}

func bare(m metav1.ObjectMeta, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Annotations: annotations}
}

// nodeNetworks returns the subnets of a node's pods. It adds the node's addresses unless they are permitted.
func nodeNetworks(o any, permitted bool) []learn.Network {
	n, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	if permitted {
		return node.PodNetworks(n)
	}
	return append(node.HostNetworks(n), node.PodNetworks(n)...)
}
