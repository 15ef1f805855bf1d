// Package node reads the data that OVN-Kubernetes and the kubelet write on a Node: its zone, its addresses, and the
// subnets of its pods.
//
// Start with Zone, Hosts and Subnets. The Networks functions return the addresses of a cluster's own nodes, pods and
// services, which no DNS name may open.
package node

import (
	"cmp"
	"encoding/json"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that OVN-Kubernetes sets on nodes.
const (
	SubnetsAnnotation = "k8s.ovn.org/node-subnets"
	HostsAnnotation   = "k8s.ovn.org/host-cidrs"
	ZoneAnnotation    = "k8s.ovn.org/zone-name"
	ChassisAnnotation = "k8s.ovn.org/node-chassis-id"
)

// DefaultZone is the zone of nodes without ZoneAnnotation.
const DefaultZone = "global"

// Zone returns the name of the node's zone.
func Zone(n metav1.Object) string { return cmp.Or(n.GetAnnotations()[ZoneAnnotation], DefaultZone) }

// Hosts returns the addresses in HostsAnnotation, and reports whether the annotation has any entry.
func Hosts(n metav1.Object) (addrs []netip.Addr, ok bool) {
	var entries []string
	if json.Unmarshal([]byte(n.GetAnnotations()[HostsAnnotation]), &entries) != nil {
		return nil, false
	}
	for _, e := range entries {
		if p, err := netip.ParsePrefix(e); err == nil {
			addrs = append(addrs, p.Addr().Unmap())
		}
	}
	return addrs, len(entries) > 0
}

// KubeletAddrs returns the internal and external addresses in the status. It skips addresses with a zone: a zone is any
// text, and a kubelet must not write text into an OVN expression.
func KubeletAddrs(n *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, a := range n.Status.Addresses {
		addr, err := netip.ParseAddr(a.Address)
		if err == nil && addr.Zone() == "" && (a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP) {
			out = append(out, addr.Unmap())
		}
	}
	return out
}

// Subnets returns the subnets of pods on the default network in SubnetsAnnotation, and reports whether the annotation
// has that network. A network has one subnet or a list of them.
func Subnets(n metav1.Object) (subnets []netip.Prefix, ok bool) {
	var networks map[string]json.RawMessage
	if json.Unmarshal([]byte(n.GetAnnotations()[SubnetsAnnotation]), &networks) != nil {
		return nil, false
	}
	var list []string
	if json.Unmarshal(networks["default"], &list) == nil {
		return prefixes(list), true
	}
	var one string
	if json.Unmarshal(networks["default"], &one) == nil {
		return prefixes([]string{one}), true
	}
	return nil, false
}

// PodCIDRs returns the subnets of pods that the cluster gave the node.
func PodCIDRs(n *corev1.Node) []netip.Prefix { return prefixes(n.Spec.PodCIDRs) }

// prefixes parses prefixes, and skips invalid ones.
func prefixes(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}
