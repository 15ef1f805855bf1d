package zone

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Loader builds the Nodes of a whole zone at once: from the store when the program starts, or from a zone file. It
// takes record sets in canonical order of their names, as stores keep them, and needs one pass.
type Loader struct {
	z     Nodes
	path  []draft // drafts of the current name and of the names above it; path[0] is the apex
	last  dnsname.Name
	key   []byte // key of last, from dnsname's AppendKey
	spare []byte
	nodes strings.Builder // finished nodes, one after the other
	ends  []end
	buf   []byte
}

// end is the hash of a finished node and the offset of its end.
type end struct {
	hash uint64
	at   int
}

// NewLoader returns a Loader for an empty zone.
func NewLoader(id uuid.UUID, apex dnsname.Name) *Loader {
	return &Loader{z: Nodes{id: id, apex: apex}, path: []draft{{}}, last: apex, key: apex.AppendKey(nil)}
}

// Overlay makes the zone an overlay.
func (l *Loader) Overlay() { l.z.setOverlay() }

// Expect allocates memory for so many record sets at once. Growing it step by step costs more than filling it.
func (l *Loader) Expect(sets int) {
	const usual = 48 // bytes of a node with one address
	l.nodes.Grow(sets * usual)
	l.ends = make([]end, 0, sets+1)
}

// Add adds a record set. Its name must not come before that of the previous one.
func (l *Loader) Add(s rr.Set) error {
	if !s.Name.IsIn(l.z.apex) {
		return fmt.Errorf("%s is not in zone %s", s.Name, l.z.apex)
	}
	if len(s.Data) == 0 {
		return nil
	}
	key := s.Name.In(l.z.apex)
	if s.Name != l.last {
		next := s.Name.AppendKey(l.spare[:0]) // Compare would compute both keys again
		if bytes.Compare(next, l.key) < 0 {
			return fmt.Errorf("%s came after %s, out of order", s.Name, l.last)
		}
		l.key, l.spare = next, l.key
		l.descend(key)
		l.last = s.Name
	}
	d := &l.path[len(l.path)-1]
	d.put(encode(l.z.apex, s))
	if s.Type == rr.TypeSOA && key == "" {
		l.z.setSOA(s)
	}
	return nil
}

// descend closes the names that key is not below, and opens those between the deepest open name and key: empty
// non-terminals, and key itself.
func (l *Loader) descend(key string) {
	labels := make([]int, 0, 16) // starts of the labels of key, leftmost first
	for i := 0; i < len(key); i += 1 + int(key[i]) {
		labels = append(labels, i)
	}
	keep := 1
	for keep < len(l.path) && keep <= len(labels) && l.path[keep].key == key[labels[len(labels)-keep]:] {
		keep++
	}
	for len(l.path) > keep {
		l.close()
	}
	for depth := keep; depth <= len(labels); depth++ {
		parent := &l.path[len(l.path)-1]
		parent.children++
		child := key[labels[len(labels)-depth]:]
		if child[:1+int(child[0])] == "\x01*" {
			parent.flags |= flagWildcard
		}
		l.open(child)
	}
}

// open begins a name below the deepest open one. It reuses the memory of an earlier name for the sets.
func (l *Loader) open(key string) {
	n := len(l.path)
	if n == cap(l.path) {
		l.path = append(l.path, draft{key: key})
		return
	}
	l.path = l.path[:n+1]
	l.path[n] = draft{key: key, sets: l.path[n].sets[:0]}
}

// close writes the deepest open name. All names below it have been read.
func (l *Loader) close() {
	d := &l.path[len(l.path)-1]
	d.reflag()
	l.z.count(d, +1)
	l.buf = d.append(l.buf[:0])
	l.nodes.Write(l.buf)
	l.ends = append(l.ends, end{hashString(d.key), l.nodes.Len()})
	l.path = l.path[:len(l.path)-1]
}

// Done returns the zone. The Loader must not be used again.
func (l *Loader) Done() *Nodes {
	for len(l.path) > 0 {
		l.close()
	}
	depth := bulkDepth(len(l.ends), l.nodes.Len())
	l.z.index = makeIndex(l.nodes.String(), l.ends, depth)
	l.nodes.Reset()
	l.ends, l.buf = nil, nil
	b := Batch{z: &l.z, owned: map[*page]bool{}}
	for i := range uint64(1) << depth {
		b.splitFull(i << (64 - depth))
	}
	return &l.z
}

// bulkDepth returns the depth at which slabs of so many nodes and bytes are about two thirds full.
func bulkDepth(nodes, size int) uint {
	depth := uint(0)
	for nodes>>depth > slabNodes*2/3 || nodes>>depth > minSlabNodes && size>>depth > slabBytes*2/3 {
		depth++
	}
	return depth
}

// makeIndex distributes nodes over slabs of one depth.
func makeIndex(all string, ends []end, depth uint) index {
	slotBits := min(depth, pageBits)
	x := index{depth: depth - slotBits, count: len(ends), pages: make([]*page, 1<<(depth-slotBits))}
	for i := range x.pages {
		x.pages[i] = &page{depth: x.depth, slotBits: slotBits, slabs: make([]slab, 1<<slotBits)}
	}
	order, starts := byHash(ends, depth)
	var nodes []rawNode
	for s := range starts[1:] {
		nodes = nodes[:0]
		for _, i := range order[starts[s]:starts[s+1]] {
			from := 0
			if i > 0 {
				from = ends[i-1].at
			}
			nodes = append(nodes, rawNode{ends[i].hash, all[from:ends[i].at]})
		}
		x.pages[s>>slotBits].slabs[s&(1<<slotBits-1)] = makeSlab(nodes, uint8(depth))
	}
	return x
}

// byHash orders nodes by the first bits of their hashes. Those with the bits s are order[starts[s]:starts[s+1]].
func byHash(ends []end, bits uint) (order, starts []int32) {
	order, starts = make([]int32, len(ends)), make([]int32, 1<<bits+1)
	for _, e := range ends {
		starts[e.hash>>(64-bits)]++
	}
	sum := int32(0)
	for s, n := range starts {
		sum += n
		starts[s] = sum
	}
	for i := len(ends) - 1; i >= 0; i-- {
		s := ends[i].hash >> (64 - bits)
		starts[s]--
		order[starts[s]] = int32(i)
	}
	return order, starts
}
