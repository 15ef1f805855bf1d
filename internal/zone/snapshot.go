package zone

import (
	"iter"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Snapshot is every served zone at one moment. It is immutable. A query reads one Snapshot from beginning to end, so
// it sees all or nothing of a batch of changes, even across zones.
type Snapshot struct {
	depth  uint     // there are 1<<depth buckets, selected by the first bits of the hash
	groups []*group // groups of buckets; a change of one zone copies one group, not all of them
	count  int
	labels int // largest number of labels of any zone's name; it may be too high after a removal
}

// group is neighbouring buckets.
type group [groupSize][]bucketEntry

type bucketEntry struct {
	hash uint64
	zone *Nodes
}

// bucketMean is the mean number of zones in a bucket at which the number of buckets doubles.
const bucketMean = 8

// groupSize is the number of buckets that a change copies. With 100,000 zones there are 256 groups of 64.
const (
	groupDepth = 6
	groupSize  = 1 << groupDepth
)

// NewSnapshot returns a Snapshot of the given zones.
func NewSnapshot(zones ...*Nodes) *Snapshot {
	s := &Snapshot{depth: groupDepth, groups: []*group{new(group)}}
	return s.With(zones, nil)
}

// Len returns the number of zones.
func (s *Snapshot) Len() int { return s.count }

// MaxLabels returns the number of labels beyond which no suffix of a name can be a zone.
func (s *Snapshot) MaxLabels() int { return s.labels }

// Zone returns the zone of exactly this name, in lower-case wire form, or nil.
func (s *Snapshot) Zone(wire []byte) *Nodes {
	hash := hashKey(wire)
	at := s.bucket(hash)
	for _, p := range s.groups[at/groupSize][at%groupSize] {
		if p.hash == hash && p.zone.apex.Wire() == string(wire) {
			return p.zone
		}
	}
	return nil
}

// ZoneOf is Zone for a Name.
func (s *Snapshot) ZoneOf(n dnsname.Name) *Nodes { return s.Zone([]byte(n.Wire())) }

// All returns the zones in no order.
func (s *Snapshot) All() iter.Seq[*Nodes] {
	return func(yield func(*Nodes) bool) {
		for _, g := range s.groups {
			for _, b := range g {
				for _, p := range b {
					if !yield(p.zone) {
						return
					}
				}
			}
		}
	}
}

// With returns a Snapshot with the zones of put in their given state and without the zones of remove.
func (s *Snapshot) With(put []*Nodes, remove []dnsname.Name) *Snapshot {
	next := draftSnapshot{Snapshot: *s, owned: map[*group]bool{}}
	next.groups = slices.Clone(s.groups)
	for _, n := range remove {
		next.replace(n, nil)
	}
	for _, z := range put {
		next.replace(z.apex, z)
		next.labels = max(next.labels, z.apex.NumLabels())
	}
	return &next.Snapshot
}

func (s *Snapshot) bucket(hash uint64) uint64 { return hash >> (64 - s.depth) }

// draftSnapshot is a Snapshot that is not yet shared. It may change the groups in owned.
type draftSnapshot struct {
	Snapshot
	owned map[*group]bool
}

// replace replaces the zone n by z, or removes it when z is nil.
func (s *draftSnapshot) replace(n dnsname.Name, z *Nodes) {
	if z != nil && s.count >= bucketMean<<s.depth {
		s.double()
	}
	hash := hashString(n.Wire())
	at := s.bucket(hash)
	g := s.ownGroup(at / groupSize)
	old := g[at%groupSize]
	next := slices.DeleteFunc(slices.Clone(old), func(p bucketEntry) bool { return p.zone.apex == n })
	s.count += len(next) - len(old)
	if z != nil {
		next = append(next, bucketEntry{hash, z})
		s.count++
	}
	g[at%groupSize] = next
}

func (s *draftSnapshot) ownGroup(at uint64) *group {
	g := s.groups[at]
	if !s.owned[g] {
		c := *g
		g = &c
		s.groups[at] = g
		s.owned[g] = true
	}
	return g
}

// double spreads the zones over twice as many buckets. It touches every zone, but only after as many additions.
func (s *draftSnapshot) double() {
	old := s.Snapshot
	s.depth++
	s.groups = make([]*group, 2*len(old.groups))
	for i := range s.groups {
		s.groups[i] = new(group)
		s.owned[s.groups[i]] = true
	}
	for z := range old.All() {
		hash := hashString(z.apex.Wire())
		at := s.bucket(hash)
		b := &s.groups[at/groupSize][at%groupSize]
		*b = append(*b, bucketEntry{hash, z})
	}
}
