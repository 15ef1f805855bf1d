package scans

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/rr"
)

// check finds out whether a request can be looked at.
func (s *Service) check(r Request) (dnsname.Name, error) {
	if !slices.Contains([]explain.Kind{explain.Scan, explain.Analyze, explain.Compare}, r.Kind) {
		return dnsname.Name{}, fmt.Errorf("%w: kind is %q; there are scan, analyze and compare", ErrRequest, r.Kind)
	}
	if len(r.Types) > 8 || len(r.Expect) > 32 {
		return dnsname.Name{}, fmt.Errorf("%w: at most 8 types and 32 expected records", ErrRequest)
	}
	if r.Kind == explain.Scan && len(r.Types)+len(r.Expect) > 0 {
		return dnsname.Name{}, fmt.Errorf("%w: types and expect are for analyze and compare: a scan is about a domain, and not about records", ErrRequest)
	}
	for _, t := range r.Types {
		if !t.IsData() {
			return dnsname.Name{}, fmt.Errorf("%w: types: %s is no type of records", ErrRequest, t)
		}
	}
	for _, e := range r.Expect {
		if err := expectation(e); err != nil {
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

// expectation finds out whether a text is "A=192.0.2.1".
func expectation(text string) error {
	word, data, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("must be TYPE=DATA")
	}
	var t rr.Type
	if err := t.UnmarshalText([]byte(word)); err != nil {
		return err
	}
	addr, err := netip.ParseAddr(data)
	switch {
	case !t.IsData():
		return fmt.Errorf("%s is no type of records", t)
	case t == rr.TypeA && (err != nil || !addr.Is4()):
		return errors.New("must be an IPv4 address")
	case t == rr.TypeAAAA && (err != nil || addr.Is4()):
		return errors.New("must be an IPv6 address")
	}
	_, err = explain.ParseExpect(text)
	return err
}

// special are the names that are not of the public DNS (RFC 6761 and its registry, RFC 6303), and those that people use as if they
// were not.
var special = []string{"localhost", "local", "internal", "invalid", "test", "onion", "alt", "home.arpa", "lan", "corp", "home", "intranet",
	"10.in-addr.arpa", "168.192.in-addr.arpa", "127.in-addr.arpa", "254.169.in-addr.arpa", "0.in-addr.arpa", "c.f.ip6.arpa", "d.f.ip6.arpa",
	"8.e.f.ip6.arpa", "9.e.f.ip6.arpa", "a.e.f.ip6.arpa", "b.e.f.ip6.arpa", "0.0.0.0.0.0.0.0.ip6.arpa"}

// private reports whether a name means something inside networks only.
func private(n dnsname.Name) bool {
	if n.NumLabels() < 2 && !n.IsRoot() {
		return true // a top-level domain is nobody's to look at in a public service; a host name is not of the DNS
	}
	for i := range 64 { // 172.16.0.0/12 and 100.64.0.0/10, which no name of whole labels is
		if i < 16 && n.IsIn(dnsname.MustParse(fmt.Sprintf("%d.172.in-addr.arpa", 16+i))) || n.IsIn(dnsname.MustParse(fmt.Sprintf("%d.100.in-addr.arpa", 64+i))) {
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
