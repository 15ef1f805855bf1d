package zone

// Walk calls fn with every record set of the zone until fn returns false. Names come in no order, all sets of a name
// together. labels is the name without the apex, in wire form and lower case. Walk reports whether it reached the
// end.
func (z *Nodes) Walk(fn func(labels string, r Records) bool) bool {
	x := &z.index
	for i := 0; i < len(x.pages); {
		p := x.pages[i]
		i += 1 << (x.depth - p.depth) // a page fills several entries when other pages are split finer
		for j := 0; j < len(p.slabs); {
			s := &p.slabs[j]
			j += 1 << (p.depth + p.slotBits - uint(s.depth))
			if !s.walk(fn) {
				return false
			}
		}
	}
	return true
}

func (s *slab) walk(fn func(labels string, r Records) bool) bool {
	for g := range groups {
		b := s.group(g)
		if b == "" {
			continue
		}
		at := 0
		for range b[len(b)-1] {
			size, from := uvarint(b, at+1)
			key := b[from+1 : from+1+int(b[from])]
			if !(Node{b[from+1+len(key) : from+size]}).walk(key, fn) {
				return false
			}
			at = from + size
		}
	}
	return true
}

func (n Node) walk(key string, fn func(labels string, r Records) bool) bool {
	count, at := n.sets()
	for range count {
		var r Records
		if r, at = n.set(at); !fn(key, r) {
			return false
		}
	}
	return true
}
