package zone

import "hash/maphash"

// An index finds nodes by key. It is immutable; a batch makes the next one and copies only what it touches.
//
// It is an extendible hash table in two steps: a directory of pages, picked by the first bits of the hash, each an
// array of slabs, picked by the next bits, each one string of about a hundred nodes. Directory and pages of a million
// names are small enough to stay in a core's own cache, so that finding a node waits for memory twice: for its slot in
// the slab and for the node. A change copies one slab, one page and the directory; growth splits one slab or one
// page at a time, so no step costs in proportion to the zone. An ordered tree was measured at six times the time of a
// hash lookup (design, section 7).
type index struct {
	depth uint // the directory has 1<<depth entries
	pages []*page
	count int
}

// page is the slabs of the keys that share the first depth bits of their hash. A slab that shares fewer bits than there
// are to pick one by stands in several places.
type page struct {
	depth uint
	fine  uint // there are 1<<fine places
	slabs []slab
}

// pageBits bounds a page to 64 places, which are copied when a slab changes.
const pageBits = 6

// seed keeps an attacker from choosing names that all fall into one slab. It is the same for every zone of the
// process, and nothing outside it ever sees a hash.
var seed = maphash.MakeSeed()

func hashKey(key []byte) uint64    { return maphash.Bytes(seed, key) }
func hashString(key string) uint64 { return maphash.String(seed, key) }

func newIndex() index {
	return index{pages: []*page{{slabs: []slab{makeSlab(nil, 0)}}}}
}

func (x *index) page(hash uint64) int { return int(hash >> (64 - x.depth)) }
func (p *page) place(hash uint64) int { return int(hash << p.depth >> (64 - p.fine)) }

// find returns the node with this key, of which hash is the hash.
func (x *index) find(key []byte, hash uint64) Node {
	p := x.pages[x.page(hash)]
	return p.slabs[p.place(hash)].find(key, hash)
}

// set puts a slab in all places that its depth covers. There are places enough for it.
func (p *page) set(hash uint64, s slab) {
	span := 1 << (p.depth + p.fine - uint(s.depth))
	from := p.place(hash) &^ (span - 1)
	for i := from; i < from+span; i++ {
		p.slabs[i] = s
	}
}

// widen doubles the places of a page.
func (p *page) widen() {
	p.slabs = twice(p.slabs)
	p.fine++
}

// halves are the two pages that a page splits into. No slab is touched.
func (p *page) halves() (low, high *page) {
	n := len(p.slabs) / 2
	half := page{depth: p.depth + 1, fine: p.fine - 1}
	low, high = new(half), new(half)
	low.slabs = append([]slab(nil), p.slabs[:n]...)
	high.slabs = append([]slab(nil), p.slabs[n:]...)
	return low, high
}

func twice[T any](old []T) []T {
	wide := make([]T, 2*len(old))
	for i, v := range old {
		wide[2*i], wide[2*i+1] = v, v
	}
	return wide
}
