package follow

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

// This is the only file that knows messages.

// ask sends one query, when the limit of queries per second lets it.
func (t *Tracker) ask(ctx context.Context, u *upstream, name dnsname.Name, qtype uint16) (*dns.Msg, *Error) {
	if err := t.turn(ctx); err != nil {
		return nil, failure(err)
	}
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	began := time.Now()
	reply, err := t.exchange(ctx, u.server, query(name, qtype))
	t.metrics.asked(u, time.Since(began), err == nil)
	if err != nil {
		return nil, failure(err)
	}
	return reply, nil
}

// exchange asks again over TCP if the reply was truncated. That is one more query for the limit.
func (t *Tracker) exchange(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	server.Once = true
	reply, err := t.opts.Exchanger.Exchange(ctx, server, query)
	if err != nil || !reply.Truncated || server.Transport != resolve.UDP {
		return reply, err
	}
	if err := t.turn(ctx); err != nil {
		return nil, err
	}
	server.Transport = resolve.TCP
	return t.opts.Exchanger.Exchange(ctx, server, query)
}

// turn waits until one more query may go.
func (t *Tracker) turn(ctx context.Context) error {
	held, err := t.limiter.wait(ctx)
	if held {
		t.metrics.held.Inc()
	}
	return err
}

func query(name dnsname.Name, qtype uint16) *dns.Msg {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{RecursionDesired: true}}
	m.Question = []dns.Question{{Name: name.String(), Qtype: qtype, Qclass: dns.ClassINET}}
	// What usual paths carry in one piece (DNS flag day 2020).
	return m.SetEdns0(wire.UDPSize, false)
}

func rrType(f Family) uint16 {
	if f == IPv6 {
		return dns.TypeAAAA
	}
	return dns.TypeA
}

// failure is why no reply came.
func failure(err error) *Error {
	e := &Error{Cause: Network, Detail: err.Error()}
	var unreadable *dns.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Cause, e.Detail = Timeout, "no reply in time"
	case errors.As(err, &unreadable):
		e.Cause = Malformed
	}
	return e
}

// read takes the walk on by what a reply says of it, and reports whether that ended it. Only records that continue the walk
// from the name that was asked for count: what else a reply holds was not asked for, and could be anybody's claim.
func (w *walked) read(m *dns.Msg) (outcome, bool, *Error) {
	if err := refusal(m); err != nil {
		return outcome{}, false, err
	}
	asked := len(w.chain)
	for {
		if addrs, ttl := w.addresses(m); len(addrs) > 0 {
			return outcome{answer: Found, addrs: addrs, own: ttl, ttl: w.ttl(ttl), chain: w.chain}, true, nil
		}
		target, ttl, ok := cname(m, w.next)
		if !ok {
			break
		}
		if err := w.follow(target, ttl); err != nil {
			return outcome{}, false, err
		}
	}
	return w.nothing(m, len(w.chain) > asked)
}

// around goes on behind the CNAME of a name that a resolver fails at. Most follow fewer than we do, and fail at a loop and at
// a chain that is too long for them with the same SERVFAIL. It returns failed when there is no CNAME.
func (t *Tracker) around(ctx context.Context, u *upstream, w *walked, failed *Error) *Error {
	reply, err := t.ask(ctx, u, w.next, dns.TypeCNAME)
	if err != nil || refusal(reply) != nil {
		return failed
	}
	target, ttl, ok := cname(reply, w.next)
	if !ok {
		return failed
	}
	return w.follow(target, ttl)
}

// nothing judges a reply that has no addresses; moved tells whether it had CNAMEs.
func (w *walked) nothing(m *dns.Msg, moved bool) (outcome, bool, *Error) {
	ttl, proven := w.negativeTTL(m)
	switch {
	case m.Rcode == dns.RcodeNameError:
		return outcome{answer: NXDomain, ttl: ttl, chain: w.chain, proven: proven}, true, nil
	case proven:
		return outcome{answer: NoData, ttl: ttl, chain: w.chain, proven: true}, true, nil
	case moved:
		return outcome{}, false, nil // ask on
	case len(m.Answer) > 0:
		return outcome{}, false, &Error{Cause: Bogus, Detail: "the reply has records, but not of the name that was asked for"}
	case refers(m):
		return outcome{}, false, &Error{Cause: Lame, Detail: "the server refers to others instead of answering"}
	}
	return outcome{answer: NoData, chain: w.chain}, true, nil
}

// refusal is why a reply is no answer.
func refusal(m *dns.Msg) *Error {
	e := &Error{Detail: extended(m)}
	switch {
	case m.Truncated:
		return &Error{Cause: Truncated, Detail: "the reply is cut off, over TCP too"}
	case m.Rcode == dns.RcodeSuccess, m.Rcode == dns.RcodeNameError:
		return nil
	case m.Rcode == dns.RcodeServerFailure:
		e.Cause = ServFail
	case m.Rcode == dns.RcodeRefused:
		e.Cause = Refused
	case m.Rcode == dns.RcodeNotAuth:
		e.Cause = Lame
	case m.Rcode == dns.RcodeFormatError, m.Rcode == dns.RcodeNotImplemented, m.Rcode == dns.RcodeBadVers:
		e.Cause = FormErr
	default:
		e.Cause, e.Detail = Rcode, strings.TrimSpace(fmt.Sprintf("RCODE %d %s", m.Rcode, e.Detail))
	}
	return e
}

// extended is what a resolver adds to its RCODE (RFC 8914), for people.
func extended(m *dns.Msg) string {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if ede, ok := o.(*dns.EDNS0_EDE); ok {
				return strings.TrimSpace(dns.ExtendedErrorCodeToString[ede.InfoCode] + " " + ede.ExtraText)
			}
		}
	}
	return ""
}

// addresses are those of the name that the walk has reached.
func (w *walked) addresses(m *dns.Msg) ([]netip.Addr, time.Duration) {
	var addrs []netip.Addr
	ttl := time.Duration(1<<63 - 1)
	for _, rec := range m.Answer {
		a, ok := address(rec)
		if !ok || rec.Header().Rrtype != rrType(w.family) || !owns(rec, w.next) {
			continue
		}
		addrs, ttl = append(addrs, a), min(ttl, seconds(rec.Header().Ttl))
	}
	// In order, so that a resolver that rotates its answers changes nothing.
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Clip(slices.Compact(addrs)), ttl
}

func address(rec dns.RR) (netip.Addr, bool) {
	switch r := rec.(type) {
	case *dns.A:
		return netip.AddrFromSlice(r.A.To4())
	case *dns.AAAA:
		return netip.AddrFromSlice(r.AAAA)
	}
	return netip.Addr{}, false
}

// cname is where the CNAME of a name leads.
func cname(m *dns.Msg, name dnsname.Name) (dnsname.Name, time.Duration, bool) {
	for _, rec := range m.Answer {
		if c, ok := rec.(*dns.CNAME); ok && owns(rec, name) {
			if target, err := dnsname.Parse(c.Target); err == nil {
				return target, seconds(c.Hdr.Ttl), true
			}
		}
	}
	return dnsname.Name{}, 0, false
}

// owns reports whether a record is the name's.
func owns(rec dns.RR, name dnsname.Name) bool {
	if rec.Header().Class != dns.ClassINET {
		return false
	}
	owner, err := dnsname.Parse(rec.Header().Name)
	return err == nil && owner == name
}

// negativeTTL is how long to believe that a name has nothing, and whether the reply proves it by the SOA record of a zone
// that the name is in. RFC 2308 §5: the lesser of SOA.MINIMUM and the SOA's own TTL; the CNAMEs may end sooner.
func (w *walked) negativeTTL(m *dns.Msg) (time.Duration, bool) {
	for _, rec := range m.Ns {
		soa, ok := rec.(*dns.SOA)
		if !ok {
			continue
		}
		if zone, err := dnsname.Parse(soa.Hdr.Name); err == nil && w.next.IsIn(zone) {
			return w.ttl(seconds(min(soa.Hdr.Ttl, soa.Minttl))), true
		}
	}
	return 0, false
}

// refers reports whether a reply is a referral.
func refers(m *dns.Msg) bool {
	return slices.ContainsFunc(m.Ns, func(rec dns.RR) bool { return rec.Header().Rrtype == dns.TypeNS })
}

// seconds is a TTL. RFC 2181 §8: one with the highest bit set is zero.
func seconds(ttl uint32) time.Duration {
	if ttl > 1<<31-1 {
		return 0
	}
	return time.Duration(ttl) * time.Second
}
