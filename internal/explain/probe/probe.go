// Package probe finds out how a server takes queries that are unusual, but that every server must be able to take (RFC 8906).
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

// Prober looks into the conduct of a server: how it takes queries that are unusual, but that every server must be able to take
// (RFC 8906). The zero Prober works.
type Prober struct {
	// Dial opens connections; default: a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Listen opens a socket for "udp4" or "udp6" that is not connected, so that replies from other addresses are seen, too;
	// default: the system's.
	Listen func(ctx context.Context, network string) (net.PacketConn, error)
	// Before is called before each query; if it fails, the query is not sent. It is for those who count and pace them.
	Before  func(ctx context.Context) error
	Timeout time.Duration // of one try; default 1.5 s
	Port    uint16        // default 53
}

// Kind is a question about a server's conduct. The answer yes is good for all of them but Recursion and Transfer.
type Kind string

// The kinds.
const (
	Source    Kind = "source"       // replies from the address that was asked
	Version   Kind = "edns-version" // replies BADVERS to EDNS version 1 (RFC 6891 §6.1.3)
	Option    Kind = "edns-option"  // ignores EDNS options that it does not know (RFC 6891 §6.1.2)
	Flag      Kind = "edns-flag"    // ignores EDNS flags that it does not know (RFC 6891 §6.1.4)
	Types     Kind = "types"        // replies to types that are new, or unknown to everyone
	Size      Kind = "size"         // sends no more over UDP than was asked for
	Recursion Kind = "recursion"    // resolves names of others for strangers
	Transfer  Kind = "transfer"     // gives the whole zone to strangers
)

// Kinds are all kinds.
var Kinds = []Kind{Source, Version, Option, Flag, Types, Size, Recursion, Transfer}

// Verdict is the answer to the question of a probe. Unknown is what could not be found out, and says nothing about the server.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unknown Verdict = "unknown"
)

// Result is a query that was sent to find out about a server's conduct, and what came of it.
type Result struct {
	Kind      Kind
	Verdict   Verdict
	Detail    string // in words
	Transport resolve.Transport
	Name      dnsname.Name
	Type      rr.Type
	EDNS      bool
	At        time.Time // when it was sent for the last time
	RTT       time.Duration
	Sent      int            // how often
	From      netip.AddrPort // where the reply came from
	Reply     []byte         // with id 0; empty if there was none, or none that can be read
}

// Probe asks one server of a zone for what its kinds are about, at the same time. Types is several probes. A server that
// does not reply to an ordinary query is asked nothing else, and nothing is known of it.
func (p *Prober) Probe(ctx context.Context, zone dnsname.Name, server netip.Addr, kinds []Kind) []Result {
	s := session{Prober: p, zone: zone, server: netip.AddrPortFrom(server, cmp.Or(p.Port, 53))}
	ordinary := s.udp(ctx, s.query(rr.TypeSOA))
	out := []Result{s.judgeSource(ordinary)}
	if ordinary.msg == nil {
		return out
	}
	trials := slices.DeleteFunc(s.trials(), func(t trial) bool { return !slices.Contains(kinds, t.kind) })
	results := make([]Result, len(trials))
	var all sync.WaitGroup
	for i, t := range trials {
		all.Go(func() { results[i] = s.try(ctx, t) })
	}
	all.Wait()
	if s.lost.Load() {
		for i, r := range results {
			if r.Verdict == No && r.Reply == nil && r.Transport == resolve.UDP {
				results[i].Verdict, results[i].Detail = Unknown, "no reply, but queries to it get lost"
			}
		}
	}
	return append(out, results...)
}

// session is one server that is being looked into.
type session struct {
	*Prober
	zone   dnsname.Name
	server netip.AddrPort
	lost   atomic.Bool // a query that it replies to was without a reply before
}

// trial is a query and how its reply is judged.
type trial struct {
	kind  Kind
	query *dns.Msg
	judge func(sighting) (Verdict, string)
}

const (
	// strangeOption and strangeType are for experiments, so that nobody knows them (RFC 6891 §9, RFC 6895 §3.1).
	strangeOption = 65001
	strangeType   = 65280
	strangeFlag   = 0x40 // of Z, next to DO
	smallest      = 512
)

func (s *session) trials() []trial {
	version, option, flag, small := s.query(rr.TypeSOA), s.query(rr.TypeSOA), s.query(rr.TypeSOA), s.query(rr.TypeNS)
	version.IsEdns0().SetVersion(1)
	option.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: strangeOption, Data: []byte("probe")}}
	flag.IsEdns0().SetZ(strangeFlag)
	small.IsEdns0().SetUDPSize(smallest)
	small.IsEdns0().SetDo()
	others := new(dns.Msg).SetQuestion(".", dns.TypeNS)
	others.SetEdns0(wire.UDPSize, false)
	out := []trial{
		{Version, version, judgeVersion}, {Option, option, judgeIgnored}, {Flag, flag, judgeIgnored},
		{Size, small, judgeSize}, {Recursion, others, judgeRecursion},
		{Transfer, new(dns.Msg).SetAxfr(s.zone.String()), judgeTransfer},
	}
	for _, t := range []uint16{dns.TypeHTTPS, dns.TypeCAA, strangeType} {
		q := s.query(rr.Type(t))
		q.Extra = nil // who does not know EDNS may well know the type
		out = append(out, trial{Types, q, judgeType})
	}
	return out
}

// query is an ordinary one.
func (s *session) query(t rr.Type) *dns.Msg {
	m := new(dns.Msg).SetQuestion(s.zone.String(), uint16(t))
	m.RecursionDesired = false
	m.SetEdns0(wire.UDPSize, false)
	return m
}

// tries is how often a query without a reply is sent: packets get lost on the way, too.
const tries = 3

// try makes one trial. That there is no reply counts only if the server still replies to what is ordinary, and to all of that.
func (s *session) try(ctx context.Context, t trial) Result {
	if t.kind == Transfer {
		got := s.tcp(ctx, t.query)
		return got.probe(t, t.judge)
	}
	got := s.udp(ctx, t.query)
	if got.msg != nil {
		return got.probe(t, t.judge)
	}
	if got.err == nil && s.udp(ctx, s.query(rr.TypeSOA)).msg != nil && t.kind != Recursion && t.kind != Size {
		return got.probe(t, func(sighting) (Verdict, string) {
			return No, fmt.Sprintf("no reply to %d such queries, but to others", got.sent)
		})
	}
	return got.probe(t, func(sighting) (Verdict, string) { return Unknown, got.why() })
}

// sighting is what came of a query.
type sighting struct {
	query     *dns.Msg
	transport resolve.Transport
	at        time.Time
	rtt       time.Duration
	sent      int
	from      netip.AddrPort
	wire      []byte
	msg       *dns.Msg // nil: no reply
	err       error    // why the server could not be asked; nil if it did not reply
}

func (g sighting) why() string {
	if g.err != nil {
		return g.err.Error()
	}
	return "no reply"
}

// probe writes a sighting down.
func (g sighting) probe(t trial, judge func(sighting) (Verdict, string)) Result {
	q := g.query.Question[0]
	name, err := dnsname.Parse(q.Name)
	if err != nil {
		name = dnsname.Root // it was one of ours
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
func (s *session) judgeSource(g sighting) Result {
	return g.probe(trial{kind: Source}, func(g sighting) (Verdict, string) {
		switch {
		case g.msg == nil:
			return Unknown, g.why()
		case g.from != s.server:
			return No, "the reply came from " + g.from.String()
		}
		return Yes, ""
	})
}

// udp sends a query over a socket of its own until a reply comes, from wherever.
func (s *session) udp(ctx context.Context, query *dns.Msg) sighting {
	g := sighting{query: query, transport: resolve.UDP}
	for g.sent < tries && g.msg == nil && g.err == nil {
		if g.err = s.before(ctx); g.err == nil {
			g.sent++
			s.once(ctx, &g)
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

// once sends a query and waits for its reply, which is nil when none comes in time.
func (s *session) once(ctx context.Context, g *sighting) {
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

// probeTimeout is longer than a query goes around the world.
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

// read waits for a reply with the id and the question of the query.
func (s *session) read(ctx context.Context, conn net.PacketConn, query []byte, g *sighting) {
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
