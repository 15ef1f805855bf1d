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

func judgeVersion(g observation) (Verdict, string) {
	switch opt := g.msg.IsEdns0(); {
	case opt == nil:
		return No, "the reply has no EDNS: " + wire.RcodeText(g.msg.Rcode)
	case g.msg.Rcode != dns.RcodeBadVers:
		return No, "the reply is " + wire.RcodeText(g.msg.Rcode)
	}
	return Yes, ""
}

// judgeIgnored judges the reply to a query with an unknown EDNS option or flag, which the server must ignore.
func judgeIgnored(g observation) (Verdict, string) {
	opt := g.msg.IsEdns0()
	switch {
	case g.msg.Rcode != dns.RcodeSuccess && g.msg.Rcode != dns.RcodeNameError:
		return No, "the reply is " + wire.RcodeText(g.msg.Rcode)
	case opt == nil:
		return No, "the reply has no EDNS"
	case opt.Z() != 0:
		return No, "the flag came back"
	case slices.ContainsFunc(opt.Option, func(o dns.EDNS0) bool { return o.Option() == unassignedOption }):
		return No, "the option came back"
	}
	return Yes, ""
}

// judgeType judges the reply to a query for a type that the server may not know: with or without records, it must not
// be an error.
func judgeType(g observation) (Verdict, string) {
	if g.msg.Rcode != dns.RcodeSuccess && g.msg.Rcode != dns.RcodeNameError {
		return No, "the reply is " + wire.RcodeText(g.msg.Rcode)
	}
	return Yes, ""
}

func judgeSize(g observation) (Verdict, string) {
	if len(g.wire) > minUDPSize {
		return No, fmt.Sprintf("%d bytes, although the query allowed only %d", len(g.wire), minUDPSize)
	}
	return Yes, ""
}

// judgeRecursion judges the reply to a query for the servers of the root. Root servers themselves answer
// authoritatively.
func judgeRecursion(g observation) (Verdict, string) {
	if g.msg.RecursionAvailable && !g.msg.Authoritative && g.msg.Rcode == dns.RcodeSuccess && len(g.msg.Answer) > 0 {
		return Yes, "it returned the servers of the root"
	}
	return No, ""
}

func judgeTransfer(g observation) (Verdict, string) {
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

// askTCP sends a query over its own connection, reads the first message and closes the connection: of an allowed zone
// transfer, the beginning is enough.
func (s *session) askTCP(ctx context.Context, query *dns.Msg) observation {
	g := observation{query: query, transport: resolve.TCP, at: time.Now()}
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
