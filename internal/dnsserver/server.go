// Package dnsserver serves DNS over UDP and TCP: sockets, message parsing, EDNS, cookies and limits.
//
// Start with handler.answer in respond.go: it turns one query into one reply. udp.go, udp_linux.go and tcp.go read
// messages and call it. Package lookup finds the answer in the zones. A query that our zones cannot answer waits in
// pending.go for a Forwarder (forward.go) or for Peers (peers.go).
package dnsserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// Config configures a Server.
type Config struct {
	Listen   []string              // addresses with ports; without a host, all addresses of both families
	Snapshot func() *zone.Snapshot // returns the current zones; when it returns nil, queries get SERVFAIL
	Stale    StaleFunc             // default: no records are stale
	Version  string                // answer to version.bind in class CH; default hidden
	NSID     string                // answer to the NSID option (RFC 5001) and to id.server; default hidden
	UDPSize  int                   // size of the largest reply over UDP, in bytes
	RRL      RRLConfig
	TCP      TCPConfig
	Forward  Forwarder // resolves names outside our zones; nil: they are REFUSED
	Peers    Peers     // nil: transfers are REFUSED, TSIG keys are unknown, NOTIFY and UPDATE are NOTIMP
	Cookies  [16]byte  // secret of DNS cookies; servers behind one address share it; default random
	Log      *slog.Logger

	workers  int  // number of sockets for each address, for tests; default one for each CPU in use
	portable bool // serve UDP as on systems without recvmmsg; for tests
}

// StaleFunc reports whether the records that answer for a name, in lower-case wire form, are known to be old.
// encloser has the meaning of lookup.Reply.Encloser: when it is 0, the name itself answers, otherwise the wildcard
// below name[encloser:].
type StaleFunc func(name []byte, encloser int, t rr.Type) bool

// settings is the part of the Config that handlers need.
type settings struct {
	snapshot func() *zone.Snapshot
	version  string
	nsid     string
	udpSize  int
	secret   cookieSecret
	stale    StaleFunc       // nil when no record is ever stale
	pending  *pendingQueries // nil when nothing is forwarded
	peers    *peering        // nil without Peers
}

// Server is a set of bound sockets and the state that serves them.
type Server struct {
	cfg       Config
	settings  *settings
	udp       []*udpSocket
	tcp       []*net.TCPListener
	addrs     []netip.AddrPort
	counters  []*counters
	tcpCount  [2]*counters // IPv4, IPv6
	conns     *connTable
	timeouts  timeouts
	workPool  sync.Pool // *tcpWork; pooled, so that idle connections hold none
	replyPool sync.Pool // *[writeBuffer]byte; pooled, so that a connection with half a message holds none
}

// timeouts bound how long the server waits for others. Tests change them.
type timeouts struct {
	idle    time.Duration // between messages of a TCP client; a quarter of it when most connections are in use
	read    time.Duration // from the first byte of a message to its last
	write   time.Duration // for a client to take its replies
	grace   time.Duration // for TCP clients to take their replies after shutdown began
	forward time.Duration // for the forwarder after shutdown began
}

// defaultTimeouts gives the forwarder little time at shutdown: most upstreams answer far sooner, and clients retry. A
// shutdown need not wait for dead upstreams.
var defaultTimeouts = timeouts{10 * time.Second, 5 * time.Second, 5 * time.Second, 3 * time.Second, time.Second}

// drainTime is how long the server still reads messages after shutdown began. It covers those that had arrived by
// then.
const drainTime = 50 * time.Millisecond

// Listen binds every socket, so that the process can drop its privileges before Run.
func Listen(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, conns: newConnTable(cfg.TCP), timeouts: defaultTimeouts}
	s.workPool.New = newTCPWork
	s.replyPool.New = func() any { return new([writeBuffer]byte) }
	s.settings = cfg.settings()
	for i, family := range []string{"ipv4", "ipv6"} {
		s.tcpCount[i] = s.newCounters("tcp", family)
	}
	for _, address := range cfg.Listen {
		if err := s.bind(address); err != nil {
			s.Close()
			return nil, fmt.Errorf("listen on %s: %w", address, hint(err))
		}
	}
	return s, nil
}

func (c *Config) settings() *settings {
	if c.Cookies == [16]byte{} {
		rand.Read(c.Cookies[:])
	}
	s := &settings{c.Snapshot, c.Version, c.NSID, c.UDPSize, newCookieSecret(c.Cookies), c.Stale, nil, nil}
	if c.Forward != nil {
		s.pending = newPendingQueries(c.Forward, maxForwarded, s)
	}
	if c.Peers != nil {
		s.peers = newPeering(c.Peers, s)
	}
	return s
}

// endAfter cancels all waiting queries after d.
func (s *settings) endAfter(d time.Duration) {
	s.pending.endAfter(d)
	if s.peers != nil {
		s.peers.endAfter(d)
	}
}

// finish blocks until no query waits.
func (s *settings) finish() {
	s.pending.finish()
	if s.peers != nil {
		s.peers.finish()
	}
}

// Addrs returns the bound addresses, with the ports that the system chose for port 0. UDP and TCP use the same ones.
func (s *Server) Addrs() []netip.AddrPort { return s.addrs }

// Close closes the sockets. It is for a Server that will not run.
func (s *Server) Close() {
	for _, u := range s.udp {
		u.conn.Close()
	}
	for _, l := range s.tcp {
		l.Close()
	}
}

// Run serves until ctx ends. It then answers the messages that had arrived and closes all sockets.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	defer s.settings.finish()
	g, ctx := errgroup.WithContext(ctx)
	for _, u := range s.udp {
		g.Go(func() error { return s.serveUDP(u) })
	}
	for _, l := range s.tcp {
		g.Go(func() error { return s.serveTCP(ctx, l) })
	}
	g.Go(func() error {
		<-ctx.Done()
		s.drain()
		s.settings.endAfter(s.timeouts.forward)
		return nil
	})
	return g.Wait()
}

// drain bounds all reads by a deadline that is drainTime away.
func (s *Server) drain() {
	until := time.Now().Add(drainTime)
	for _, u := range s.udp {
		u.conn.SetReadDeadline(until)
	}
	for _, l := range s.tcp {
		l.SetDeadline(until)
	}
	s.conns.drain(until)
}

func (s *Server) newCounters(transport, family string) *counters {
	c := &counters{transport: transport, family: family}
	s.counters = append(s.counters, c)
	return c
}

// serveUDP serves a socket until its read deadline.
func (s *Server) serveUDP(u *udpSocket) error {
	h := &handler{settings: s.settings, count: u.count, limiter: newLimiter(s.cfg.RRL, u.sharedBy)}
	loop := serveBatches
	if s.cfg.portable {
		loop = servePortable
	}
	if err := loop(u, h); err != nil {
		return fmt.Errorf("serve UDP on %s: %w", u.conn.LocalAddr(), err)
	}
	return nil
}
