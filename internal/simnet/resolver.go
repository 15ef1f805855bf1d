package simnet

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// resolver is a server's side that resolves names of others from the root, and keeps what it learns.
type resolver struct {
	policy policy // guarded by the server's mu

	mu     sync.Mutex // guards the following
	caches []*cache   // several behind one address; chance decides which one answers
	failed map[netip.AddrPort]time.Time
}

// policy is how a resolver does it. Its slices are replaced, never changed.
type policy struct {
	roots   []netip.AddrPort
	longest limits
	refuse  bool // queries without RD, instead of answering them from the cache
	stale   bool // answers from what has run out while the authority fails (RFC 8767)
	ranges  bool // denies what lies between names that it knows (RFC 8198)
	rules   []rule
}

// limits are the longest times that things are kept, in seconds; zero: as long as their TTLs say.
type limits struct{ positive, negative uint32 }

// rule makes a resolver treat a name and those below it in a special way.
type rule struct {
	name  dnsname.Name
	rcode int        // of the answer, unless there is an address
	addr  netip.Addr // to answer with
	error uint16     // EDE to say why
	check bool       // does not apply to those who set CD: the name does not validate
}

// resolve answers as a resolver does, across CNAMEs. What fails is SERVFAIL.
func (s *Server) resolve(ctx context.Context, q *query) error {
	w := s.startWalk(q)
	q.reply.RecursionAvailable = true
	switch {
	case w.applyRule(q):
		return nil
	case q.msg.RecursionDesired:
		return w.recurse(ctx, q)
	}
	w.recall(q)
	return nil
}

// walk is one question at a resolver, perhaps on its way down from the root.
type walk struct {
	policy
	mem   *resolver
	cache *cache
	net   *Net
	addr  netip.Addr
}

func (s *Server) startWalk(q *query) *walk {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.resolver
	v.mu.Lock()
	defer v.mu.Unlock()
	which := s.chanceLocked(q.key, q.way.transport).IntN(len(v.caches))
	if len(v.caches) > 1 {
		q.instance = which + 1
	}
	return &walk{policy: v.policy, mem: v, cache: v.caches[which], net: s.net, addr: s.addr.Addr()}
}

// Extended errors that resolvers give (RFC 8914).
const (
	edeStale    = dns.ExtendedErrorCodeStaleAnswer
	edeStaleNX  = dns.ExtendedErrorCodeStaleNXDOMAINAnswer
	edeNobody   = dns.ExtendedErrorCodeNoReachableAuthority
	edeFiltered = dns.ExtendedErrorCodeFiltered
	edeBogus    = dns.ExtendedErrorCodeDNSBogus
)

// applyRule answers by the last rule that fits.
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

// recall answers a query without RD: from the cache and with nothing else.
func (w *walk) recall(q *query) {
	w.mem.mu.Lock()
	defer w.mem.mu.Unlock()
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
			q.reply.Ns = append(q.reply.Ns, &dns.NS{Hdr: header(d.zone.String(), dns.TypeNS, uint32(d.until.Sub(now)/time.Second)), Ns: h.String()})
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
			q.addError(edeNobody, "")
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
	maxDepth     = 6 // of names of servers that are looked up for names of servers
)

// lookup finds what one name has of a type: in the cache, or by asking.
func (w *walk) lookup(ctx context.Context, k key, depth int) (entry, error) {
	w.mem.mu.Lock()
	e, ok := w.cache.find(k, time.Now(), w.ranges)
	w.mem.mu.Unlock()
	if ok {
		return e.aged(time.Now()), nil
	}
	e, err := w.fetch(ctx, k, depth)
	if err == nil || !w.stale {
		return e, err
	}
	w.mem.mu.Lock()
	defer w.mem.mu.Unlock()
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
	w.mem.mu.Lock()
	d, ok := w.cache.closest(k, time.Now())
	w.mem.mu.Unlock()
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
			w.mem.mu.Lock()
			defer w.mem.mu.Unlock()
			e := newEntry(k, m, w.longest, time.Now())
			w.cache.keep(k, e)
			return e, nil
		}
		w.mem.mu.Lock()
		w.cache.cuts[next.zone] = next
		w.mem.mu.Unlock()
		d = next
	}
	return entry{}, errUnreachable
}

// referral is where a reply refers to, if that is further down.
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

// addressesOf is the address in a record, as a server's.
func addressesOf(rec dns.RR) []netip.AddrPort {
	var octets []byte
	switch rec := rec.(type) {
	case *dns.A:
		octets = rec.A.To4()
	case *dns.AAAA:
		octets = rec.AAAA
	}
	if a, ok := netip.AddrFromSlice(octets); ok {
		return []netip.AddrPort{netip.AddrPortFrom(a, 53)}
	}
	return nil
}

// clamp is how long something with a TTL is kept.
func clamp(ttl, longest uint32) uint32 {
	if longest > 0 {
		return min(ttl, longest)
	}
	return ttl
}
