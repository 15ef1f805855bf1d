package node

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// HostNetworks returns the addresses of a node: those of the kubelet, and those in the annotation of OVN-Kubernetes.
func HostNetworks(n *corev1.Node) []learn.Network {
	hosts, _ := Hosts(n)
	var out []learn.Network
	for _, a := range append(KubeletAddrs(n), hosts...) {
		out = append(out, learn.Network{Net: netip.PrefixFrom(a, a.BitLen()), Owner: learn.OwnerNode})
	}
	return out
}

// PodNetworks returns the subnets of a node's pods: its pod CIDRs, and those of OVN-Kubernetes.
func PodNetworks(n *corev1.Node) []learn.Network {
	subnets, _ := Subnets(n)
	var out []learn.Network
	for _, p := range append(PodCIDRs(n), subnets...) {
		out = append(out, learn.Network{Net: p, Owner: learn.OwnerPod})
	}
	return out
}

// ServiceNetworks returns the networks of a ServiceCIDR or the addresses of a Service. A headless Service has none: its
// address is "None".
func ServiceNetworks(o any) []learn.Network {
	var texts []string
	switch o := o.(type) {
	case *networkingv1.ServiceCIDR:
		texts = o.Spec.CIDRs
	case *corev1.Service:
		texts = o.Spec.ClusterIPs
	}
	var out []learn.Network
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if a, err2 := netip.ParseAddr(text); err2 == nil {
			a = a.Unmap().WithZone("")
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err == nil {
			out = append(out, learn.Network{Net: p.Masked(), Owner: learn.OwnerService})
		}
	}
	return out
}
