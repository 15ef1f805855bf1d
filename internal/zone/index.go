package zone

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// An index finds nodes by key. It is immutable; a batch makes the next one and copies only what it touches.
//
// It is an extendible hash table: a directory of pages, picked by the first bits of the hash, each an array of shards,
// picked by the next bits, each one string of about a dozen nodes. A change copies one shard, one page and the
// directory of a page per few thousand names; growth splits one shard array or one page at a time, so no step costs
// in proportion to the zone. An ordered tree was measured at six times the time of a hash lookup (design, section 7).
type index struct {
	depth uint // the directory has 1<<depth entries
	pages []*page
	count int
}

type page struct {
	depth  uint // bits of the hash that all keys in it share
	count  int
	shards []string
}

const (
	shardFill  = 12  // mean nodes in a shard when it is made
	shardFull  = 24  // mean nodes in a page's shards when their number doubles
	pageShards = 256 // most shards in a page; when they are full the page splits
	maxShard   = 255 // nodes in a shard: its count is one octet
)

// seed keeps an attacker from choosing names that all fall into one shard. It is the same for every zone of the
// process, and nothing outside it ever sees a hash.
var seed = maphash.MakeSeed()

func hashKey(key []byte) uint64       { return maphash.Bytes(seed, key) }
func hashString(key string) uint64    { return maphash.String(seed, key) }
func (p *page) shard(hash uint64) int { return int(hash>>8) & (len(p.shards) - 1) }
func tag(hash uint64) byte            { return byte(hash) }

func newIndex() index {
	return index{pages: []*page{{shards: []string{""}}}}
}

func (x *index) page(hash uint64) int {
	if x.depth == 0 {
		return 0
	}
	return int(hash >> (64 - x.depth))
}

// find returns the node with this key, of which hash is the hash.
func (x *index) find(key []byte, hash uint64) Node {
	p := x.pages[x.page(hash)]
	return findIn(p.shards[p.shard(hash)], key, tag(hash))
}

// A shard is: count 1, a tag per node, an offset 4 per node, nodes. The empty shard is the empty string.
func findIn(s string, key []byte, tag byte) Node {
	if s == "" {
		return Node{}
	}
	n := int(s[0])
	tags := s[1 : 1+n]
	for i := range len(tags) {
		if tags[i] != tag {
			continue
		}
		at := int(le32(s, 1+n+4*i))
		if k := int(s[at]); k == len(key) && s[at+1:at+1+k] == string(key) {
			return Node{s[at+1+k : nodeEnd(s, n, i)]}
		}
	}
	return Node{}
}

func nodeEnd(s string, n, i int) int {
	if i+1 < n {
		return int(le32(s, 1+n+4*(i+1)))
	}
	return len(s)
}

// raw is a node in a shard, as bytes from its key length on.
type raw struct {
	hash uint64
	node string
}

func shardNodes(s string) []raw {
	if s == "" {
		return nil
	}
	n := int(s[0])
	out := make([]raw, n)
	for i := range n {
		at := int(le32(s, 1+n+4*i))
		out[i] = raw{hashString(s[at+1 : at+1+int(s[at])]), s[at:nodeEnd(s, n, i)]}
	}
	return out
}

func makeShard(nodes []raw) string {
	n := len(nodes)
	if n == 0 {
		return ""
	}
	size := 1 + 5*n
	for _, r := range nodes {
		size += len(r.node)
	}
	b := make([]byte, 1+5*n, size)
	b[0] = byte(n)
	for i, r := range nodes {
		b[1+i] = tag(r.hash)
		binary.LittleEndian.PutUint32(b[1+n+4*i:], uint32(len(b)))
		b = append(b, r.node...)
	}
	return string(b)
}

// makePage spreads nodes over a number of shards that fits them. depth is the number of hash bits they share.
func makePage(nodes []raw, depth uint) *page {
	n := 1
	for n < pageShards && n*shardFill < len(nodes) {
		n *= 2
	}
	for {
		p := &page{depth: depth, count: len(nodes), shards: make([]string, n)}
		if p.fill(nodes) {
			return p
		}
		n *= 2 // a shard would have overflowed its count
	}
}

func (p *page) fill(nodes []raw) bool {
	slices.SortFunc(nodes, func(a, b raw) int { return p.shard(a.hash) - p.shard(b.hash) })
	for i := 0; i < len(nodes); {
		s := p.shard(nodes[i].hash)
		j := i + 1
		for j < len(nodes) && p.shard(nodes[j].hash) == s {
			j++
		}
		if j-i > maxShard {
			return false
		}
		p.shards[s] = makeShard(nodes[i:j])
		i = j
	}
	return true
}

func (p *page) nodes() []raw {
	out := make([]raw, 0, p.count)
	for _, s := range p.shards {
		out = append(out, shardNodes(s)...)
	}
	return out
}
