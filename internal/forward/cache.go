package forward

import (
	"hash/maphash"
	"sync"
	"time"
)

// numShards keeps workers from waiting for each other.
const numShards = 16

// entryOverhead is what an entry takes besides its octets: the structs, and its place in the map.
const entryOverhead = 320

// cache remembers entries, up to a number of octets.
type cache struct {
	seed   maphash.Seed
	shards [numShards]shard
}

// shard is a part of the cache. What to forget is chosen by SIEVE: a hand walks from the oldest slot to the newest, spares
// those that were asked for since it came by, and takes the first other one. So a flood of names that are asked for once,
// the usual attack on a resolver, passes through without washing out what is in use, which LRU would let it do.
type shard struct {
	mu     sync.Mutex // guards the following
	slots  map[uint64]*slot
	newest *slot
	oldest *slot
	hand   *slot
	size   int
	limit  int
	counts cacheCounts
}

// cacheCounts are what a cache has done, and what it holds.
type cacheCounts struct {
	hits, stale, evicted uint64
	entries, size        int
}

// slot is where an entry stands.
type slot struct {
	entry        *entry
	hash         uint64
	older, newer *slot
	visited      bool
	recheck      time.Time // until then it is given though stale
}

func newCache() *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].slots = map[uint64]*slot{}
	}
	return c
}

// shard returns the part that a key belongs to, and its hash. The seed is secret, so nobody can make keys meet.
func (c *cache) shard(hash uint64) *shard { return &c.shards[hash%numShards] }

// find returns the entry of a key that may be given now, and whether it is stale; nil for none.
func (c *cache) find(key []byte, now time.Time, maxStale time.Duration) (e *entry, stale bool) {
	hash := maphash.Bytes(c.seed, key)
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slots[hash]
	if slot == nil || slot.entry.key != string(key) {
		return nil, false
	}
	switch {
	case slot.entry.fresh(now):
		s.counts.hits++
	case now.Before(slot.recheck) && slot.entry.usable(now, maxStale):
		stale = true
		s.counts.stale++
	default:
		return nil, false
	}
	slot.visited = true
	return slot.entry, stale
}

// usable reports whether an answer may be given though its time may have passed.
func (e *entry) usable(now time.Time, maxStale time.Duration) bool {
	return e.isAnswer() && now.Sub(e.stored)-e.life < maxStale
}

// postpone notes that the entry of a key could not be renewed, so that it is given for a while, stale. It returns it; nil
// when there is none.
func (c *cache) postpone(key string, now time.Time, maxStale time.Duration) *entry {
	hash := maphash.String(c.seed, key)
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slots[hash]
	if slot == nil || slot.entry.key != key || !slot.entry.usable(now, maxStale) {
		return nil
	}
	s.counts.stale++
	slot.visited = true
	slot.recheck = now.Add(recheckAfter)
	return slot.entry
}

// put remembers an entry in place of the one before it. One without a lifetime only removes that.
func (c *cache) put(e *entry) {
	hash := maphash.String(c.seed, e.key)
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.slots[hash]; old != nil {
		s.removeLocked(old)
	}
	if e.life <= 0 || e.cost() > s.limit {
		return
	}
	n := &slot{entry: e, hash: hash, older: s.newest}
	if s.newest != nil {
		s.newest.newer = n
	} else {
		s.oldest = n
	}
	s.newest = n
	s.slots[hash] = n
	s.size += e.cost()
	s.shrinkLocked()
}

// cost is the octets that an entry takes.
func (e *entry) cost() int { return entryOverhead + len(e.key) + len(e.body) + 2*len(e.ttls) }

// shrinkLocked forgets entries until the rest is within the limit.
func (s *shard) shrinkLocked() {
	for s.size > s.limit {
		if s.hand == nil {
			s.hand = s.oldest
		}
		n := s.hand
		if n.visited {
			n.visited = false
			s.hand = n.newer
			continue
		}
		s.removeLocked(n)
		s.counts.evicted++
	}
}

func (s *shard) removeLocked(n *slot) {
	delete(s.slots, n.hash)
	s.size -= n.entry.cost()
	if s.hand == n {
		s.hand = n.newer
	}
	if n.older != nil {
		n.older.newer = n.newer
	} else {
		s.oldest = n.newer
	}
	if n.newer != nil {
		n.newer.older = n.older
	} else {
		s.newest = n.older
	}
}

// resize changes the limit, and forgets what is over it.
func (c *cache) resize(size int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.limit = size / numShards
		s.shrinkLocked()
		s.mu.Unlock()
	}
}

// count adds the counts of all shards.
func (c *cache) count() (sum cacheCounts) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		sum.hits += s.counts.hits
		sum.stale += s.counts.stale
		sum.evicted += s.counts.evicted
		sum.entries += len(s.slots)
		sum.size += s.size
		s.mu.Unlock()
	}
	return sum
}
