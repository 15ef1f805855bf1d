// Package dnsserver speaks DNS to clients: sockets, messages, EDNS and limits. What the answer is, lookup says.
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

// Config says where and how to serve.
type Config struct {
	Listen   []string              // addresses with ports; without a host, all addresses of both families
	Snapshot func() *zone.Snapshot // the zones; a nil Snapshot answers SERVFAIL
	Stale    StaleFunc             // default: no records are stale
	Version  string                // shown to those who ask version.bind in class CH; default hidden
	NSID     string                // shown to those who ask for NSID (RFC 5001) or id.server; default hidden
	UDPSize  int                   // largest reply over UDP
	RRL      RRLConfig
	TCP      TCPConfig
	Forward  Forwarder // finds names that are not ours; nil: they are REFUSED
	Peers    Peers     // nil: transfers are REFUSED, signatures are of unknown keys, the rest is NOTIMP
	Cookies  [16]byte  // secret of DNS cookies; servers behind one address share it; default random
	Log      *slog.Logger

	workers  int  // sockets for each address, for tests; default one for each CPU in use
	portable bool // serve UDP as on systems without recvmmsg; for tests
}

// StaleFunc reports whether the records that answer for a name, in lower-case wire form, are known to be old. encloser is
// that of lookup.Reply: the wildcard below name[encloser:] answers for it, or the name itself when it is 0.
type StaleFunc func(name []byte, encloser int, t rr.Type) bool

// settings is what handlers need of the Config.
type settings struct {
	snapshot func() *zone.Snapshot
	version  string
	nsid     string
	udpSize  int
	secret   cookieSecret
	stale    StaleFunc // nil when nothing ever is
	waiting  *waiting  // nil when nothing is forwarded
	peers    *peering  // nil when nobody speaks with other servers
}

// Server is a set of bound sockets, and what serves them.
type Server struct {
	cfg      Config
	settings *settings
	udp      []*udpSocket
	tcp      []*net.TCPListener
	addrs    []netip.AddrPort
	counters []*counters
	tcpCount [2]*counters // IPv4, IPv6
	conns    *connTable
	times    times
	works    sync.Pool // of *tcpWork, so that idle connections need none
	replies  sync.Pool // of *[writeBuffer]byte, so that those that wait for the rest of a message need none
}

// times are how long others are waited for; tests change them.
type times struct {
	idle    time.Duration // between messages of a TCP client; a quarter of it when most connections are in use
	read    time.Duration // from the first octet of a message to its last
	write   time.Duration // for a client to take its replies
	grace   time.Duration // for TCP clients to take their replies after the end was called
	forward time.Duration // for the forwarder then
}

// usualTimes has little for the forwarder at the end: most upstreams answer far sooner, and clients ask again. An end need
// not wait for upstreams that are dead.
var usualTimes = times{10 * time.Second, 5 * time.Second, 5 * time.Second, 3 * time.Second, time.Second}

// drainTime is how long messages are still read after the end was called: those that had arrived by then.
const drainTime = 50 * time.Millisecond

// Listen binds every socket, so that the process can drop its privileges before Run.
func Listen(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, conns: newConnTable(cfg.TCP), times: usualTimes}
	s.works.New = newTCPWork
	s.replies.New = func() any { return new([writeBuffer]byte) }
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
		s.waiting = newWaiting(c.Forward, maxForwarded, s)
	}
	if c.Peers != nil {
		s.peers = newPeering(c.Peers, s)
	}
	return s
}

// endAfter has nobody wait longer than d.
func (s *settings) endAfter(d time.Duration) {
	s.waiting.endAfter(d)
	if s.peers != nil {
		s.peers.endAfter(d)
	}
}

// finish returns when nobody waits any more.
func (s *settings) finish() {
	s.waiting.finish()
	if s.peers != nil {
		s.peers.finish()
	}
}

// Addrs are the addresses bound, with the ports that were chosen where 0 was asked. UDP and TCP are the same.
func (s *Server) Addrs() []netip.AddrPort { return s.addrs }

// Close closes the sockets of a Server that is not to be run.
func (s *Server) Close() {
	for _, u := range s.udp {
		u.conn.Close()
	}
	for _, l := range s.tcp {
		l.Close()
	}
}

// Run serves until ctx ends. It then answers what had arrived, and closes everything.
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
		s.settings.endAfter(s.times.forward)
		return nil
	})
	return g.Wait()
}

// drain makes everything that reads end soon.
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
	h := &handler{settings: s.settings, count: u.count, limiter: newLimiter(s.cfg.RRL, u.sharers)}
	loop := serveBatches
	if s.cfg.portable {
		loop = servePortable
	}
	if err := loop(u, h); err != nil {
		return fmt.Errorf("serve UDP on %s: %w", u.conn.LocalAddr(), err)
	}
	return nil
}
