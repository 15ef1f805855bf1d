package simnet

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

// route returns the server that a name is forwarded to.
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

// maxHops limits the CNAMEs that a server follows across servers.
const maxHops = 20

// forward answers as a forwarding resolver. It follows CNAMEs and caches replies according to their TTLs. Failures
// become SERVFAIL.
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

// known returns the answer to a question: from the cache with reduced TTLs, or from a server.
func (s *Server) known(ctx context.Context, to netip.AddrPort, k key) (entry, error) {
	s.mu.Lock()
	c, ok := s.cache[k]
	s.mu.Unlock()
	now := time.Now()
	if ok && now.Before(c.until) {
		return c.older(now), nil
	}
	query := new(dns.Msg).SetQuestion(k.name.String(), k.typ)
	query.SetEdns0(wire.UDPSize, false)
	m, err := s.net.exchange(ctx, path{resolve.UDP, to, s.addr.Addr()}, query)
	if err != nil {
		return entry{}, err
	}
	now = time.Now()
	c = entry{rcode: m.Rcode, answer: m.Answer, ns: m.Ns, from: now, until: now.Add(lifetime(m))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[k] = c
	return c.older(now), nil
}

// older returns a copy with each TTL reduced by the age of the entry, in whole seconds.
func (e entry) older(now time.Time) entry {
	age := uint32(now.Sub(e.from) / time.Second)
	countDown := func(h *dns.RR_Header) { h.Ttl -= min(age, h.Ttl) }
	e.answer, e.ns = copies(e.answer, countDown), copies(e.ns, countDown)
	return e
}

// lifetime returns how long a reply may be cached: its smallest TTL. Failures are not cached.
func lifetime(m *dns.Msg) time.Duration {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError || len(m.Answer)+len(m.Ns) == 0 {
		return 0
	}
	return time.Duration(minTTL(slices.Concat(m.Answer, m.Ns))) * time.Second
}
