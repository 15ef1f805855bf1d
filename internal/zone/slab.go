package zone

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// slab holds the nodes of the keys whose hashes share their first bits, about a hundred, in groups of a few. A group is
// empty or has the form
//
//	for each node: one byte of the hash, the node's size, the node; then padding; the number of nodes in one byte
//
// The number of nodes stands at the end, so that the processor loads the first and the last cache line of a group at
// the same time. In the other order it would wait for one line after the other.
//
// A slab value takes one cache line, and all slab values of a million names half a megabyte.
type slab struct {
	nodes  string
	count  uint16
	depth  uint8             // number of leading hash bits that all keys share
	unit   uint8             // groups begin at multiples of 1<<unit bytes
	bounds [groups + 1]uint8 // in units; group g is from bounds[g] to bounds[g+1]
}

const (
	groups   = 43
	minUnit  = 4
	maxUnits = 255

	// A slab with more nodes or bytes than this is split, because a change copies a whole slab.
	slabNodes = 192
	slabBytes = 16 << 10
	// minSlabNodes is the number of nodes up to which a slab is not split, however large they are.
	minSlabNodes = 8
	// maxDepth ends splitting. Hashes that share so many bits practically do not occur.
	maxDepth = 40
)

// isFull reports whether a slab must be split.
func (s *slab) isFull() bool {
	n := int(s.count)
	return s.depth < maxDepth && (n > slabNodes || n > minSlabNodes && len(s.nodes) > slabBytes)
}

// groupOf returns the group of a hash. It uses bits that select neither the page nor the slab.
func groupOf(hash uint64) int { return int(uint64(uint32(hash)) * groups >> 32) }

func (s *slab) group(g int) string {
	return s.nodes[int(s.bounds[g])<<(s.unit&63) : int(s.bounds[g+1])<<(s.unit&63)]
}

// find returns the node with this key, whose hash is hash.
func (s *slab) find(key []byte, hash uint64) Node {
	b := s.group(groupOf(hash))
	if b == "" {
		return Node{}
	}
	at := 0
	for n := b[len(b)-1]; n > 0; n-- {
		size, from := uvarint(b, at+1)
		to := from + 1 + len(key)
		if b[at] == byte(hash) && int(b[from]) == len(key) && b[from+1:to] == string(key) {
			return Node{b[to : from+size]}
		}
		at = from + size
	}
	return Node{}
}

// rawNode is an encoded node, beginning with its key length.
type rawNode struct {
	hash uint64
	node string
}

// appendRaw appends the nodes of group g.
func (s *slab) appendRaw(out []rawNode, g int) []rawNode {
	b := s.group(g)
	if b == "" {
		return out
	}
	at := 0
	for range b[len(b)-1] {
		size, from := uvarint(b, at+1)
		node := b[from : from+size]
		out = append(out, rawNode{hashString(node[1 : 1+int(node[0])]), node})
		at = from + size
	}
	return out
}

// all returns the nodes of the slab.
func (s *slab) all() []rawNode {
	out := make([]rawNode, 0, s.count+1)
	for g := range groups {
		out = s.appendRaw(out, g)
	}
	return out
}

// makeSlab builds a slab from nodes whose hashes share depth bits. It reorders nodes.
func makeSlab(nodes []rawNode, depth uint8) slab {
	s := slab{count: uint16(len(nodes)), depth: depth, unit: minUnit}
	by := byGroup(nodes)
	for !s.measure(&by) {
		s.unit++
	}
	var b strings.Builder
	b.Grow(int(s.bounds[groups]) << s.unit)
	for _, group := range by {
		writeGroup(&b, group, s.unit)
	}
	s.nodes = b.String()
	return s
}

// byGroup divides nodes into groups.
func byGroup(nodes []rawNode) (by [groups][]rawNode) {
	slices.SortFunc(nodes, func(a, b rawNode) int { return cmp.Compare(uint32(a.hash), uint32(b.hash)) })
	for i := 0; i < len(nodes); {
		g := groupOf(nodes[i].hash)
		j := i + 1
		for j < len(nodes) && groupOf(nodes[j].hash) == g {
			j++
		}
		by[g] = nodes[i:j]
		i = j
	}
	return by
}

// measure sets the bounds of groups. It returns false when they need too many units.
func (s *slab) measure(by *[groups][]rawNode) bool {
	end := 0
	for g, nodes := range by {
		end += units(groupBytes(nodes), s.unit)
		if end > maxUnits {
			return false
		}
		s.bounds[g+1] = uint8(end)
	}
	return true
}

// groupBytes returns the size of a group of these nodes without its padding.
func groupBytes(nodes []rawNode) int {
	if len(nodes) == 0 {
		return 0
	}
	size := 1
	for _, r := range nodes {
		var b [binary.MaxVarintLen64]byte
		size += 1 + binary.PutUvarint(b[:], uint64(len(r.node))) + len(r.node)
	}
	return size
}

// units returns how many units so many bytes take.
func units(size int, unit uint8) int { return (size + 1<<unit - 1) >> unit }

// writeGroup writes a group of these nodes.
func writeGroup(b *strings.Builder, nodes []rawNode, unit uint8) {
	if len(nodes) == 0 {
		return
	}
	for _, r := range nodes {
		var head [1 + binary.MaxVarintLen64]byte
		head[0] = byte(r.hash)
		n := binary.PutUvarint(head[1:], uint64(len(r.node)))
		b.Write(head[:1+n])
		b.WriteString(r.node)
	}
	size := groupBytes(nodes)
	for range units(size, unit)<<unit - size {
		b.WriteByte(0)
	}
	b.WriteByte(byte(len(nodes)))
}

// replace replaces the node with this key, and returns by how much the number of nodes changed. An empty node removes
// the key. The old string stays unchanged; s gets a new one.
func (s *slab) replace(key string, hash uint64, node string) (by int) {
	g := groupOf(hash)
	nodes := s.appendRaw(nil, g)
	old := len(nodes)
	nodes = slices.DeleteFunc(nodes, func(r rawNode) bool {
		return r.hash == hash && r.node[1:1+int(r.node[0])] == key
	})
	if node != "" {
		nodes = append(nodes, rawNode{hash, node})
	}
	by = len(nodes) - old
	s.count += uint16(by)
	if !s.splice(g, nodes) {
		rest := slices.DeleteFunc(s.all(), func(r rawNode) bool { return groupOf(r.hash) == g })
		*s = makeSlab(append(rest, nodes...), s.depth)
	}
	return by
}

// splice replaces the nodes of group g. It returns false, without a change, when the slab would need too many units.
// It copies the other groups as bytes: encoding them again would take ten times as long.
func (s *slab) splice(g int, nodes []rawNode) bool {
	moved := units(groupBytes(nodes), s.unit) - int(s.bounds[g+1]-s.bounds[g])
	if int(s.bounds[groups])+moved > maxUnits {
		return false
	}
	var b strings.Builder
	b.Grow((int(s.bounds[groups]) + moved) << s.unit)
	b.WriteString(s.nodes[:int(s.bounds[g])<<s.unit])
	writeGroup(&b, nodes, s.unit)
	b.WriteString(s.nodes[int(s.bounds[g+1])<<s.unit:])
	for i := g + 1; i <= groups; i++ {
		s.bounds[i] += uint8(moved)
	}
	s.nodes = b.String()
	return true
}
