package zone

import (
	"iter"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Snapshot is every served zone at one moment. It is immutable: queries read one Snapshot from beginning to end, so
// they see a batch of changes whole or not at all, in however many zones it was made.
type Snapshot struct {
	depth   uint
	buckets [][]placed // 1<<depth of them, picked by the first bits of the hash
	count   int
	labels  int // most labels of any zone's name; it may be higher than true after a removal
}

type placed struct {
	hash uint64
	zone *Nodes
}

// bucketMean is the mean number of zones in a bucket at which their number doubles.
const bucketMean = 8

// NewSnapshot holds the given zones.
func NewSnapshot(zones ...*Nodes) *Snapshot {
	s := &Snapshot{buckets: make([][]placed, 1)}
	return s.With(zones, nil)
}

// Len is the number of zones.
func (s *Snapshot) Len() int { return s.count }

// MaxLabels is the number of labels beyond which no suffix of a name can be a zone.
func (s *Snapshot) MaxLabels() int { return s.labels }

// Zone is the zone of exactly this name, in lower-case wire form; nil when there is none.
func (s *Snapshot) Zone(wire []byte) *Nodes {
	hash := hashKey(wire)
	for _, p := range s.buckets[s.bucket(hash)] {
		if p.hash == hash && p.zone.apex.Wire() == string(wire) {
			return p.zone
		}
	}
	return nil
}

// ZoneOf is Zone for a Name.
func (s *Snapshot) ZoneOf(n dnsname.Name) *Nodes { return s.Zone([]byte(n.Wire())) }

// All walks the zones in no order.
func (s *Snapshot) All() iter.Seq[*Nodes] {
	return func(yield func(*Nodes) bool) {
		for _, b := range s.buckets {
			for _, p := range b {
				if !yield(p.zone) {
					return
				}
			}
		}
	}
}

// With returns a Snapshot in which put zones are present in their given state and removed ones are absent.
func (s *Snapshot) With(put []*Nodes, remove []dnsname.Name) *Snapshot {
	next := *s
	next.buckets = slices.Clone(s.buckets)
	for _, n := range remove {
		next.replace(n, nil)
	}
	for _, z := range put {
		next.replace(z.apex, z)
		next.labels = max(next.labels, z.apex.NumLabels())
	}
	return &next
}

func (s *Snapshot) bucket(hash uint64) int {
	if s.depth == 0 {
		return 0
	}
	return int(hash >> (64 - s.depth))
}

// replace changes one zone of a Snapshot that is not yet shared.
func (s *Snapshot) replace(n dnsname.Name, z *Nodes) {
	if z != nil && s.count >= bucketMean<<s.depth {
		s.double()
	}
	hash := hashString(n.Wire())
	at := s.bucket(hash)
	next := slices.DeleteFunc(slices.Clone(s.buckets[at]), func(p placed) bool { return p.zone.apex == n })
	s.count += len(next) - len(s.buckets[at])
	if z != nil {
		next = append(next, placed{hash, z})
		s.count++
	}
	s.buckets[at] = next
}

// double spreads the zones over twice as many buckets. It touches every zone, once in as many additions.
func (s *Snapshot) double() {
	old := s.buckets
	s.depth++
	s.buckets = make([][]placed, 1<<s.depth)
	for _, b := range old {
		for _, p := range b {
			at := s.bucket(p.hash)
			s.buckets[at] = append(s.buckets[at], p)
		}
	}
}
