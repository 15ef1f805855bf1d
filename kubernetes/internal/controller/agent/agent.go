// Package agent programs the switches of one zone: it keeps the rows of the zone's northbound database equal to what EgressFirewalls,
// DNSNameResolvers and leases of the stream say.
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

// Options of the agent.
type Options struct {
	Zone           string         // as in the status of firewalls
	Node           string         // how the agent calls itself to those who ask; default Zone
	Namespace      string         // of the DNSNameResolvers
	ClusterSubnets []netip.Prefix // of all pods; says which families the cluster has
	PodPrefixes    []netip.Prefix // of the zone's pods; default: of the nodes that say they are in the zone
	Deep           bool           // names of rules may begin with "**."
	DNSNames       bool           // report to EgressFirewallDNSNames
	KeepFor        time.Duration  // how long connections may outlive their address; zero: not at all

	// These change which addresses no name may open, as the options of the plugin do.
	Refuse, Permit, NAT64       []netip.Prefix
	PermitNodes, PermitServices bool

	NB      ovn.Options  // Keep follows from KeepFor
	Listen  net.Listener // for plugins; nil: there is no stream
	TLS     *tls.Config  // for Listen
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Cache says what the agent watches, and leaves out what it never reads of it.
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

// stripNode leaves what rules and prefixes are made of. Nodes change every few seconds in what is left out.
func stripNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		n.ManagedFields = nil
		n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
	}
	return obj, nil
}

// Setup adds the agent to a manager whose cache was made with Cache.
func Setup(mgr ctrl.Manager, o Options) error {
	_, err := setup(mgr, o)
	return err
}

func setup(mgr ctrl.Manager, o Options) (*agent, error) {
	o.NB.Log, o.NB.Keep = o.Log, o.KeepFor > 0
	db := ovn.NewDB(o.NB)
	a := &agent{opts: o, client: mgr.GetClient(), reader: newReader(o), engine: newEngine(db, o.KeepFor), sole: db.Sole, outcomes: make(latest, 1), changed: make(chan struct{})}
	a.engine.metrics.local(db.Local)
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

// agent is the engine with its eyes and its voice in the cluster.
type agent struct {
	opts   Options
	client client.Client
	reader *reader
	*engine
	sole        func(ovn.Node) // told which node is the only one of the zone
	serviceKind client.Object  // the kind that has the addresses of services; nil: not read
	outcomes    latest

	mu       sync.Mutex // guards what follows
	prefixes []netip.Prefix
	stray    bool          // no node is of the zone
	changed  chan struct{} // closed and replaced when prefixes change
}

// watched are the kinds whose changes may change rows.
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

// watch wakes the engine at every change, and returns when all is there that was there before.
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

// matters tells whether a change may change rows, or what this zone has to say. Kubelets and other zones write into the same objects all the
// time, and a pass for each of that would keep every agent of a large cluster busy.
func (a *agent) matters(old, now any) bool {
	switch now := now.(type) {
	case *apiv1.EgressFirewall:
		if old, ok := old.(*apiv1.EgressFirewall); ok && now.Generation != 0 {
			was, is := egress.MessagesOf(a.opts.Zone, old.Status.Messages), egress.MessagesOf(a.opts.Zone, now.Status.Messages)
			return old.UID != now.UID || old.Generation != now.Generation || !slices.Equal(was, is)
		}
	case *corev1.Node:
		if old, ok := old.(*corev1.Node); ok {
			return !maps.Equal(old.Labels, now.Labels) || old.Annotations[node.ZoneAnnotation] != now.Annotations[node.ZoneAnnotation] || old.Annotations[node.ChassisAnnotation] != now.Annotations[node.ChassisAnnotation] ||
				!slices.Equal(node.HostNetworks(old), node.HostNetworks(now)) || !slices.Equal(node.PodNetworks(old), node.PodNetworks(now))
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

// read reads the cache.
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
	a.sole(soleNode(nodes.Items, a.opts.Zone))
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
	a.place(nodes)
	if slices.Equal(prefixes, a.prefixes) {
		return
	}
	a.prefixes = prefixes
	close(a.changed)
	a.changed = make(chan struct{})
}

// place tells who runs it when no node is of this zone: all works, but replies to its pods wait for all agents, and what it says in the status of
// firewalls does not count.
func (a *agent) place(nodes []corev1.Node) {
	stray := len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return inZone(&n, a.opts.Zone) })
	if stray && !a.stray {
		a.opts.Log.Warn("no node is of this zone; look at --zone, and at the annotation "+node.ZoneAnnotation+" of the nodes", "zone", a.opts.Zone, "zoneOfTheFirstNode", node.Zone(&nodes[0]))
	}
	a.stray = stray
}

// Prefixes is hold.Handler's; Program and Explain are the engine's.
func (a *agent) Prefixes() ([]netip.Prefix, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.prefixes, a.changed
}
