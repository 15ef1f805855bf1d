package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

func judgeVersion(g sighting) (Verdict, string) {
	switch opt := g.msg.IsEdns0(); {
	case opt == nil:
		return No, "the reply has no EDNS: " + wire.RcodeText(g.msg.Rcode)
	case g.msg.Rcode != dns.RcodeBadVers:
		return No, "the reply is " + wire.RcodeText(g.msg.Rcode)
	}
	return Yes, ""
}

// judgeIgnored judges the reply to a query with something in its EDNS that must be ignored.
func judgeIgnored(g sighting) (Verdict, string) {
	opt := g.msg.IsEdns0()
	switch {
	case g.msg.Rcode != dns.RcodeSuccess && g.msg.Rcode != dns.RcodeNameError:
		return No, "the reply is " + wire.RcodeText(g.msg.Rcode)
	case opt == nil:
		return No, "the reply has no EDNS"
	case opt.Z() != 0:
		return No, "the flag came back"
	case slices.ContainsFunc(opt.Option, func(o dns.EDNS0) bool { return o.Option() == strangeOption }):
		return No, "the option came back"
	}
	return Yes, ""
}

// judgeType judges the reply for a type that the server may never have heard of: it has none, or it has some.
func judgeType(g sighting) (Verdict, string) {
	if g.msg.Rcode != dns.RcodeSuccess && g.msg.Rcode != dns.RcodeNameError {
		return No, "the reply is " + wire.RcodeText(g.msg.Rcode)
	}
	return Yes, ""
}

func judgeSize(g sighting) (Verdict, string) {
	if len(g.wire) > smallest {
		return No, fmt.Sprintf("%d octets, although no more than %d were asked for", len(g.wire), smallest)
	}
	return Yes, ""
}

// judgeRecursion judges the reply about the servers of the root. Those of the root itself answer with authority.
func judgeRecursion(g sighting) (Verdict, string) {
	if g.msg.RecursionAvailable && !g.msg.Authoritative && g.msg.Rcode == dns.RcodeSuccess && len(g.msg.Answer) > 0 {
		return Yes, "it told the servers of the root"
	}
	return No, ""
}

func judgeTransfer(g sighting) (Verdict, string) {
	switch {
	case g.msg == nil:
		return Unknown, g.why()
	case g.msg.Rcode == dns.RcodeSuccess && len(g.msg.Answer) > 0:
		return Yes, fmt.Sprintf("%d records came in the first message", len(g.msg.Answer))
	}
	return No, wire.RcodeText(g.msg.Rcode)
}

func (s *session) dial(ctx context.Context) (net.Conn, error) {
	if s.Dial != nil {
		return s.Dial(ctx, "tcp", s.server.String())
	}
	return new(net.Dialer).DialContext(ctx, "tcp", s.server.String())
}

// tcp sends a query over a connection of its own, and reads the first message that comes. The connection is closed then: of a
// zone that is given away, its beginning is enough.
func (s *session) tcp(ctx context.Context, query *dns.Msg) sighting {
	g := sighting{query: query, transport: resolve.TCP, at: time.Now()}
	if g.err = s.before(ctx); g.err != nil {
		return g
	}
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	conn, err := s.dial(ctx)
	if err != nil {
		g.err = err
		return g
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	g.sent, g.from, g.query.Id = 1, s.server, dns.Id()
	g.wire, g.err = roundTrip(conn, g.query)
	if g.err == nil {
		m := new(dns.Msg)
		if g.err = m.Unpack(g.wire); g.err == nil {
			g.msg = m
		}
	}
	g.rtt = time.Since(g.at)
	return g
}

func roundTrip(conn net.Conn, query *dns.Msg) ([]byte, error) {
	packed, err := query.Copy().Pack()
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	reply := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return nil, err
	}
	if len(reply) < wire.HeaderSize || reply[0] != packed[0] || reply[1] != packed[1] {
		return nil, resolve.ErrID
	}
	return reply, nil
}
