// Package agent programs the switches of one zone: it keeps the rows of the zone's northbound database equal to the
// state in EgressFirewalls, DNSNameResolvers and leases.
//
// Start with Setup in agent.go, which connects the agent to the cluster. The engine in engine.go compares and writes
// the rows; program.go has the short path for a new address while a DNS reply waits. reader.go parses the objects,
// leases.go stores leases, status.go reports, and explain.go answers questions about a destination.
package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// Options configure the agent.
type Options struct {
	Zone           string         // zone, as in the status of firewalls
	Node           string         // name of the agent in explanations; default Zone
	Namespace      string         // namespace of the DNSNameResolvers
	ClusterSubnets []netip.Prefix // subnets of all pods; they define the address families of the cluster
	PodPrefixes    []netip.Prefix // prefixes of the zone's pods; default: those of the nodes in the zone
	Deep           bool           // names of rules may begin with "**."
	DNSNames       bool           // report in EgressFirewallDNSNames
	KeepFor        time.Duration  // time for which connections may outlive their address; zero disables it

	// These change which addresses must not be opened, like the options of the plugin.
	Refuse, Permit, NAT64       []netip.Prefix
	PermitNodes, PermitServices bool

	NB      ovn.Options  // Keep is derived from KeepFor
	Listen  net.Listener // for plugins; nil disables the stream
	TLS     *tls.Config  // for Listen
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Cache returns the cache options of the objects that the agent watches. Fields that it never reads are removed.
func Cache(o Options) cache.Options {
	here := map[string]cache.Config{o.Namespace: {}}
	out := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.DNSNameResolver{}: {Namespaces: here},
			&corev1.Node{}:              {Transform: stripNode},
			&corev1.Service{}:           {Transform: stripService},
		},
	}
	if o.DNSNames {
		out.ByObject[&dnsv1alpha1.EgressFirewallDNSName{}] = cache.ByObject{Namespaces: here}
	}
	return out
}

// stripNode keeps the fields that rules and prefixes depend on. The other fields change every few seconds.
func stripNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		n.ManagedFields = nil
		n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
	}
	return obj, nil
}

// Setup adds the agent to a manager whose cache has the options of Cache.
func Setup(mgr ctrl.Manager, o Options) error {
	_, err := setup(mgr, o)
	return err
}

func setup(mgr ctrl.Manager, o Options) (*agent, error) {
	o.NB.Log, o.NB.Keep = o.Log, o.KeepFor > 0
	db := ovn.NewDB(o.NB)
	a := &agent{opts: o, client: mgr.GetClient(), reader: newReader(o), engine: newEngine(db, o.KeepFor),
		setSoleNode: db.SetSoleNode, outcomes: make(latest, 1), changed: make(chan struct{})}
	a.engine.metrics.local(db.LocalConfirms)
	a.engine.read, a.engine.report, a.engine.log, a.engine.node = a.read, a.outcomes.put, o.Log, cmp.Or(o.Node, o.Zone)
	if o.Metrics != nil {
		for _, c := range a.engine.metrics.collectors() {
			if err := o.Metrics.Register(c); err != nil {
				return nil, err
			}
		}
	}
	runs := []func(context.Context) error{
		db.Run,
		func(ctx context.Context) error {
			if err := a.watch(ctx, mgr.GetCache(), mgr.GetRESTMapper()); err != nil {
				return err
			}
			return a.engine.Run(ctx)
		},
		a.reports,
	}
	if o.Listen != nil {
		runs = append(runs, func(ctx context.Context) error { return hold.Serve(ctx, o.Listen, o.TLS, a) })
	}
	for _, run := range runs {
		if err := mgr.Add(manager.RunnableFunc(run)); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// agent connects the engine to the cluster.
type agent struct {
	opts   Options
	client client.Client
	reader *reader
	*engine
	setSoleNode func(ovn.Node) // sets the only node of the zone
	serviceKind client.Object  // kind with the addresses of services; nil if not read
	outcomes    latest

	mu        sync.Mutex // guards the fields below
	prefixes  []netip.Prefix
	zoneEmpty bool          // no node is in the zone
	changed   chan struct{} // closed and replaced when prefixes change
}

// watched returns the kinds whose changes may change rows.
func (a *agent) watched() []client.Object {
	out := []client.Object{&apiv1.EgressFirewall{}, &v1alpha1.DNSNameResolver{}, &corev1.Node{}, namespaceMetadata()}
	if a.opts.DNSNames {
		out = append(out, &dnsv1alpha1.EgressFirewallDNSName{})
	}
	if a.serviceKind != nil {
		out = append(out, a.serviceKind)
	}
	return out
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return n
}

// watch wakes the engine at every relevant change. It returns after the caches are synced.
func (a *agent) watch(ctx context.Context, c cache.Cache, m meta.RESTMapper) (err error) {
	if !a.opts.PermitServices {
		if a.serviceKind, err = serviceKind(m); err != nil {
			return err
		}
	}
	for _, obj := range a.watched() {
		informer, err := c.GetInformer(ctx, obj)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { a.engine.Changed() },
			UpdateFunc: func(old, now any) {
				if a.matters(old, now) {
					a.engine.Changed()
				}
			},
			DeleteFunc: func(any) { a.engine.Changed() },
		}); err != nil {
			return err
		}
	}
	c.WaitForCacheSync(ctx)
	return nil
}

// matters reports whether a change may change rows or the messages of this zone. Kubelets and other zones write the
// same objects all the time. A pass for each such write would keep every agent of a large cluster busy.
func (a *agent) matters(old, now any) bool {
	switch now := now.(type) {
	case *apiv1.EgressFirewall:
		if old, ok := old.(*apiv1.EgressFirewall); ok && now.Generation != 0 {
			was, is := egress.MessagesOf(a.opts.Zone, old.Status.Messages), egress.MessagesOf(a.opts.Zone, now.Status.Messages)
			return old.UID != now.UID || old.Generation != now.Generation || !slices.Equal(was, is)
		}
	case *corev1.Node:
		if old, ok := old.(*corev1.Node); ok {
			return !maps.Equal(old.Labels, now.Labels) ||
				old.Annotations[node.ZoneAnnotation] != now.Annotations[node.ZoneAnnotation] ||
				old.Annotations[node.ChassisAnnotation] != now.Annotations[node.ChassisAnnotation] ||
				!slices.Equal(node.HostNetworks(old), node.HostNetworks(now)) ||
				!slices.Equal(node.PodNetworks(old), node.PodNetworks(now))
		}
	case *corev1.Service:
		if old, ok := old.(*corev1.Service); ok {
			return !slices.Equal(old.Spec.ClusterIPs, now.Spec.ClusterIPs)
		}
	case *metav1.PartialObjectMetadata:
		if old, ok := old.(*metav1.PartialObjectMetadata); ok {
			return old.Annotations[logAnnotation] != now.Annotations[logAnnotation]
		}
	}
	return true
}

// read reads all objects from the cache.
func (a *agent) read(ctx context.Context) (reading, error) {
	var efs apiv1.EgressFirewallList
	var names v1alpha1.DNSNameResolverList
	var nodes corev1.NodeList
	spaces := metav1.PartialObjectMetadataList{}
	spaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	for _, list := range []client.ObjectList{&efs, &names, &nodes, &spaces} {
		if err := a.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return reading{}, err
		}
	}
	services, err := a.services(ctx)
	if err != nil {
		return reading{}, err
	}
	a.setSoleNode(soleNode(nodes.Items, a.opts.Zone))
	a.setPrefixes(nodes.Items)
	return a.reader.read(objects{efs.Items, names.Items, nodes.Items, spaces.Items, services}), nil
}

func (a *agent) setPrefixes(nodes []corev1.Node) {
	prefixes := a.opts.PodPrefixes
	if len(prefixes) == 0 {
		prefixes = podPrefixes(nodes, func(n *corev1.Node) bool { return inZone(n, a.opts.Zone) })
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checkZone(nodes)
	if slices.Equal(prefixes, a.prefixes) {
		return
	}
	a.prefixes = prefixes
	close(a.changed)
	a.changed = make(chan struct{})
}

// checkZone logs a warning if no node is in this zone. The agent works, but replies to its pods wait for all agents,
// and its messages in the status of firewalls do not count.
func (a *agent) checkZone(nodes []corev1.Node) {
	zoneEmpty := len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return inZone(&n, a.opts.Zone) })
	if zoneEmpty && !a.zoneEmpty {
		a.opts.Log.Warn("no node is in this zone; check --zone and the annotation "+node.ZoneAnnotation+" of the nodes",
			"zone", a.opts.Zone, "zoneOfTheFirstNode", node.Zone(&nodes[0]))
	}
	a.zoneEmpty = zoneEmpty
}

// Prefixes implements hold.Handler. The engine implements Program and Explain.
func (a *agent) Prefixes() ([]netip.Prefix, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.prefixes, a.changed
}
