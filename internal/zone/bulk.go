package zone

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Loader makes Nodes of a whole zone at once: from the store when the program starts, or from a zone file. It takes
// record sets in canonical order of their names, as stores keep them, and needs no more than one pass.
type Loader struct {
	z     Nodes
	path  []draft // the name being read, under the names above it; path[0] is the apex
	last  dnsname.Name
	key   []byte // of last, as dnsname's AppendKey makes it
	spare []byte
	nodes strings.Builder // one after the other
	ends  []end
	buf   []byte
}

// end is a finished node: its hash and where it ends.
type end struct {
	hash uint64
	at   int
}

// NewLoader begins an empty zone.
func NewLoader(id uuid.UUID, apex dnsname.Name) *Loader {
	return &Loader{z: Nodes{id: id, apex: apex}, path: []draft{{}}, last: apex, key: apex.AppendKey(nil)}
}

// Overlay makes the zone an overlay.
func (l *Loader) Overlay() { l.z.beOverlay() }

// Expect makes room for so many record sets at once: to grow into it again and again costs more than to fill it.
func (l *Loader) Expect(sets int) {
	const usual = 48 // octets of a node with one address
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
		next := s.Name.AppendKey(l.spare[:0]) // Compare would make both keys anew
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

// descend closes the names that key is not below, and opens those on the way to it: empty non-terminals, and key.
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

// open begins a name below the deepest open one, with the room that one before it had for sets.
func (l *Loader) open(key string) {
	n := len(l.path)
	if n == cap(l.path) {
		l.path = append(l.path, draft{key: key})
		return
	}
	l.path = l.path[:n+1]
	l.path[n] = draft{key: key, sets: l.path[n].sets[:0]}
}

// close writes the deepest open name: everything below it has been seen.
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
		b.relieve(i << (64 - depth))
	}
	return &l.z
}

// bulkDepth is the depth at which slabs of so many nodes and octets are about two thirds full.
func bulkDepth(nodes, octets int) uint {
	depth := uint(0)
	for nodes>>depth > slabNodes*2/3 || nodes>>depth > slabFew && octets>>depth > slabOctets*2/3 {
		depth++
	}
	return depth
}

// makeIndex spreads nodes over slabs of one depth.
func makeIndex(all string, ends []end, depth uint) index {
	fine := min(depth, pageBits)
	x := index{depth: depth - fine, count: len(ends), pages: make([]*page, 1<<(depth-fine))}
	for i := range x.pages {
		x.pages[i] = &page{depth: x.depth, fine: fine, slabs: make([]slab, 1<<fine)}
	}
	order, starts := byHash(ends, depth)
	var nodes []raw
	for s := range starts[1:] {
		nodes = nodes[:0]
		for _, i := range order[starts[s]:starts[s+1]] {
			from := 0
			if i > 0 {
				from = ends[i-1].at
			}
			nodes = append(nodes, raw{ends[i].hash, all[from:ends[i].at]})
		}
		x.pages[s>>fine].slabs[s&(1<<fine-1)] = makeSlab(nodes, uint8(depth))
	}
	return x
}

// byHash orders nodes by the first bits of their hashes; those with the bits s are order[starts[s]:starts[s+1]].
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
