package scans

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
)

// check validates a request and returns its name.
func (s *Service) check(r Request) (dnsname.Name, error) {
	if !slices.Contains([]explain.Kind{explain.Scan, explain.Analyze, explain.Compare, explain.KindService}, r.Kind) {
		return dnsname.Name{}, fmt.Errorf("%w: kind is %q; there are scan, analyze, compare and service", ErrRequest, r.Kind)
	}
	if err := s.checkService(r); err != nil {
		return dnsname.Name{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if len(r.Types) > 8 || len(r.Expect) > 32 {
		return dnsname.Name{}, fmt.Errorf("%w: at most 8 types and 32 expected records", ErrRequest)
	}
	if (r.Kind == explain.Scan || r.Kind == explain.KindService) && len(r.Types)+len(r.Expect) > 0 {
		return dnsname.Name{}, fmt.Errorf("%w: types and expect are for analyze and compare", ErrRequest)
	}
	if r.Kind != explain.Scan && len(r.DKIM) > 0 {
		return dnsname.Name{}, fmt.Errorf("%w: dkim is for scan", ErrRequest)
	}
	if err := explain.CheckSelectors(r.DKIM); err != nil {
		return dnsname.Name{}, fmt.Errorf("%w: dkim: %w", ErrRequest, err)
	}
	for _, t := range r.Types {
		if !t.IsData() {
			return dnsname.Name{}, fmt.Errorf("%w: types: %s is not a type of resource records", ErrRequest, t)
		}
	}
	for _, e := range r.Expect {
		if _, err := explain.ParseExpect(e); err != nil {
			return dnsname.Name{}, fmt.Errorf("%w: expect %q: %w", ErrRequest, e, err)
		}
	}
	name, err := s.opts.Parse(r.Target)
	if err != nil {
		return dnsname.Name{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if s.opts.Public && private(name) {
		return dnsname.Name{}, fmt.Errorf("%w: %s", ErrPrivate, name)
	}
	return name, nil
}

// maxObjects limits the objects of a request. They are stored with the scan, and with its facts.
const maxObjects = 64 << 10

// maxNS limits the nameservers of a proof. A zone with more than 13 is rare.
const maxNS = 32

// checkService checks the fields of a service.
func (s *Service) checkService(r Request) error {
	switch {
	case r.Kind != explain.KindService && (r.PointsTo+r.Proof+r.ProofHTTP+r.Objects != "" || len(r.ProofNS) > 0):
		return errors.New("points_to, proof, proof_http, proof_ns and objects are for service")
	case r.Kind != explain.KindService:
		return nil
	case len(r.Objects) > maxObjects:
		return fmt.Errorf("objects has more than %d KiB", maxObjects>>10)
	case len(r.ProofNS) > maxNS:
		return fmt.Errorf("proof_ns has %d nameservers; at most %d are allowed", len(r.ProofNS), maxNS)
	case s.opts.CheckService == nil:
		return errors.New("services are not checked here")
	}
	return s.opts.CheckService(r)
}

// special are the names outside the public DNS (IANA's registry of special-use names as updated on 2026-05-22, and RFC
// 6303), and names that people use as if they were.
var special = []string{"localhost", "local", "internal", "invalid", "test", "onion", "alt", "home.arpa", "lan", "corp",
	"home", "intranet",
	"10.in-addr.arpa", "168.192.in-addr.arpa", "127.in-addr.arpa", "254.169.in-addr.arpa", "0.in-addr.arpa",
	"c.f.ip6.arpa", "d.f.ip6.arpa",
	"8.e.f.ip6.arpa", "9.e.f.ip6.arpa", "a.e.f.ip6.arpa", "b.e.f.ip6.arpa", "0.0.0.0.0.0.0.0.ip6.arpa"}

// private reports whether a name has a meaning only inside private networks.
func private(n dnsname.Name) bool {
	if n.NumLabels() < 2 && !n.IsRoot() {
		return true // a public service scans no top-level domains, and a single label is usually a local host name
	}
	for i := range 64 { // 172.16.0.0/12 and 100.64.0.0/10 do not end at a label
		if i < 16 && n.IsIn(dnsname.MustParse(fmt.Sprintf("%d.172.in-addr.arpa", 16+i))) ||
			n.IsIn(dnsname.MustParse(fmt.Sprintf("%d.100.in-addr.arpa", 64+i))) {
			return true
		}
	}
	return slices.ContainsFunc(special, func(s string) bool { return n.IsIn(dnsname.MustParse(s)) })
}

// buckets are rate limiters by key.
type buckets[K comparable] struct {
	perMinute int
	all       map[K]*rate.Limiter
}

// maxBuckets is the number of buckets at which full ones are deleted.
const maxBuckets = 10_000

// of returns the bucket of a key.
func (b *buckets[K]) of(k K, at time.Time) *rate.Limiter {
	if l := b.all[k]; l != nil {
		return l
	}
	if b.all == nil {
		b.all = map[K]*rate.Limiter{}
	}
	if len(b.all) >= maxBuckets {
		maps.DeleteFunc(b.all, func(_ K, l *rate.Limiter) bool { return l.TokensAt(at) >= float64(b.perMinute) })
	}
	b.all[k] = rate.NewLimiter(rate.Limit(float64(b.perMinute)/60), b.perMinute)
	return b.all[k]
}

// wait returns the time until the next event is allowed; zero: now.
func (b *buckets[K]) wait(k K, at time.Time) time.Duration {
	missing := 1 - b.of(k, at).TokensAt(at)
	return time.Duration(max(0, missing) / float64(b.perMinute) * float64(time.Minute))
}

func (b *buckets[K]) take(k K, at time.Time) { b.of(k, at).AllowN(at, 1) }
