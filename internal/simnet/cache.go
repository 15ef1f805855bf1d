package simnet

import (
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// cache is the cache of a resolver. Names that do not exist are stored with type 0, because they exist for no type.
type cache struct {
	entries map[key]entry
	cuts    map[dnsname.Name]delegation
	ranges  []gap
}

// entry is a positive or negative answer for one name and type.
type entry struct {
	rcode  int
	answer []dns.RR // including signatures
	ns     []dns.RR // authority section of a negative answer
	from   time.Time
	until  time.Time
	stale  bool
}

// delegation is a zone and its servers according to its parent.
type delegation struct {
	zone  dnsname.Name
	hosts []dnsname.Name
	addrs []netip.AddrPort
	until time.Time
}

// gap is a range of names in which no name exists.
type gap struct {
	zone, after, before dnsname.Name
	entry               entry
}

func newCache() *cache { return &cache{entries: map[key]entry{}, cuts: map[dnsname.Name]delegation{}} }

// find returns the entry for a name that has not expired.
func (c *cache) find(k key, now time.Time, ranges bool) (entry, bool) {
	if e, ok := c.kept(k, now); ok {
		return e, true
	}
	for _, g := range c.ranges {
		if ranges && now.Before(g.entry.until) && k.name.IsIn(g.zone) && g.after.Compare(k.name) < 0 &&
			(k.name.Compare(g.before) < 0 || g.before == g.zone) {
			return g.entry, true
		}
	}
	return entry{}, false
}

// kept returns the entry for a name that has not expired at a time.
func (c *cache) kept(k key, at time.Time) (entry, bool) {
	for _, k := range []key{k, {k.name, dns.TypeCNAME}, {k.name, 0}} {
		if e, ok := c.entries[k]; ok && at.Before(e.until) && (k.typ != dns.TypeCNAME || len(e.answer) > 0) {
			return e, true
		}
	}
	return entry{}, false
}

// staleTTL is the TTL of stale answers (RFC 8767 §4).
const staleTTL = 30

// expired returns the entry for a name even if it has expired.
func (c *cache) expired(k key) (entry, bool) {
	e, ok := c.kept(k, time.Time{})
	e.stale = true
	e.answer, e.ns = withTTL(e.answer, staleTTL), withTTL(e.ns, staleTTL)
	return e, ok
}

// closest returns the deepest zone above a name whose servers are known. The DS records of a zone are in its parent.
func (c *cache) closest(k key, now time.Time) (delegation, bool) {
	n := k.name
	if k.typ == dns.TypeDS {
		n = n.Parent()
	}
	for ; !n.IsZero(); n = n.Parent() {
		if d, ok := c.cuts[n]; ok && now.Before(d.until) {
			return d, true
		}
	}
	return delegation{}, false
}

// keep stores the reply to a question.
func (c *cache) keep(k key, e entry) {
	if e.until.Equal(e.from) {
		return
	}
	switch {
	case e.rcode == dns.RcodeNameError:
		k.typ = 0
	case len(e.answer) > 0:
		k.typ = e.answer[0].Header().Rrtype
	}
	c.entries[k] = e
	c.ranges = slices.DeleteFunc(c.ranges, func(g gap) bool { return !e.from.Before(g.entry.until) })
	for _, rec := range e.ns {
		if nsec, ok := rec.(*dns.NSEC); ok && e.rcode == dns.RcodeNameError {
			c.ranges = append(c.ranges, gap{zone: e.zone(), after: dnsname.MustParse(nsec.Hdr.Name),
				before: dnsname.MustParse(nsec.NextDomain), entry: e})
		}
	}
}

// zone returns the zone of a negative entry.
func (e entry) zone() dnsname.Name {
	for _, rec := range e.ns {
		if rec.Header().Rrtype == dns.TypeSOA {
			return dnsname.MustParse(rec.Header().Name)
		}
	}
	return dnsname.Root
}

// newEntry takes only the records of the name itself from a reply. Alias targets are queried separately, because each
// record set expires on its own in a cache.
func newEntry(k key, m *dns.Msg, longest limits, now time.Time) entry {
	e := entry{from: now, until: now}
	for _, rec := range m.Answer {
		h := rec.Header()
		owner, err := dnsname.Parse(h.Name)
		if err == nil && owner == k.name && (h.Rrtype == k.typ || h.Rrtype == dns.TypeCNAME || covers(rec, k.typ)) {
			e.answer = append(e.answer, rec)
		}
	}
	if len(e.answer) > 0 {
		// Put signatures after the records that they sign.
		slices.SortStableFunc(e.answer, func(a, b dns.RR) int { return isSignature(a) - isSignature(b) })
		ttl := clamp(minTTL(e.answer), longest.positive)
		e.answer, e.until = withTTL(e.answer, ttl), now.Add(time.Duration(ttl)*time.Second)
		return e
	}
	e.rcode, e.ns = m.Rcode, m.Ns
	for _, rec := range m.Ns {
		if soa, ok := rec.(*dns.SOA); ok { // without an SOA the answer must not be cached (RFC 2308 §5)
			ttl := clamp(min(soa.Hdr.Ttl, soa.Minttl), longest.negative)
			e.ns, e.until = withTTL(m.Ns, ttl), now.Add(time.Duration(ttl)*time.Second)
		}
	}
	return e
}

func covers(rec dns.RR, typ uint16) bool {
	sig, ok := rec.(*dns.RRSIG)
	return ok && (sig.TypeCovered == typ || sig.TypeCovered == dns.TypeCNAME)
}

func isSignature(rec dns.RR) int {
	if rec.Header().Rrtype == dns.TypeRRSIG {
		return 1
	}
	return 0
}

// minTTL returns the smallest TTL of a set.
func minTTL(set []dns.RR) uint32 {
	ttl := set[0].Header().Ttl
	for _, rec := range set {
		ttl = min(ttl, rec.Header().Ttl)
	}
	return ttl
}

// withTTL returns copies of records with another TTL.
func withTTL(set []dns.RR, ttl uint32) []dns.RR {
	return copies(set, func(h *dns.RR_Header) { h.Ttl = ttl })
}

// copies returns copies of records with a changed header.
func copies(set []dns.RR, change func(*dns.RR_Header)) (out []dns.RR) {
	for _, rec := range set {
		rec = dns.Copy(rec)
		change(rec.Header())
		out = append(out, rec)
	}
	return out
}

// aged returns the entry as it is sent: with the remaining lifetime as TTL, in whole seconds.
func (e entry) aged(now time.Time) entry {
	left := uint32((e.until.Sub(now) + time.Second - 1) / time.Second)
	e.answer, e.ns = withTTL(e.answer, left), withTTL(e.ns, left)
	return e
}

// addTo adds the entry to a reply. Only clients with the DO bit get signatures.
func (e entry) addTo(q *query) {
	wanted := func(section []dns.RR) (out []dns.RR) {
		for _, rec := range section {
			t := rec.Header().Rrtype
			if q.do() || t == q.typ || t != dns.TypeRRSIG && t != dns.TypeNSEC && t != dns.TypeNSEC3 {
				out = append(out, rec)
			}
		}
		return out
	}
	q.reply.Rcode = e.rcode
	q.reply.Answer = append(q.reply.Answer, wanted(e.answer)...)
	q.reply.Ns = append(q.reply.Ns, wanted(e.ns)...)
}

func (e entry) staleError() uint16 {
	if e.rcode == dns.RcodeNameError {
		return wire.EDEStaleNXDomain
	}
	return wire.EDEStale
}

// alias returns the alias target of the entry, if the query was not for the alias itself.
func (e entry) alias(typ uint16) (dnsname.Name, bool) {
	if len(e.answer) == 0 || typ == dns.TypeCNAME {
		return dnsname.Name{}, false
	}
	c, ok := e.answer[0].(*dns.CNAME)
	if !ok {
		return dnsname.Name{}, false
	}
	return dnsname.MustParse(c.Target), true
}
