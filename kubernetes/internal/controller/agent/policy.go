package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
)

// networksOf are the networks of one object.
type networksOf struct {
	version  string // resource version of the object; empty if unknown, as in tests
	networks []learn.Network
}

// objectKey identifies a Node, a ServiceCIDR or a Service.
type objectKey struct{ kind, namespace, name string }

// policy returns the policy about addresses that must not be opened: those that the plugin refuses too. The networks
// are rebuilt only if an object changed them.
func (r *reader) policy(o objects) learn.Policy {
	now := make(map[objectKey]networksOf, len(o.nodes)+len(o.services))
	note := func(kind string, obj client.Object, read func() []learn.Network) {
		key := objectKey{kind, obj.GetNamespace(), obj.GetName()}
		was, version := r.networks[key], obj.GetResourceVersion()
		// The annotations of nodes change rarely, and a large cluster has thousands of them: parse only what is new.
		if version == "" || was.version != version {
			was = networksOf{version, read()}
		}
		now[key] = was
	}
	for i := range o.nodes {
		note("Node", &o.nodes[i], func() []learn.Network { return r.nodeNetworks(&o.nodes[i]) })
	}
	for _, s := range o.services {
		note("Service", s, func() []learn.Network { return node.ServiceNetworks(s) })
	}
	same := func(a, b networksOf) bool { return slices.Equal(a.networks, b.networks) }
	if r.cluster == nil || !maps.EqualFunc(r.networks, now, same) {
		var all []learn.Network
		for _, n := range now {
			all = append(all, n.networks...)
		}
		// Pods of a node that has no annotation yet must not be opened either.
		for _, p := range slices.Concat(r.opts.ClusterSubnets, r.opts.PodPrefixes) {
			all = append(all, learn.Network{Net: p, Owner: learn.OwnerPod})
		}
		r.cluster = learn.NewNetworks(all)
	}
	r.networks = now
	return learn.Policy{Cluster: r.cluster, Refuse: r.opts.Refuse, Permit: r.opts.Permit,
		Special: specialaddr.Table{NAT64: r.opts.NAT64}}
}

func (r *reader) nodeNetworks(n *corev1.Node) []learn.Network {
	if r.opts.PermitNodes {
		return node.PodNetworks(n)
	}
	return append(node.HostNetworks(n), node.PodNetworks(n)...)
}

// serviceKind returns the kind that has the addresses of services: ServiceCIDR, which Kubernetes has since 1.33, or
// Service.
func serviceKind(m meta.RESTMapper) (client.Object, error) {
	kind := networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR")
	_, err := m.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case err == nil:
		return &networkingv1.ServiceCIDR{}, nil
	case meta.IsNoMatchError(err):
		return &corev1.Service{}, nil
	default:
		return nil, fmt.Errorf("find the kind ServiceCIDR: %w", err)
	}
}

// services reads the objects of the service kind from the cache.
func (a *agent) services(ctx context.Context) ([]client.Object, error) {
	var out []client.Object
	switch a.serviceKind.(type) {
	case *networkingv1.ServiceCIDR:
		var list networkingv1.ServiceCIDRList
		if err := a.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *corev1.Service:
		var list corev1.ServiceList
		if err := a.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// stripService keeps only the addresses, because the cache has every Service of the cluster.
func stripService(obj any) (any, error) {
	if s, ok := obj.(*corev1.Service); ok {
		s.ManagedFields, s.Labels, s.Annotations = nil, nil, nil
		s.Spec, s.Status = corev1.ServiceSpec{ClusterIPs: s.Spec.ClusterIPs}, corev1.ServiceStatus{}
	}
	return obj, nil
}

// admit returns the addresses of l that the policy allows, and an error about the other ones. The policy is that of the
// last pass, so callers wait for the first pass.
func (e *engine) admit(p enforce.Pattern, l hold.Learned) (addrs []netip.Addr, err error) {
	e.mu.Lock()
	policy := e.policy
	e.mu.Unlock()
	for _, a := range l.Addrs {
		why := policy.Refused(a)
		if why == "" {
			addrs = append(addrs, a)
			continue
		}
		e.metrics.refusedAddresses.WithLabelValues(why).Inc()
		err = fmt.Errorf("%s is refused: %s; to allow it, use --permit of the agent", a, why)
	}
	if err != nil {
		e.refusals.Do(func() {
			e.log.Warn("a client requested an address that must not be opened", "pattern", p.String(), "name", l.Name, "err",
				err)
		})
	}
	return addrs, err
}
