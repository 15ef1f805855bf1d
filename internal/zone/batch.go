package zone

import "github.com/nameplane/nameplane/internal/rr"

// Batch changes Nodes: it builds the next value while the old one is served. A Batch is used by one goroutine.
type Batch struct {
	z     *Nodes
	owned map[*page]bool // pages that this batch created and may modify
}

// Edit begins a batch of changes. It does not change z.
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
	d := draft{key: key}
	if node := b.z.index.find([]byte(key), hashString(key)); node.Found() {
		d = node.draft(key)
	} else if len(s.Data) > 0 {
		b.adjustParent(key, +1)
	} else {
		return
	}
	b.z.count(&d, -1)
	d.put(encode(b.z.apex, s))
	d.reflag()
	b.z.count(&d, +1)
	if s.Type == rr.TypeSOA && key == "" {
		b.z.setSOA(s)
	}
	if key != "" && d.empty() {
		b.remove(key)
		return
	}
	b.write(&d)
}

// count adds by to the counters of delegations and DNAMEs that the node affects.
func (z *Nodes) count(d *draft, by int) {
	if d.flags&flagCut != 0 {
		z.cuts += by
	}
	if d.flags&flagDNAME != 0 {
		z.dnames += by
	}
}

// insert adds an empty node and the missing empty non-terminals above it.
func (b *Batch) insert(key string) Node {
	d := draft{key: key}
	b.write(&d)
	b.adjustParent(key, +1)
	return b.z.index.find([]byte(key), hashString(key))
}

// remove deletes an empty node and the empty non-terminals above it that have no other child.
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

// replace replaces the node with this key. An empty node string removes it.
func (b *Batch) replace(key, node string) {
	x := &b.z.index
	hash := hashString(key)
	p := b.ownPage(x.page(hash))
	s := p.slabs[p.slot(hash)]
	x.count += s.replace(key, hash, node)
	p.set(hash, s)
	b.splitFull(hash)
}

// ownPage returns the page at an entry of the directory. It copies a page that the served value still shares.
func (b *Batch) ownPage(at int) *page {
	p := b.z.index.pages[at]
	if b.owned[p] {
		return p
	}
	c := *p
	c.slabs = append([]slab(nil), p.slabs...)
	b.setPage(at, &c)
	return &c
}

// setPage stores p in all entries of the directory that its depth covers.
func (b *Batch) setPage(at int, p *page) {
	x := &b.z.index
	span := 1 << (x.depth - p.depth)
	from := at &^ (span - 1)
	for i := from; i < from+span; i++ {
		x.pages[i] = p
	}
	b.owned[p] = true
}

// splitFull splits the slab of a hash until no part is too large.
func (b *Batch) splitFull(hash uint64) {
	x := &b.z.index
	p := x.pages[x.page(hash)]
	s := p.slabs[p.slot(hash)]
	if !s.isFull() {
		return
	}
	depth := s.depth
	p = b.ensureDepth(hash, uint(depth)+1)
	var half [2][]rawNode
	for _, r := range s.all() {
		bit := r.hash >> (63 - depth) & 1
		half[bit] = append(half[bit], r)
	}
	bit := uint64(1) << (63 - depth)
	p.set(hash&^bit, makeSlab(half[0], depth+1))
	p.set(hash|bit, makeSlab(half[1], depth+1))
	b.splitFull(hash &^ bit)
	b.splitFull(hash | bit)
}

// ensureDepth gives the page of a hash slots for slabs of the given depth, and returns the page.
func (b *Batch) ensureDepth(hash uint64, depth uint) *page {
	x := &b.z.index
	p := b.ownPage(x.page(hash))
	switch {
	case depth <= p.depth+p.slotBits:
		return p
	case p.slotBits < pageBits:
		p.widen()
		return p
	case p.depth == x.depth:
		x.pages = doubled(x.pages)
		x.depth++
	}
	low, high := p.halves()
	bit := uint64(1) << (63 - p.depth)
	b.setPage(x.page(hash&^bit), low)
	b.setPage(x.page(hash|bit), high)
	return b.ensureDepth(hash, depth)
}
