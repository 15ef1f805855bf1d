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
	networksPause = 100 * time.Millisecond // between two rebuilds of the networks
	// A source that may not be read is tried again after minDenied, then less and less often, up to maxDenied. An API server
	// that has just started refuses what it grants a moment later, so only refusal number `believed` counts.
	minDenied, maxDenied = time.Second, 5 * time.Minute
	deniedAttempts             = 3
)

// networks are those of the cluster's own nodes, pods and services: no DNS answer may open the firewall to them.
type networks struct {
	now   atomic.Pointer[learn.Networks]
	changed chan struct{} // has a value when now is older than of; its capacity is one

	mu sync.Mutex                 // guards what follows
	byObject map[string][]learn.Network // by object
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

// rebuild makes now equal to of.
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

// source is a kind of objects that have networks.
type source struct {
	what    string // what the networks are of, for the log
	without string // what follows when they are not known, for the log
	objects cache.Getter
	plural  string
	kind    runtime.Object
	read    func(any) []learn.Network
	fallback *source // used where there is no such kind, or it may not be read
}

// sources returns the sources of the networks that the options do not permit as a whole.
func (e *engine) sources() []source {
	core, networking := e.store.core.CoreV1().RESTClient(), e.store.core.NetworkingV1().RESTClient()
	const open = "answers with them are refused only as far as `refuse` names them"
	out := []source{{what: "nodes and their pods", without: open, objects: core, plural: "nodes", kind: &corev1.Node{},
		read: func(o any) []learn.Network { return nodeNetworks(o, e.opts.permitNodes) }}}
	if !e.opts.permitServices {
		// Kubernetes has ServiceCIDRs since 1.33. Services are what the account of CoreDNS may read in any case.
		services := source{what: "services", without: open, objects: core, plural: "services", kind: &corev1.Service{}, read: node.ServiceNetworks}
		out = append(out, source{what: "services by their networks", without: "single ones are looked for", objects: networking, plural: "servicecidrs",
			kind: &networkingv1.ServiceCIDR{}, read: node.ServiceNetworks, fallback: &services})
	}
	return out
}

// watchNetworks watches a source. The function it returns reports whether all networks of it are known, or never will be.
func (e *engine) watchNetworks(ctx context.Context, s source) cache.InformerSynced {
	set := func(o any) {
		if m, ok := o.(metav1.Object); ok {
			e.cluster.set(s.plural+"/"+m.GetNamespace()+"/"+m.GetName(), s.read(o))
		}
	}
	lw := cache.NewListWatchFromClient(s.objects, s.plural, metav1.NamespaceAll, fields.Everything())
	_, c := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: s.kind, Transform: strip,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, o any) { set(o) }, DeleteFunc: func(o any) {
			if key, err := cache.DeletionHandlingObjectToName(o); err == nil {
				e.cluster.set(s.plural+"/"+key.Namespace+"/"+key.Name, nil)
			}
		}},
	})
	var other atomic.Pointer[cache.InformerSynced] // of the source that is watched instead
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

// mayRead returns when a source may be read, or ctx ends: an informer would log an error for each try until then. It calls
// giveUp once, when a refusal counts.
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
			e.log.Warningf("which are addresses of %s is not known, so %s: %v", s.what, s.without, err)
			giveUp()
		}
		denied.Store(n > 0)
		sleep(ctx, min(minDenied<<min(max(n-1, 0), 10), maxDenied))
	}
}

// strip returns an object with only what networks are read from, because the informer keeps it for as long as it exists.
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
		return &corev1.Service{ObjectMeta: bare(o.ObjectMeta, nil), Spec: corev1.ServiceSpec{ClusterIPs: o.Spec.ClusterIPs}}, nil
	}
	return o, nil
}

func bare(m metav1.ObjectMeta, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Annotations: annotations}
}

// nodeNetworks returns the subnets of a node's pods, and the node's addresses unless these are permitted.
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
