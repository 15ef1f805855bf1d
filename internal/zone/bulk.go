package zone

import (
	"fmt"
	"slices"

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
	arena []byte // nodes, one after the other
	ends  []end
}

// end is a finished node: its hash and where in the arena it ends.
type end struct {
	hash uint64
	at   int
}

// NewLoader begins an empty zone.
func NewLoader(id uuid.UUID, apex dnsname.Name) *Loader {
	return &Loader{z: Nodes{id: id, apex: apex}, path: []draft{{}}, last: apex}
}

// Overlay makes the zone an overlay.
func (l *Loader) Overlay() { l.z.beOverlay() }

// Expect makes room for so many record sets at once: to grow into it again and again costs more than to fill it.
func (l *Loader) Expect(sets int) {
	const usual = 64 // octets of a node with one address
	l.arena = make([]byte, 0, sets*usual)
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
		if s.Name.Compare(l.last) < 0 {
			return fmt.Errorf("%s came after %s, out of order", s.Name, l.last)
		}
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
	var labels []int // starts of the labels of key, leftmost first
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
		l.path = append(l.path, draft{key: child})
	}
}

// close writes the deepest open name: everything below it has been seen.
func (l *Loader) close() {
	d := &l.path[len(l.path)-1]
	d.reflag()
	if d.flags&flagCut != 0 {
		l.z.cuts++
	}
	if d.flags&flagDNAME != 0 {
		l.z.dnames++
	}
	l.arena = d.append(l.arena)
	l.ends = append(l.ends, end{hashString(d.key), len(l.arena)})
	l.path = l.path[:len(l.path)-1]
}

// Done returns the zone. The Loader must not be used again.
func (l *Loader) Done() *Nodes {
	for len(l.path) > 0 {
		l.close()
	}
	nodes := make([]raw, len(l.ends))
	all := string(l.arena)
	l.arena = nil
	from := 0
	for i, e := range l.ends {
		nodes[i] = raw{e.hash, all[from:e.at]}
		from = e.at
	}
	l.ends = nil
	l.z.index = makeIndex(nodes)
	return &l.z
}

// makeIndex spreads nodes over pages of one depth.
func makeIndex(nodes []raw) index {
	slices.SortFunc(nodes, func(a, b raw) int {
		if a.hash < b.hash {
			return -1
		}
		if a.hash > b.hash {
			return 1
		}
		return 0
	})
	x := index{count: len(nodes)}
	for x.depth < maxDepth && len(nodes)>>x.depth > pageShards*shardFill {
		x.depth++
	}
	x.pages = make([]*page, 1<<x.depth)
	for i, at := 0, 0; i < len(x.pages); i++ {
		from := at
		for at < len(nodes) && x.page(nodes[at].hash) == i {
			at++
		}
		x.pages[i] = makePage(nodes[from:at], x.depth)
	}
	return x
}
