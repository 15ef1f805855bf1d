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

const (
	// serverTime is how long a resolver waits for one server before it queries the next.
	serverTime = 100 * time.Millisecond
	// avoidTime is how long a server is queried last after a failure.
	avoidTime = time.Minute
)

// askZone queries the servers of a zone until one sends a useful reply.
func (w *walk) askZone(ctx context.Context, d delegation, k key, depth int) (*dns.Msg, error) {
	if len(d.addrs) == 0 {
		d.addrs = w.addresses(ctx, d, depth)
	}
	for _, to := range w.inOrder(d.addrs, k) {
		m, err := w.askServer(ctx, to, k)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && useful(d.zone, m) {
			return m, nil
		}
		w.resolver.mu.Lock()
		w.resolver.failed[to] = time.Now()
		w.resolver.mu.Unlock()
	}
	return nil, errUnreachable
}

// inOrder returns the servers in query order: different questions begin with different servers, and recently failed
// servers come last.
func (w *walk) inOrder(addrs []netip.AddrPort, k key) []netip.AddrPort {
	if len(addrs) == 0 {
		return nil
	}
	first := (len(k.name.Wire()) + int(k.typ)) % len(addrs)
	out := append(slices.Clone(addrs[first:]), addrs[:first]...)
	w.resolver.mu.Lock()
	defer w.resolver.mu.Unlock()
	bad := func(a netip.AddrPort) int {
		if at, ok := w.resolver.failed[a]; ok && time.Since(at) < avoidTime {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b netip.AddrPort) int { return bad(a) - bad(b) })
	return out
}

// addresses looks up the addresses of a zone's servers that have no glue.
func (w *walk) addresses(ctx context.Context, d delegation, depth int) (out []netip.AddrPort) {
	for _, host := range d.hosts {
		if host.IsIn(d.zone) {
			continue // only the zone itself has the address
		}
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
			e, err := w.lookup(ctx, key{host, typ}, depth+1)
			if err != nil {
				continue
			}
			for _, rec := range e.answer {
				out = append(out, addressesOf(rec)...)
			}
		}
	}
	return out
}

// askServer queries one server. It retries without EDNS if the server rejects or ignores the first query.
func (w *walk) askServer(ctx context.Context, to netip.AddrPort, k key) (*dns.Msg, error) {
	for _, edns := range []bool{true, false} {
		query := new(dns.Msg).SetQuestion(k.name.String(), k.typ)
		query.RecursionDesired = false
		if edns {
			query.SetEdns0(wire.UDPSize, true)
		}
		part, cancel := context.WithTimeout(ctx, serverTime)
		m, err := w.net.exchange(part, path{resolve.UDP, to, w.addr}, query)
		cancel()
		if err == nil && m.Rcode != dns.RcodeFormatError && m.Rcode != dns.RcodeNotImplemented || ctx.Err() != nil || !edns {
			return m, err
		}
	}
	return nil, errUnreachable
}

// useful reports whether a reply of a zone's server says anything about the zone.
func useful(zone dnsname.Name, m *dns.Msg) bool {
	switch {
	case m.Truncated:
		return false
	case m.Rcode == dns.RcodeNameError || m.Rcode == dns.RcodeSuccess && len(m.Answer) > 0:
		return true
	case m.Rcode != dns.RcodeSuccess:
		return false
	}
	return m.Authoritative || slices.ContainsFunc(m.Ns, func(rec dns.RR) bool {
		owner, err := dnsname.Parse(rec.Header().Name)
		return err == nil && owner.IsIn(zone) && owner != zone
	})
}
