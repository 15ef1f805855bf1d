package simnet

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// resolver is the part of a server that resolves other names from the root and caches the results.
type resolver struct {
	policy policy // guarded by the server's mu

	mu     sync.Mutex // guards the following
	caches []*cache   // several caches behind one address; a random one answers
	failed map[netip.AddrPort]time.Time
}

// policy has the settings of a resolver. Its slices are replaced, never changed.
type policy struct {
	roots   []netip.AddrPort
	longest limits
	refuse  bool // refuse queries without RD instead of answering them from the cache
	stale   bool // use expired entries while the authority fails (RFC 8767)
	ranges  bool // deny names between two known names (RFC 8198)
	rules   []rule
}

// limits are the maximum cache lifetimes in seconds. Zero means no limit.
type limits struct{ positive, negative uint32 }

// rule changes the answers for a name and the names below it.
type rule struct {
	name  dnsname.Name
	rcode int        // RCODE of the answer, if there is no address
	addr  netip.Addr // address of the answer
	error uint16     // EDE code; 0: none
	check bool       // does not apply to queries with CD: the name fails validation
}

// resolve answers as a resolver and follows CNAMEs. Failures become SERVFAIL.
func (s *Server) resolve(ctx context.Context, q *query) error {
	w := s.startWalk(q)
	q.reply.RecursionAvailable = true
	switch {
	case w.applyRule(q):
		return nil
	case q.msg.RecursionDesired:
		return w.recurse(ctx, q)
	}
	w.answerFromCache(q)
	return nil
}

// walk is one question to a resolver, which may need to walk down from the root.
type walk struct {
	policy
	resolver *resolver
	cache    *cache
	net      *Net
	addr     netip.Addr
}

// startWalk copies the policy and chooses one of the caches, so that the walk needs no lock of the server.
func (s *Server) startWalk(q *query) *walk {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.resolver
	v.mu.Lock()
	defer v.mu.Unlock()
	which := s.randLocked(q.key, q.via.transport).IntN(len(v.caches))
	if len(v.caches) > 1 {
		q.instance = which + 1
	}
	return &walk{policy: v.policy, resolver: v, cache: v.caches[which], net: s.net, addr: s.addr.Addr()}
}

// applyRule answers with the last matching rule.
func (p policy) applyRule(q *query) bool {
	for _, r := range slices.Backward(p.rules) {
		if !q.name.IsIn(r.name) || r.check && q.msg.CheckingDisabled {
			continue
		}
		q.reply.Rcode = r.rcode
		if (r.addr.Is4() && q.typ == dns.TypeA) || (r.addr.Is6() && q.typ == dns.TypeAAAA) {
			q.reply.Answer = []dns.RR{address(q.name, r.addr)}
		}
		if r.error != 0 {
			q.addError(r.error, "")
		}
		return true
	}
	return false
}

func address(name dnsname.Name, a netip.Addr) dns.RR {
	const ttl = 60
	if a.Is4() {
		return &dns.A{Hdr: header(name.String(), dns.TypeA, ttl), A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(name.String(), dns.TypeAAAA, ttl), AAAA: a.AsSlice()}
}

// answerFromCache answers a query without RD, only from the cache.
func (w *walk) answerFromCache(q *query) {
	w.resolver.mu.Lock()
	defer w.resolver.mu.Unlock()
	if w.refuse {
		q.reply.Rcode = dns.RcodeRefused
		return
	}
	now := time.Now()
	if e, ok := w.cache.find(q.key, now, w.ranges); ok {
		e.aged(now).addTo(q)
		return
	}
	if d, ok := w.cache.closest(q.key, now); ok {
		for _, h := range d.hosts {
			hdr := header(d.zone.String(), dns.TypeNS, uint32(d.until.Sub(now)/time.Second))
			q.reply.Ns = append(q.reply.Ns, &dns.NS{Hdr: hdr, Ns: h.String()})
		}
	}
}

// recurse answers a query with RD.
func (w *walk) recurse(ctx context.Context, q *query) error {
	for name := q.name; ; {
		e, err := w.lookup(ctx, key{name, q.typ}, 0)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			q.reply.Answer = nil
			q.reply.Rcode = dns.RcodeServerFailure
			q.addError(wire.EDENoReachable, "")
			return nil
		}
		if e.stale {
			q.addError(e.staleError(), "")
		}
		e.addTo(q)
		next, ok := e.alias(q.typ)
		if !ok || len(q.reply.Answer) > maxHops {
			return nil
		}
		name = next
	}
}

const (
	maxReferrals = 30
	maxDepth     = 6 // nesting of lookups for the names of servers
)

// lookup returns the answer for one name and type, from the cache or from the authorities.
func (w *walk) lookup(ctx context.Context, k key, depth int) (entry, error) {
	w.resolver.mu.Lock()
	e, ok := w.cache.find(k, time.Now(), w.ranges)
	w.resolver.mu.Unlock()
	if ok {
		return e.aged(time.Now()), nil
	}
	e, err := w.fetch(ctx, k, depth)
	if err == nil || !w.stale {
		return e, err
	}
	w.resolver.mu.Lock()
	defer w.resolver.mu.Unlock()
	if old, ok := w.cache.expired(k); ok {
		return old, nil
	}
	return entry{}, err
}

// fetch walks down from the closest zone whose servers are known.
func (w *walk) fetch(ctx context.Context, k key, depth int) (entry, error) {
	if depth > maxDepth {
		return entry{}, errUnreachable
	}
	w.resolver.mu.Lock()
	d, ok := w.cache.closest(k, time.Now())
	w.resolver.mu.Unlock()
	if !ok {
		d = delegation{zone: dnsname.Root, addrs: w.roots}
	}
	for range maxReferrals {
		m, err := w.askZone(ctx, d, k, depth)
		if err != nil {
			return entry{}, err
		}
		next, referred := w.referral(d.zone, k, m)
		if !referred {
			w.resolver.mu.Lock()
			defer w.resolver.mu.Unlock()
			e := newEntry(k, m, w.longest, time.Now())
			w.cache.keep(k, e)
			return e, nil
		}
		w.resolver.mu.Lock()
		w.cache.cuts[next.zone] = next
		w.resolver.mu.Unlock()
		d = next
	}
	return entry{}, errUnreachable
}

// referral returns the delegation in a reply, if it is to a zone further down.
func (w *walk) referral(zone dnsname.Name, k key, m *dns.Msg) (d delegation, ok bool) {
	if len(m.Answer) > 0 || m.Rcode != dns.RcodeSuccess {
		return d, false
	}
	for _, rec := range m.Ns {
		ns, is := rec.(*dns.NS)
		if !is {
			continue
		}
		cut, err := dnsname.Parse(ns.Hdr.Name)
		host, err2 := dnsname.Parse(ns.Ns)
		if err != nil || err2 != nil || cut == zone || !cut.IsIn(zone) || !k.name.IsIn(cut) {
			continue
		}
		ttl := clamp(ns.Hdr.Ttl, w.longest.positive)
		d.zone, d.until = cut, time.Now().Add(time.Duration(ttl)*time.Second)
		d.hosts = append(d.hosts, host)
	}
	for _, rec := range m.Extra {
		if owner, err := dnsname.Parse(rec.Header().Name); err == nil && slices.Contains(d.hosts, owner) && owner.IsIn(zone) {
			d.addrs = append(d.addrs, addressesOf(rec)...)
		}
	}
	return d, !d.zone.IsZero()
}

// addressesOf returns the address in a record with port 53.
func addressesOf(rec dns.RR) []netip.AddrPort {
	var ip []byte
	switch rec := rec.(type) {
	case *dns.A:
		ip = rec.A.To4()
	case *dns.AAAA:
		ip = rec.AAAA
	}
	if a, ok := netip.AddrFromSlice(ip); ok {
		return []netip.AddrPort{netip.AddrPortFrom(a, 53)}
	}
	return nil
}

// clamp returns the cache lifetime for a TTL.
func clamp(ttl, longest uint32) uint32 {
	if longest > 0 {
		return min(ttl, longest)
	}
	return ttl
}
