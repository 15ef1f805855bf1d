package learn

import (
	"net/netip"
	"slices"
)

// Owners of networks, as they appear in Events.
const (
	OwnerNode    = "a node"
	OwnerPod     = "a pod"
	OwnerService = "a service"
)

// Network is one of the cluster's own networks and its owner.
type Network struct {
	Net   netip.Prefix
	Owner string
}

// Networks is the set of the cluster's own networks. A large cluster has many, and every address is checked against
// them. They are therefore looked up by prefix length, and there are only a few lengths. A nil *Networks is empty.
type Networks struct {
	owners  map[netip.Prefix]string
	lengths [2][]int // prefix lengths in use, by family
}

// Shorter prefixes are ignored: otherwise a client that can write a Node could block every address.
var shortest = [2]int{8, 16}

// NewNetworks returns the set of all valid networks in all. It skips prefixes that are implausibly short.
func NewNetworks(all []Network) *Networks {
	n := &Networks{owners: make(map[netip.Prefix]string, len(all))}
	for _, one := range all {
		net := one.Net.Masked()
		if !net.IsValid() || net.Addr().Is4In6() {
			continue
		}
		f := family(net.Addr())
		if net.Bits() < shortest[f] {
			continue
		}
		n.owners[net] = one.Owner
		if !slices.Contains(n.lengths[f], net.Bits()) {
			n.lengths[f] = append(n.lengths[f], net.Bits())
		}
	}
	for f := range n.lengths {
		slices.Sort(n.lengths[f])
		slices.Reverse(n.lengths[f]) // longest prefix first: a node's address may be in a network of another owner
	}
	return n
}

// Owner returns the owner of an address, or an empty string if the address is not in the cluster.
func (n *Networks) Owner(a netip.Addr) string {
	if n == nil || a.Is4In6() {
		return ""
	}
	for _, bits := range n.lengths[family(a)] {
		if p, err := a.Prefix(bits); err == nil && n.owners[p] != "" {
			return n.owners[p]
		}
	}
	return ""
}
