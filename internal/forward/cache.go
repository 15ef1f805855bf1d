package forward

import (
	"hash/maphash"
	"sync"
	"time"
)

// numShards is the number of shards. It reduces lock contention between workers.
const numShards = 16

// entryOverhead is the memory of an entry besides its data, in bytes: the structs and the map element.
const entryOverhead = 320

// cache holds entries, up to a number of bytes.
type cache struct {
	seed   maphash.Seed
	shards [numShards]shard
}

// shard is a part of the cache. Evictions follow SIEVE: a hand walks from the oldest slot to the newest. It skips the
// slots that were used since its last visit, and evicts the first other one. So a flood of names that are used once,
// the usual attack on a resolver, does not evict entries in use. With LRU it would.
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

// cacheCounts are the counters and sizes of a cache.
type cacheCounts struct {
	hits, stale, evicted uint64
	entries, size        int
}

// slot holds an entry in the list and the map.
type slot struct {
	entry        *entry
	hash         uint64
	older, newer *slot
	visited      bool
	recheck      time.Time // until then the stale entry is used
}

func newCache() *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].slots = map[uint64]*slot{}
	}
	return c
}

// shard returns the shard of a hash. The hash seed is secret, so that an attacker cannot produce collisions.
func (c *cache) shard(hash uint64) *shard { return &c.shards[hash%numShards] }

// find returns the entry of a key that may be used now, and whether it is stale; nil: none.
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

// usable reports whether an answer may be used though it may have expired.
func (e *entry) usable(now time.Time, maxStale time.Duration) bool {
	return e.isAnswer() && now.Sub(e.stored)-e.life < maxStale
}

// extendStale records that the entry of a key could not be renewed, so that the stale entry is used for a while. It
// returns the entry, or nil if there is none.
func (c *cache) extendStale(key string, now time.Time, maxStale time.Duration) *entry {
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

// put stores an entry and replaces the one before it. An entry without a lifetime only removes the old one.
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

// cost returns the memory of an entry in bytes.
func (e *entry) cost() int { return entryOverhead + len(e.key) + len(e.body) + 2*len(e.ttls) }

// shrinkLocked evicts entries until the size is within the limit.
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

// resize changes the limit, and evicts entries beyond it.
func (c *cache) resize(size int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.limit = size / numShards
		s.shrinkLocked()
		s.mu.Unlock()
	}
}

// count returns the sum of the counters of all shards.
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
