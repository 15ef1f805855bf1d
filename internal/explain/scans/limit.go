package scans

import (
	"fmt"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
)

// check finds out whether a request can be looked at.
func (s *Service) check(r Request) (explain.Name, error) {
	if !slices.Contains([]explain.Kind{explain.Scan, explain.Analyze, explain.Compare}, r.Kind) {
		return explain.Name{}, fmt.Errorf("%w: kind is %q; there are scan, analyze and compare", ErrRequest, r.Kind)
	}
	if len(r.Types) > 8 || len(r.Expect) > 32 {
		return explain.Name{}, fmt.Errorf("%w: at most 8 types and 32 expected records", ErrRequest)
	}
	name, err := s.opts.Parse(r.Target)
	if err != nil {
		return explain.Name{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if s.opts.Public && private(name) {
		return explain.Name{}, fmt.Errorf("%w: %s", ErrPrivate, name)
	}
	return name, nil
}

// special are the names that are not of the public DNS (RFC 6761 and its registry), and those that people use as if they were
// not.
var special = []string{"localhost", "local", "internal", "invalid", "test", "onion", "alt", "home.arpa", "lan", "corp", "home", "intranet",
	"10.in-addr.arpa", "168.192.in-addr.arpa", "127.in-addr.arpa", "254.169.in-addr.arpa", "d.f.ip6.arpa", "8.e.f.ip6.arpa"}

// private reports whether a name means something inside networks only.
func private(n explain.Name) bool {
	if n.NumLabels() < 2 && !n.IsRoot() {
		return true // a top-level domain is nobody's to look at in a public service; a host name is not of the DNS
	}
	for i := 16; i < 32; i++ {
		if n.IsIn(dnsname.MustParse(fmt.Sprintf("%d.172.in-addr.arpa", i))) {
			return true
		}
	}
	return slices.ContainsFunc(special, func(s string) bool { return n.IsIn(dnsname.MustParse(s)) })
}

// buckets count events by key, so many a minute.
type buckets[K comparable] struct {
	perMinute int
	all       map[K]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// now is a bucket as it is at a moment.
func (b *buckets[K]) now(k K, at time.Time) bucket {
	x, ok := b.all[k]
	if !ok {
		return bucket{float64(b.perMinute), at}
	}
	x.left = min(float64(b.perMinute), x.left+at.Sub(x.at).Minutes()*float64(b.perMinute))
	x.at = at
	return x
}

// wait is how long to wait until there is room for one more; zero: none.
func (b *buckets[K]) wait(k K, at time.Time) time.Duration {
	x := b.now(k, at)
	if x.left >= 1 {
		return 0
	}
	return time.Duration((1 - x.left) / float64(b.perMinute) * float64(time.Minute))
}

// maxBuckets is when those that are full again are thrown away.
const maxBuckets = 10_000

func (b *buckets[K]) take(k K, at time.Time) {
	if b.all == nil {
		b.all = map[K]bucket{}
	}
	if len(b.all) >= maxBuckets {
		for k := range b.all {
			if b.now(k, at).left >= float64(b.perMinute) {
				delete(b.all, k)
			}
		}
	}
	x := b.now(k, at)
	x.left--
	b.all[k] = x
}
