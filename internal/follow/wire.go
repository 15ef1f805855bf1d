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

// This is the only file that handles DNS messages.

// ask sends one query, within the rate limit.
func (t *Tracker) ask(ctx context.Context, u *upstream, name dnsname.Name, qtype uint16) (*dns.Msg, *Error) {
	if err := t.throttle(ctx); err != nil {
		return nil, failure(err)
	}
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	began := time.Now()
	reply, err := t.exchange(ctx, u.server, query(name, qtype))
	t.metrics.countQuery(u, time.Since(began), err == nil)
	if err != nil {
		return nil, failure(err)
	}
	return reply, nil
}

// exchange repeats the query over TCP if the reply was truncated. The repetition counts against the rate limit.
func (t *Tracker) exchange(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	server.Once = true
	reply, err := t.opts.Exchanger.Exchange(ctx, server, query)
	if err != nil || !reply.Truncated || server.Transport != resolve.UDP {
		return reply, err
	}
	if err := t.throttle(ctx); err != nil {
		return nil, err
	}
	server.Transport = resolve.TCP
	return t.opts.Exchanger.Exchange(ctx, server, query)
}

// throttle blocks until one more query may be sent.
func (t *Tracker) throttle(ctx context.Context) error {
	held, err := t.limiter.wait(ctx)
	if held {
		t.metrics.held.Inc()
	}
	return err
}

func query(name dnsname.Name, qtype uint16) *dns.Msg {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{RecursionDesired: true}}
	m.Question = []dns.Question{{Name: name.String(), Qtype: qtype, Qclass: dns.ClassINET}}
	// The size that common networks carry unfragmented (DNS flag day 2020).
	return m.SetEdns0(wire.UDPSize, false)
}

func rrType(f Family) uint16 {
	if f == IPv6 {
		return dns.TypeAAAA
	}
	return dns.TypeA
}

// failure returns why there was no reply.
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

// read continues the walk with the records of a reply, and reports whether that ended it. Only records that continue
// the walk from the queried name count. Other records were not requested, and any server could have made them up.
func (w *chainWalk) read(m *dns.Msg) (outcome, bool, *Error) {
	if err := refusal(m); err != nil {
		return outcome{}, false, err
	}
	asked := len(w.chain)
	for {
		if addrs, ttl := w.addresses(m); len(addrs) > 0 {
			return outcome{answer: Found, addrs: addrs, addrTTL: ttl, ttl: w.ttl(ttl), chain: w.chain}, true, nil
		}
		target, ttl, ok := cname(m, w.next)
		if !ok {
			break
		}
		if err := w.follow(target, ttl); err != nil {
			return outcome{}, false, err
		}
	}
	return w.noAddresses(m, len(w.chain) > asked)
}

// skipServFail continues the walk after the CNAME of a name for which a resolver returns SERVFAIL. Most resolvers
// follow fewer CNAMEs than we do. They return the same SERVFAIL for a loop and for a chain that is too long for them.
// skipServFail returns failed if there is no CNAME.
func (t *Tracker) skipServFail(ctx context.Context, u *upstream, w *chainWalk, failed *Error) *Error {
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

// noAddresses classifies a reply without addresses; moved reports whether it had CNAMEs.
func (w *chainWalk) noAddresses(m *dns.Msg, moved bool) (outcome, bool, *Error) {
	ttl, proven := w.negativeTTL(m)
	switch {
	case m.Rcode == dns.RcodeNameError:
		return outcome{answer: NXDomain, ttl: ttl, chain: w.chain, proven: proven}, true, nil
	case proven:
		return outcome{answer: NoData, ttl: ttl, chain: w.chain, proven: true}, true, nil
	case moved:
		return outcome{}, false, nil // query the target
	case len(m.Answer) > 0:
		return outcome{}, false, &Error{Cause: Bogus, Detail: "the reply has records, but not of the queried name"}
	case refers(m):
		return outcome{}, false, &Error{Cause: Lame, Detail: "the server refers to others instead of answering"}
	}
	return outcome{answer: NoData, chain: w.chain}, true, nil
}

// refusal returns why a reply is no answer, or nil.
func refusal(m *dns.Msg) *Error {
	e := &Error{Detail: extended(m)}
	switch {
	case m.Truncated:
		return &Error{Cause: Truncated, Detail: "the reply is truncated, even over TCP"}
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

// extended returns the extended error that a resolver adds to its RCODE (RFC 8914), as text for people.
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

// addresses returns the addresses of the name that the walk has reached, and their TTL.
func (w *chainWalk) addresses(m *dns.Msg) ([]netip.Addr, time.Duration) {
	var addrs []netip.Addr
	ttl := time.Duration(1<<63 - 1)
	for _, rec := range m.Answer {
		a, ok := address(rec)
		if !ok || rec.Header().Rrtype != rrType(w.family) || !owns(rec, w.next) {
			continue
		}
		addrs, ttl = append(addrs, a), min(ttl, seconds(rec.Header().Ttl))
	}
	// Sorted, so that a resolver that rotates its answers causes no change.
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

// cname returns the target and the TTL of the CNAME of a name.
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

// owns reports whether a record belongs to the name.
func owns(rec dns.RR, name dnsname.Name) bool {
	if rec.Header().Class != dns.ClassINET {
		return false
	}
	owner, err := dnsname.Parse(rec.Header().Name)
	return err == nil && owner == name
}

// negativeTTL returns how long to believe that a name has no records. It also returns whether the reply proves this,
// with the SOA record of a zone that contains the name. RFC 2308 §5: the lesser of SOA.MINIMUM and the TTL of the SOA
// record. The CNAMEs may expire earlier.
func (w *chainWalk) negativeTTL(m *dns.Msg) (time.Duration, bool) {
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

// seconds converts a TTL. RFC 2181 §8: a TTL with the highest bit set is zero.
func seconds(ttl uint32) time.Duration {
	if ttl > 1<<31-1 {
		return 0
	}
	return time.Duration(ttl) * time.Second
}
