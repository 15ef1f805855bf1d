package learn

import (
	"net/netip"
	"slices"
)

// Owners of networks, in the words of an Event.
const (
	OwnerNode    = "a node"
	OwnerPod     = "a pod"
	OwnerService = "a service"
)

// Network is one of a cluster's own, and its owner.
type Network struct {
	Net   netip.Prefix
	Whose string
}

// Networks are a cluster's own. They are many where there are many nodes, and are asked about for every address, so that they
// are found by their lengths, of which there are few. Nil has none.
type Networks struct {
	whose   map[netip.Prefix]string
	lengths [2][]int // that occur, by family
}

// Networks shorter than these are nobody's: who can write a Node must not be able to have every address refused.
var shortest = [2]int{8, 16}

// NewNetworks takes all but those that are none, or too large to be true.
func NewNetworks(all []Network) *Networks {
	n := &Networks{whose: make(map[netip.Prefix]string, len(all))}
	for _, one := range all {
		net := one.Net.Masked()
		if !net.IsValid() || net.Addr().Is4In6() {
			continue
		}
		f := family(net.Addr())
		if net.Bits() < shortest[f] {
			continue
		}
		n.whose[net] = one.Whose
		if !slices.Contains(n.lengths[f], net.Bits()) {
			n.lengths[f] = append(n.lengths[f], net.Bits())
		}
	}
	for f := range n.lengths {
		slices.Sort(n.lengths[f])
		slices.Reverse(n.lengths[f]) // the most precise word first: a node's address may be in the network of others
	}
	return n
}

// Whose tells who has an address; empty when nobody in the cluster does.
func (n *Networks) Whose(a netip.Addr) string {
	if n == nil || a.Is4In6() {
		return ""
	}
	for _, bits := range n.lengths[family(a)] {
		if p, err := a.Prefix(bits); err == nil && n.whose[p] != "" {
			return n.whose[p]
		}
	}
	return ""
}
