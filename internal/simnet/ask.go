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
	// serverTime is how long a resolver waits for one server before it asks the next.
	serverTime = 100 * time.Millisecond
	// avoidTime is how long a server that failed is asked last.
	avoidTime = time.Minute
)

// askZone asks the servers of a zone until one has a reply that is of use.
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
		w.mem.mu.Lock()
		w.mem.failed[to] = time.Now()
		w.mem.mu.Unlock()
	}
	return nil, errUnreachable
}

// inOrder are the servers as they are asked: each question begins with another one, and those that failed lately come last.
func (w *walk) inOrder(addrs []netip.AddrPort, k key) []netip.AddrPort {
	if len(addrs) == 0 {
		return nil
	}
	first := (len(k.name.Wire()) + int(k.typ)) % len(addrs)
	out := append(slices.Clone(addrs[first:]), addrs[:first]...)
	w.mem.mu.Lock()
	defer w.mem.mu.Unlock()
	bad := func(a netip.AddrPort) int {
		if at, ok := w.mem.failed[a]; ok && time.Since(at) < avoidTime {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b netip.AddrPort) int { return bad(a) - bad(b) })
	return out
}

// addresses are those of the servers of a zone for which there is no glue.
func (w *walk) addresses(ctx context.Context, d delegation, depth int) (out []netip.AddrPort) {
	for _, host := range d.hosts {
		if host.IsIn(d.zone) {
			continue // only its own server could tell
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

// askServer asks one server, and again without EDNS if that seems to be the trouble.
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
