package zone

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Batch changes Nodes: it makes the next value while the old one is served. A Batch is used by one goroutine.
type Batch struct {
	z     *Nodes
	owned map[*page]bool // pages made by this batch, which it may change in place
}

// Edit begins a batch of changes. Nothing of z changes.
func (z *Nodes) Edit() *Batch {
	next := *z
	next.index.pages = append([]*page(nil), z.index.pages...)
	return &Batch{z: &next, owned: map[*page]bool{}}
}

// Done ends the batch and returns the zone with all its changes.
func (b *Batch) Done() *Nodes {
	z := b.z
	b.z = nil
	return z
}

// Put makes s the record set of its name and type. A set without records is removed.
func (b *Batch) Put(s rr.Set) {
	key := s.Name.In(b.z.apex)
	node := b.z.index.find([]byte(key), hashString(key))
	if !node.Found() {
		if len(s.Data) == 0 {
			return
		}
		node = b.insert(key)
	}
	d := node.draft(key)
	b.count(&d, -1)
	d.put(encode(b.z.apex, s))
	d.reflag()
	b.count(&d, +1)
	if s.Type == rr.TypeSOA && key == "" {
		b.z.setSOA(s)
	}
	if key != "" && d.empty() {
		b.remove(key)
		return
	}
	b.write(&d)
}

// Remove removes the record set of this name and type.
func (b *Batch) Remove(name dnsname.Name, t rr.Type) {
	b.Put(rr.Set{Name: name, Type: t})
}

func (b *Batch) count(d *draft, by int) {
	if d.flags&flagCut != 0 {
		b.z.cuts += by
	}
	if d.flags&flagDNAME != 0 {
		b.z.dnames += by
	}
}

// insert adds an empty node and, where they are missing, the empty non-terminals above it.
func (b *Batch) insert(key string) Node {
	d := draft{key: key}
	b.write(&d)
	b.adjustParent(key, +1)
	return b.z.index.find([]byte(key), hashString(key))
}

// remove takes an empty node away and, where they are left with nothing, the empty non-terminals above it.
func (b *Batch) remove(key string) {
	b.replace(key, "")
	b.adjustParent(key, -1)
}

func (b *Batch) adjustParent(key string, by int) {
	parent := key[1+int(key[0]):]
	node := b.z.index.find([]byte(parent), hashString(parent))
	if !node.Found() {
		node = b.insert(parent)
	}
	d := node.draft(parent)
	d.children += by
	if key[:1+int(key[0])] == "\x01*" {
		d.flags ^= flagWildcard
	}
	if parent != "" && d.empty() {
		b.remove(parent)
		return
	}
	b.write(&d)
}

func (b *Batch) write(d *draft) {
	b.replace(d.key, string(d.append(nil)))
}

// replace puts node in the place of the node with this key; an empty node removes it.
func (b *Batch) replace(key, node string) {
	x := &b.z.index
	hash := hashString(key)
	p := b.ownPage(x.page(hash))
	s := p.shard(hash)
	nodes := shardNodes(p.shards[s])
	out := nodes[:0:len(nodes)]
	had := 0
	for _, r := range nodes {
		if r.hash == hash && r.node[1:1+int(r.node[0])] == key {
			had = 1
			continue
		}
		out = append(out, r)
	}
	has := 0
	if node != "" {
		out = append(out, raw{hash, node})
		has = 1
	}
	p.count += has - had
	x.count += has - had
	if len(out) > maxShard || p.count > shardFull*len(p.shards) {
		b.grow(x.page(hash), s, out)
		return
	}
	p.shards[s] = makeShard(out)
}

// ownPage returns the page at a place of the directory, copied if it is still shared with the served value.
func (b *Batch) ownPage(at int) *page {
	x := &b.z.index
	p := x.pages[at]
	if b.owned[p] {
		return p
	}
	c := *p
	c.shards = append([]string(nil), p.shards...)
	b.setPage(at, &c)
	return &c
}

// setPage puts p in all places of the directory that its depth covers.
func (b *Batch) setPage(at int, p *page) {
	x := &b.z.index
	span := 1 << (x.depth - p.depth)
	from := at &^ (span - 1)
	for i := from; i < from+span; i++ {
		x.pages[i] = p
	}
	b.owned[p] = true
}

// maxDepth bounds the directory: 1<<20 pages of thousands of names each are more than memory holds.
const maxDepth = 20

// grow rebuilds the page at a place of the directory with more shards, or splits it, with the given nodes in shard s.
func (b *Batch) grow(at, s int, nodes []raw) {
	x := &b.z.index
	p := x.pages[at]
	p.shards[s] = ""
	all := append(p.nodes(), nodes...)
	if len(p.shards) < pageShards || p.depth == maxDepth {
		b.setPage(at, makePage(all, p.depth))
		return
	}
	if p.depth == x.depth {
		wide := make([]*page, 2*len(x.pages))
		for i, q := range x.pages {
			wide[2*i], wide[2*i+1] = q, q
		}
		x.pages, x.depth, at = wide, x.depth+1, 2*at
	}
	var half [2][]raw
	for _, r := range all {
		bit := r.hash >> (63 - p.depth) & 1
		half[bit] = append(half[bit], r)
	}
	low := at &^ (1<<(x.depth-p.depth) - 1)
	b.setPage(low, makePage(half[0], p.depth+1))
	b.setPage(low+1<<(x.depth-p.depth-1), makePage(half[1], p.depth+1))
}
