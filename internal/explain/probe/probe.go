// Package probe tests how a server handles unusual queries that every server must support (RFC 8906).
//
// Start with Prober.Probe in this file: it sends an ordinary query and then one query for each Kind. judge.go turns
// the replies into verdicts.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Prober probes servers with unusual queries that every server must support (RFC 8906). The zero Prober works.
type Prober struct {
	// Dial opens connections; default: a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Listen opens an unconnected socket for "udp4" or "udp6", so that replies from other addresses are seen; default:
	// the system's.
	Listen func(ctx context.Context, network string) (net.PacketConn, error)
	// Before is called before each query, for counting and rate limits. If it fails, the query is not sent.
	Before  func(ctx context.Context) error
	Timeout time.Duration // timeout of one attempt; default 1.5 s
	Port    uint16        // default 53
}

// Kind is a question about the behaviour of a server. Yes is the good answer for all kinds except Recursion and
// Transfer.
type Kind string

// The kinds.
const (
	Source    Kind = "source"       // replies from the address that was queried
	Version   Kind = "edns-version" // replies BADVERS to EDNS version 1 (RFC 6891 §6.1.3)
	Option    Kind = "edns-option"  // ignores unknown EDNS options (RFC 6891 §6.1.2)
	Flag      Kind = "edns-flag"    // ignores unknown EDNS flags (RFC 6891 §6.1.4)
	Types     Kind = "types"        // replies to queries for new and for unassigned types
	Size      Kind = "size"         // observes the UDP size of the query
	Recursion Kind = "recursion"    // resolves names of other zones for strangers
	Transfer  Kind = "transfer"     // allows zone transfers to strangers
)

// Kinds lists all kinds.
var Kinds = []Kind{Source, Version, Option, Flag, Types, Size, Recursion, Transfer}

// Verdict is the answer to the question of a probe. Unknown says nothing about the server.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unknown Verdict = "unknown"
)

// Result is a query of a probe and its outcome.
type Result struct {
	Kind      Kind
	Verdict   Verdict
	Detail    string // explanation of the verdict
	Transport resolve.Transport
	Name      dnsname.Name
	Type      rr.Type
	EDNS      bool
	At        time.Time // when the last attempt was sent
	RTT       time.Duration
	Sent      int            // number of attempts
	From      netip.AddrPort // source address of the reply
	Reply     []byte         // with message ID 0; empty if there was no readable reply
}

// Probe queries one server of a zone, with one query for each kind and several for Types, concurrently. A server that
// does not reply to an ordinary query gets no other queries.
func (p *Prober) Probe(ctx context.Context, zone dnsname.Name, server netip.Addr, kinds []Kind) []Result {
	s := session{Prober: p, zone: zone, server: netip.AddrPortFrom(server, cmp.Or(p.Port, 53))}
	ordinary := s.askUDP(ctx, s.query(rr.TypeSOA))
	out := []Result{s.judgeSource(ordinary)}
	if ordinary.msg == nil {
		return out
	}
	trials := slices.DeleteFunc(s.allTrials(), func(t trial) bool { return !slices.Contains(kinds, t.kind) })
	results := make([]Result, len(trials))
	var all sync.WaitGroup
	for i, t := range trials {
		all.Go(func() { results[i] = s.try(ctx, t) })
	}
	all.Wait()
	if s.lost.Load() {
		for i, r := range results {
			if r.Verdict == No && r.Reply == nil && r.Transport == resolve.UDP {
				results[i].Verdict, results[i].Detail = Unknown, "no reply, but packets to this server get lost"
			}
		}
	}
	return append(out, results...)
}

// session is the probing of one server.
type session struct {
	*Prober
	zone   dnsname.Name
	server netip.AddrPort
	lost   atomic.Bool // an earlier attempt of a query got no reply, a later one did
}

// trial is a query, and the function that judges its reply.
type trial struct {
	kind  Kind
	query *dns.Msg
	judge func(observation) (Verdict, string)
}

const (
	// unassignedOption and unassignedType are reserved for experiments, so no server knows them (RFC 6891 §9, RFC 6895
	// §3.1).
	unassignedOption = 65001
	unassignedType   = 65280
	unassignedFlag   = 0x40 // in the Z field, next to DO
	minUDPSize       = 512
)

func (s *session) allTrials() []trial {
	version, option, flag, small := s.query(rr.TypeSOA), s.query(rr.TypeSOA), s.query(rr.TypeSOA), s.query(rr.TypeNS)
	version.IsEdns0().SetVersion(1)
	option.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: unassignedOption, Data: []byte("probe")}}
	flag.IsEdns0().SetZ(unassignedFlag)
	small.IsEdns0().SetUDPSize(minUDPSize)
	small.IsEdns0().SetDo()
	others := new(dns.Msg).SetQuestion(".", dns.TypeNS)
	others.SetEdns0(wire.UDPSize, false)
	out := []trial{
		{Version, version, judgeVersion}, {Option, option, judgeIgnored}, {Flag, flag, judgeIgnored},
		{Size, small, judgeSize}, {Recursion, others, judgeRecursion},
		{Transfer, new(dns.Msg).SetAxfr(s.zone.String()), judgeTransfer},
	}
	for _, t := range []uint16{dns.TypeHTTPS, dns.TypeCAA, unassignedType} {
		q := s.query(rr.Type(t))
		q.Extra = nil // a server without EDNS may still support the type
		out = append(out, trial{Types, q, judgeType})
	}
	return out
}

// query returns an ordinary query to the zone.
func (s *session) query(t rr.Type) *dns.Msg {
	m := new(dns.Msg).SetQuestion(s.zone.String(), uint16(t))
	m.RecursionDesired = false
	m.SetEdns0(wire.UDPSize, false)
	return m
}

// tries is how often a query is sent until there is a reply: packets get lost.
const tries = 3

// try runs one trial. A missing reply counts only if the server still replies to ordinary queries, and to all of
// them.
func (s *session) try(ctx context.Context, t trial) Result {
	if t.kind == Transfer {
		got := s.askTCP(ctx, t.query)
		return got.result(t, t.judge)
	}
	got := s.askUDP(ctx, t.query)
	if got.msg != nil {
		return got.result(t, t.judge)
	}
	if got.err == nil && s.askUDP(ctx, s.query(rr.TypeSOA)).msg != nil && t.kind != Recursion && t.kind != Size {
		return got.result(t, func(observation) (Verdict, string) {
			return No, fmt.Sprintf("no reply to %d such queries, although it replies to others", got.sent)
		})
	}
	return got.result(t, func(observation) (Verdict, string) { return Unknown, got.why() })
}

// observation is the outcome of a query.
type observation struct {
	query     *dns.Msg
	transport resolve.Transport
	at        time.Time
	rtt       time.Duration
	sent      int
	from      netip.AddrPort
	wire      []byte
	msg       *dns.Msg // nil: no reply
	err       error    // why the query failed; nil if the server did not reply
}

func (g observation) why() string {
	if g.err != nil {
		return g.err.Error()
	}
	return "no reply"
}

// result converts an observation to a Result.
func (g observation) result(t trial, judge func(observation) (Verdict, string)) Result {
	q := g.query.Question[0]
	name, err := dnsname.Parse(q.Name)
	if err != nil {
		name = dnsname.Root // cannot happen: the name is from one of our queries
	}
	p := Result{Kind: t.kind, Transport: g.transport, Name: name, Type: rr.Type(q.Qtype), EDNS: g.query.IsEdns0() != nil,
		At: g.at, RTT: g.rtt, Sent: g.sent, From: g.from}
	if g.msg != nil {
		p.Reply = slices.Clone(g.wire)
		p.Reply[0], p.Reply[1] = 0, 0
	}
	p.Verdict, p.Detail = judge(g)
	return p
}

// judgeSource judges the reply to the ordinary query.
func (s *session) judgeSource(g observation) Result {
	return g.result(trial{kind: Source}, func(g observation) (Verdict, string) {
		switch {
		case g.msg == nil:
			return Unknown, g.why()
		case g.from != s.server:
			return No, "the reply came from " + g.from.String()
		}
		return Yes, ""
	})
}

// askUDP sends a query from its own socket until a reply arrives, from any address.
func (s *session) askUDP(ctx context.Context, query *dns.Msg) observation {
	g := observation{query: query, transport: resolve.UDP}
	for g.sent < tries && g.msg == nil && g.err == nil {
		if g.err = s.before(ctx); g.err == nil {
			g.sent++
			s.sendUDP(ctx, &g)
		}
	}
	if g.msg != nil && g.sent > 1 {
		s.lost.Store(true)
	}
	return g
}

func (s *session) before(ctx context.Context) error {
	if s.Before != nil {
		return s.Before(ctx)
	}
	return ctx.Err()
}

// sendUDP sends a query once and waits for its reply. Without a reply in time, g.msg stays nil.
func (s *session) sendUDP(ctx context.Context, g *observation) {
	conn, err := s.listen(ctx)
	if err != nil {
		g.err = err
		return
	}
	defer conn.Close()
	g.query.Id = dns.Id()
	wire, err := g.query.Copy().Pack()
	if err != nil {
		g.err = err
		return
	}
	g.at = time.Now()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn.SetDeadline(g.at.Add(cmp.Or(s.Timeout, probeTimeout)))
	if _, err := conn.WriteTo(wire, net.UDPAddrFromAddrPort(s.server)); err != nil {
		g.err = err
		return
	}
	s.read(ctx, conn, wire, g)
}

// probeTimeout is longer than any round trip on the internet.
const probeTimeout = 1500 * time.Millisecond

func (s *session) listen(ctx context.Context) (net.PacketConn, error) {
	network := "udp4"
	if s.server.Addr().Is6() {
		network = "udp6"
	}
	if s.Listen != nil {
		return s.Listen(ctx, network)
	}
	return new(net.ListenConfig).ListenPacket(ctx, network, ":0")
}

// read waits for a reply with the ID and the question of the query.
func (s *session) read(ctx context.Context, conn net.PacketConn, query []byte, g *observation) {
	buf := make([]byte, dns.MaxMsgSize)
	for {
		n, from, err := conn.ReadFrom(buf)
		var timeout net.Error
		switch {
		case ctx.Err() != nil:
			g.err = ctx.Err()
			return
		case errors.As(err, &timeout) && timeout.Timeout():
			return
		case err != nil:
			g.err = err
			return
		}
		udp, ok := from.(*net.UDPAddr)
		m := new(dns.Msg)
		if !ok || resolve.Match(query, buf[:n]) != nil || m.Unpack(buf[:n]) != nil && !m.Truncated {
			continue
		}
		a := udp.AddrPort()
		g.from, g.rtt = netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), time.Since(g.at)
		g.wire, g.msg = slices.Clone(buf[:n]), m
		return
	}
}
