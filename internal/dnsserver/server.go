// Package dnsserver speaks DNS to clients: sockets, messages, EDNS and limits. What the answer is, lookup says.
package dnsserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// Config says where and how to serve. The zero value of each field is safe.
type Config struct {
	Listen   []string              // addresses with ports; without a host, all addresses of both families; default DefaultListen
	Snapshot func() *zone.Snapshot // the zones; nil, or a nil Snapshot, answers SERVFAIL
	Stale    StaleFunc             // default: no records are stale
	Version  string                // shown to those who ask version.bind in class CH; default hidden
	NSID     string                // shown to those who ask for NSID (RFC 5001) or id.server; default hidden
	UDPSize  int                   // largest reply over UDP; default DefaultUDPSize, which no usual path fragments
	Workers  int                   // sockets for each address; default one for each CPU in use
	RRL      RRLConfig
	TCP      TCPConfig
	Forward  ForwardConfig
	Peers    PeersConfig
	Cookies  [16]byte // secret of DNS cookies; servers behind one address share it; default random
	Log      *slog.Logger

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
	grace    time.Duration // graceTime, but for tests
	patience time.Duration // forwardTime, but for tests
	works    sync.Pool     // of *tcpWork, so that idle connections need none
	replies  sync.Pool     // of *[writeBuffer]byte, so that those that wait for the rest of a message need none
}

// Defaults of the Config.
const (
	DefaultListen       = ":53"
	DefaultUDPSize      = wire.UDPSize
	DefaultResponses    = 1000
	DefaultMaxConns     = 4096
	DefaultMaxPerClient = 128
)

const (
	maxUDPSize = 4096
	maxVersion = 200 // fits a reply of 512 octets with all options

	// drainTime is how long messages are still read after the end was called: those that had arrived by then.
	drainTime = 50 * time.Millisecond
	// graceTime is how long TCP clients have to take their replies after that.
	graceTime = 3 * time.Second
	// forwardTime is how long the forwarder has after the end was called. Most upstreams answer far sooner, and clients ask
	// again: an end need not wait for upstreams that are dead.
	forwardTime = time.Second
)

// Listen binds every socket, so that the process can drop its privileges before Run.
func Listen(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, conns: newConnTable(cfg.TCP), grace: graceTime, patience: forwardTime}
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

// settings needs a complete Config.
func (c *Config) settings() *settings {
	s := &settings{c.Snapshot, c.Version, c.NSID, c.UDPSize, newCookieSecret(c.Cookies), c.Stale, nil, nil}
	if c.Forward.By != nil {
		s.waiting = newWaiting(c.Forward, s)
	}
	if c.Peers.By != nil {
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

// complete checks the Config and fills in what was left out.
func (c *Config) complete() error {
	if len(c.Listen) == 0 {
		c.Listen = []string{DefaultListen}
	}
	if c.Snapshot == nil {
		c.Snapshot = func() *zone.Snapshot { return nil }
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Cookies == [16]byte{} {
		rand.Read(c.Cookies[:])
	}
	c.UDPSize = cmp.Or(c.UDPSize, DefaultUDPSize)
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	c.TCP.complete()
	c.Forward.complete()
	c.Peers.complete()
	switch {
	case c.UDPSize < minUDPSize || c.UDPSize > maxUDPSize:
		return fmt.Errorf("UDP size %d is not between %d and %d", c.UDPSize, minUDPSize, maxUDPSize)
	case len(c.NSID) > maxNSID:
		return fmt.Errorf("NSID has %d octets; at most %d fit every reply", len(c.NSID), maxNSID)
	case len(c.Version) > maxVersion:
		return fmt.Errorf("version has %d octets; at most %d fit every reply", len(c.Version), maxVersion)
	case c.Workers < 0:
		return fmt.Errorf("%d workers cannot serve", c.Workers)
	case c.RRL.Responses < 0 || c.RRL.Negative < 0 || c.RRL.Errors < 0 || c.RRL.Window < 0:
		return errors.New("a rate limit is negative; to have none, switch it off")
	case c.Forward.MaxQueries < 0 || c.Forward.MaxPerClient < 0 || c.Forward.MaxPerConn < 0:
		return errors.New("a bound of the queries that wait is negative; to forward none, name no forwarder")
	}
	return nil
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
		s.settings.endAfter(s.patience)
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
