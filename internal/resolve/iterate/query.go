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

// Query is one question to one server, independent of a walk.
type Query struct {
	Zone     dnsname.Name // the zone that the server should have; default: the root
	Server   resolve.Server
	Question Question
	RD, CD   bool
	NoEDNS   bool
	NoDNSSEC bool         // do not request signatures
	ECS      netip.Prefix // the client subnet to send
	Chaos    bool         // use class CH, in which servers publish data about themselves (RFC 4892)
}

// Ask sends a query once and returns the exchange, with times relative to began. The timeout is that of ctx. A
// truncated reply has the class Truncated and is not requested again. The class is that of an authority for Zone, so
// it means nothing for the reply of a resolver.
func Ask(ctx context.Context, x resolve.Exchanger, began time.Time, q Query) Exchange {
	if q.Zone.IsZero() {
		q.Zone = dnsname.Root
	}
	clock := func() time.Duration { return time.Since(began).Round(time.Microsecond) }
	e := Exchange{At: clock(), Zone: q.Zone, Server: q.Server.Addr.Addr(), Transport: q.Server.Transport.String(),
		Question: q.Question, Try: 1, EDNS: !q.NoEDNS}
	reply, err := once(resolve.WithSize(ctx, &e.Size), x, q.Server, q.message(newCookie()))
	e.RTT = clock() - e.At
	reply, err = pack(&e, reply, err)
	e.Class = Classify(q.Zone, q.Question, reply, err)
	if err != nil {
		e.Error = reason(err)
	}
	return e
}

// once sends a query and waits for its reply. It returns errCut for a truncated reply over UDP and does not retry.
func once(ctx context.Context, x resolve.Exchanger, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	server.Once = true
	reply, err := x.Exchange(ctx, server, query)
	if err == nil && reply.Truncated && server.Transport == resolve.UDP {
		return nil, errCut
	}
	return reply, err
}

// message returns the message to send. Its EDNS options request an NSID, which distinguishes servers behind one
// address.
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
	opt.Option = append(opt.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID},
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie})
	if q.ECS.IsValid() {
		opt.Option = append(opt.Option, subnet(q.ECS))
	}
	return m
}

// subnet returns the client subnet option (RFC 7871 §6).
func subnet(p netip.Prefix) *dns.EDNS0_SUBNET {
	o := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(p.Bits()),
		Address: p.Masked().Addr().AsSlice()}
	if p.Addr().Is6() {
		o.Family = 2
	}
	return o
}

// newCookie returns a random client cookie in hex (RFC 7873 §4.1).
func newCookie() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
