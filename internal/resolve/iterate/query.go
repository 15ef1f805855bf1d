package iterate

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

// Query is one question to one server, outside a walk.
type Query struct {
	Zone     dnsname.Name // that the server is asked as a server of; default: the root
	Server   resolve.Server
	Question Question
	RD, CD   bool
	NoEDNS   bool
	NoDNSSEC bool         // do not ask for signatures
	ECS      netip.Prefix // ask on behalf of this subnet
	Chaos    bool         // ask in class CH, where servers tell about themselves (RFC 4892)
}

// Ask sends a query, once, and tells what came of it since began. How long it waits is up to ctx. A reply that was cut off is
// Truncated, and not asked for again. The class of a resolver's reply means nothing: it is that of an authority for Zone.
func Ask(ctx context.Context, x resolve.Exchanger, began time.Time, q Query) Exchange {
	if q.Zone.IsZero() {
		q.Zone = dnsname.Root
	}
	clock := func() time.Duration { return time.Since(began).Round(time.Microsecond) }
	e := Exchange{At: clock(), Zone: q.Zone, Server: q.Server.Addr.Addr(), Transport: q.Server.Transport.String(),
		Question: q.Question, Try: 1, EDNS: !q.NoEDNS}
	reply, err := once(ctx, x, q.Server, q.message(newCookie()))
	e.RTT = clock() - e.At
	reply, err = pack(&e, reply, err)
	e.Class = Classify(q.Zone, q.Question, reply, err)
	if err != nil {
		e.Error = reason(err)
	}
	return e
}

// once sends a query and waits for its reply. A truncated reply over UDP is errCut, and not asked for again.
func once(ctx context.Context, x resolve.Exchanger, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	server.Once = true
	reply, err := x.Exchange(ctx, server, query)
	if err == nil && reply.Truncated && server.Transport == resolve.UDP {
		return nil, errCut
	}
	return reply, err
}

// message is what is sent. EDNS comes with the wish for an NSID, which tells servers behind one address apart.
func (q Query) message(cookie string) *dns.Msg {
	m := new(dns.Msg).SetQuestion(mixedText(q.Question.Name), uint16(q.Question.Type))
	m.RecursionDesired, m.CheckingDisabled = q.RD, q.CD
	if q.Chaos {
		m.Question[0].Qclass = dns.ClassCHAOS
	}
	if q.NoEDNS {
		return m
	}
	m.SetEdns0(wire.UDPSize, !q.NoDNSSEC)
	opt := m.IsEdns0()
	opt.Option = append(opt.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie})
	if q.ECS.IsValid() {
		opt.Option = append(opt.Option, subnet(q.ECS))
	}
	return m
}

// subnet is the option that asks on behalf of one (RFC 7871 §6).
func subnet(p netip.Prefix) *dns.EDNS0_SUBNET {
	o := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(p.Bits()), Address: p.Masked().Addr().AsSlice()}
	if p.Addr().Is6() {
		o.Family = 2
	}
	return o
}

// newCookie is a client cookie in hex (RFC 7873 §4.1).
func newCookie() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
