package zone

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// A slab is the nodes of the keys whose hashes share their first bits, about a hundred, in groups of a few. A group is
//
//	for each node: an octet of the hash, the node's size, the node; then padding; nodes 1
//
// or nothing. The number of nodes stands at the end so that the first and the last line of a group are asked of memory
// at once; in between, every line would have to be waited for by itself.
//
// A slab takes one line of the cache, and all slabs of a million names half a megabyte.
type slab struct {
	nodes  string
	count  uint16
	depth  uint8             // bits of the hash that all keys share
	unit   uint8             // groups begin at multiples of 1<<unit octets
	bounds [groups + 1]uint8 // in units; group g is from bounds[g] to bounds[g+1]
}

const (
	groups   = 43
	minUnit  = 4
	maxUnits = 255

	// A slab splits when it has more nodes or octets than this: it is what a change copies.
	slabNodes  = 192
	slabOctets = 16 << 10
	// Large nodes are not worth a slab each until more than this many are in one.
	slabFew = 8
	// maxDepth ends splitting. Hashes that share so many bits do not occur in numbers.
	maxDepth = 40
)

// isFull reports whether a slab has to be split.
func (s *slab) isFull() bool {
	n := int(s.count)
	return s.depth < maxDepth && (n > slabNodes || n > slabFew && len(s.nodes) > slabOctets)
}

// groupOf is the group of a hash. It is made of bits that pick neither the page nor the slab.
func groupOf(hash uint64) int { return int(uint64(uint32(hash)) * groups >> 32) }

func (s *slab) group(g int) string {
	return s.nodes[int(s.bounds[g])<<(s.unit&63) : int(s.bounds[g+1])<<(s.unit&63)]
}

// find returns the node with this key, of which hash is the hash.
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

// raw is a node, as octets from its key length on.
type raw struct {
	hash uint64
	node string
}

// appendRaw appends the nodes of group g.
func (s *slab) appendRaw(out []raw, g int) []raw {
	b := s.group(g)
	if b == "" {
		return out
	}
	at := 0
	for range b[len(b)-1] {
		size, from := uvarint(b, at+1)
		node := b[from : from+size]
		out = append(out, raw{hashString(node[1 : 1+int(node[0])]), node})
		at = from + size
	}
	return out
}

// all are the nodes of the slab.
func (s *slab) all() []raw {
	out := make([]raw, 0, s.count+1)
	for g := range groups {
		out = s.appendRaw(out, g)
	}
	return out
}

// makeSlab makes a slab of nodes whose hashes share depth bits. It puts them in another order.
func makeSlab(nodes []raw, depth uint8) slab {
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

// byGroup takes nodes apart into groups.
func byGroup(nodes []raw) (by [groups][]raw) {
	slices.SortFunc(nodes, func(a, b raw) int { return cmp.Compare(uint32(a.hash), uint32(b.hash)) })
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

// measure sets the bounds of groups, and reports whether there are units enough for them.
func (s *slab) measure(by *[groups][]raw) bool {
	end := 0
	for g, nodes := range by {
		end += units(groupOctets(nodes), s.unit)
		if end > maxUnits {
			return false
		}
		s.bounds[g+1] = uint8(end)
	}
	return true
}

// groupOctets is the size of a group of these nodes without its padding.
func groupOctets(nodes []raw) int {
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

// units is how many units so many octets take.
func units(octets int, unit uint8) int { return (octets + 1<<unit - 1) >> unit }

// writeGroup writes a group of these nodes.
func writeGroup(b *strings.Builder, nodes []raw, unit uint8) {
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
	size := groupOctets(nodes)
	for range units(size, unit)<<unit - size {
		b.WriteByte(0)
	}
	b.WriteByte(byte(len(nodes)))
}

// replace puts node in the place of the node with this key, and returns by how much the number of nodes changed. An
// empty node removes it. The octets of s are not changed, but new ones take their place.
func (s *slab) replace(key string, hash uint64, node string) (by int) {
	g := groupOf(hash)
	nodes := s.appendRaw(nil, g)
	old := len(nodes)
	nodes = slices.DeleteFunc(nodes, func(r raw) bool {
		return r.hash == hash && r.node[1:1+int(r.node[0])] == key
	})
	if node != "" {
		nodes = append(nodes, raw{hash, node})
	}
	by = len(nodes) - old
	s.count += uint16(by)
	if !s.splice(g, nodes) {
		rest := slices.DeleteFunc(s.all(), func(r raw) bool { return groupOf(r.hash) == g })
		*s = makeSlab(append(rest, nodes...), s.depth)
	}
	return by
}

// splice puts nodes in the place of those of group g. It reports false, having done nothing, when there are not units
// enough. The other groups are copied as they are: to make them anew would take ten times as long.
func (s *slab) splice(g int, nodes []raw) bool {
	moved := units(groupOctets(nodes), s.unit) - int(s.bounds[g+1]-s.bounds[g])
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
