package simnet

import (
	"context"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

// cached is an answer in the cache of a server that forwards.
type cached struct {
	rcode  int
	answer []dns.RR
	ns     []dns.RR
	from   time.Time
	until  time.Time
}

// route is the server that a name is forwarded to.
func (s *Server) route(name dnsname.Name) (netip.AddrPort, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routeLocked(name)
}

func (s *Server) routeLocked(name dnsname.Name) (netip.AddrPort, bool) {
	for n := name; !n.IsZero(); n = n.Parent() {
		if to, ok := s.routes[n]; ok {
			return to, true
		}
	}
	return netip.AddrPort{}, false
}

// maxHops bounds the CNAMEs that a server follows from one server to another.
const maxHops = 20

// forward answers as a resolver does: from the servers that know, across CNAMEs, and from the cache for as long as the TTLs
// last. What fails is SERVFAIL.
func (s *Server) forward(ctx context.Context, q *query) error {
	r, name, typ := q.reply, q.name, q.typ
	r.RecursionAvailable = true
	for range maxHops {
		to, ok := s.route(name)
		if !ok {
			return nil
		}
		c, err := s.known(ctx, to, key{name, typ})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || c.rcode != dns.RcodeSuccess && c.rcode != dns.RcodeNameError {
			r.Rcode, r.Answer, r.Ns = dns.RcodeServerFailure, nil, nil
			return nil
		}
		r.Rcode, r.Answer, r.Ns = c.rcode, append(r.Answer, c.answer...), c.ns
		end := len(c.answer) - 1
		if end < 0 || len(c.ns) > 0 {
			return nil
		}
		alias, ok := c.answer[end].(*dns.CNAME)
		if !ok || typ == dns.TypeCNAME {
			return nil
		}
		name = dnsname.MustParse(alias.Target)
	}
	return nil
}

// known is the answer to a question from the cache, with the time it spent there taken off its TTLs, or else from a server.
func (s *Server) known(ctx context.Context, to netip.AddrPort, k key) (cached, error) {
	s.mu.Lock()
	c, ok := s.cache[k]
	s.mu.Unlock()
	now := time.Now()
	if ok && now.Before(c.until) {
		return c.aged(now), nil
	}
	query := new(dns.Msg).SetQuestion(k.name.String(), k.typ)
	query.SetEdns0(wire.UDPSize, false)
	m, err := s.net.exchange(ctx, path{resolve.UDP, to, s.addr.Addr()}, query)
	if err != nil {
		return cached{}, err
	}
	now = time.Now()
	c = cached{rcode: m.Rcode, answer: m.Answer, ns: m.Ns, from: now, until: now.Add(lifetime(m))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[k] = c
	return c.aged(now), nil
}

// aged is a copy whose TTLs are counted down, in whole seconds.
func (c cached) aged(now time.Time) cached {
	age := uint32(now.Sub(c.from) / time.Second)
	older := func(set []dns.RR) []dns.RR {
		var out []dns.RR
		for _, rec := range set {
			rec = dns.Copy(rec)
			rec.Header().Ttl -= min(age, rec.Header().Ttl)
			out = append(out, rec)
		}
		return out
	}
	c.answer, c.ns = older(c.answer), older(c.ns)
	return c
}

// lifetime is how long a reply may be kept: the least of its TTLs; failures are not kept.
func lifetime(m *dns.Msg) time.Duration {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError || len(m.Answer)+len(m.Ns) == 0 {
		return 0
	}
	ttl := uint32(1<<31 - 1)
	for _, set := range [][]dns.RR{m.Answer, m.Ns} {
		for _, rec := range set {
			ttl = min(ttl, rec.Header().Ttl)
		}
	}
	return time.Duration(ttl) * time.Second
}
