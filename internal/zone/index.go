package zone

import "hash/maphash"

// index finds nodes by key. It is immutable; a Batch builds the next one and copies only what it changes.
//
// It is an extendible hash table in two steps. The first bits of the hash select a page from a directory. The next
// bits select a slab of that page, which is one string of about a hundred nodes. Directory and pages of a million
// names fit in a core's own cache, so finding a node waits for memory twice: for its slot in the slab and for the
// node. A change copies one slab, one page and the directory. Growth splits one slab or one page at a time, so no
// step costs in proportion to the zone. An ordered tree took six times as long as a hash lookup
// (docs/designs/001-served-nodes.md).
type index struct {
	depth uint // the directory has 1<<depth entries
	pages []*page
	count int
}

// page holds the slabs of the keys that share the first depth bits of their hash. A slab whose keys share fewer bits
// than select a slot fills several slots.
type page struct {
	depth    uint
	slotBits uint // the page has 1<<slotBits slots
	slabs    []slab
}

// pageBits limits a page to 64 slots, which are copied when a slab changes.
const pageBits = 6

// seed prevents an attacker from choosing names that all hash to one slab. All zones of the process share it, and no
// hash ever leaves the process.
var seed = maphash.MakeSeed()

func hashKey(key []byte) uint64    { return maphash.Bytes(seed, key) }
func hashString(key string) uint64 { return maphash.String(seed, key) }

func newIndex() index {
	return index{pages: []*page{{slabs: []slab{makeSlab(nil, 0)}}}}
}

func (x *index) page(hash uint64) int { return int(hash >> (64 - x.depth)) }
func (p *page) slot(hash uint64) int  { return int(hash << p.depth >> (64 - p.slotBits)) }

// find returns the node with this key, whose hash is hash.
func (x *index) find(key []byte, hash uint64) Node {
	p := x.pages[x.page(hash)]
	return p.slabs[p.slot(hash)].find(key, hash)
}

// set stores a slab in all slots that its depth covers. The page must have slots for that depth.
func (p *page) set(hash uint64, s slab) {
	span := 1 << (p.depth + p.slotBits - uint(s.depth))
	from := p.slot(hash) &^ (span - 1)
	for i := from; i < from+span; i++ {
		p.slabs[i] = s
	}
}

// widen doubles the slots of a page.
func (p *page) widen() {
	p.slabs = doubled(p.slabs)
	p.slotBits++
}

// halves returns the two pages that a page splits into. The slabs do not change.
func (p *page) halves() (low, high *page) {
	n := len(p.slabs) / 2
	half := page{depth: p.depth + 1, slotBits: p.slotBits - 1}
	low, high = new(half), new(half)
	low.slabs = append([]slab(nil), p.slabs[:n]...)
	high.slabs = append([]slab(nil), p.slabs[n:]...)
	return low, high
}

func doubled[T any](old []T) []T {
	wide := make([]T, 2*len(old))
	for i, v := range old {
		wide[2*i], wide[2*i+1] = v, v
	}
	return wide
}
