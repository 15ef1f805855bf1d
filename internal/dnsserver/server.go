// Package dnsserver serves DNS over UDP, TCP, TLS, HTTPS and QUIC: sockets, messages, EDNS, cookies and limits.
//
// Start with handler.answer in respond.go: it turns one query into one reply. udp.go, udp_linux.go, tcp.go, https.go
// and quic.go read messages and call it; open.go begins connections over TLS, and proxy.go those through proxies.
// Package lookup finds the answer in the zones. A query that our zones cannot answer waits in pending.go for a
// Forwarder (forward.go) or for Peers (peers.go).
package dnsserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// Config configures a Server.
type Config struct {
	Listen     []string              // addresses for UDP and TCP, with ports; see bind
	TLS        []string              // addresses for DNS over TLS (RFC 7858)
	TLSConfig  *tls.Config           // of the addresses in TLS
	QUIC       []string              // addresses for DNS over QUIC (RFC 9250)
	QUICConfig *tls.Config           // of the addresses in QUIC
	Proxies    []netip.Prefix        // networks of proxies, for addresses that begin with proxy://
	Snapshot   func() *zone.Snapshot // returns the current zones; when it returns nil, queries get SERVFAIL
	Stale      StaleFunc             // default: no records are stale
	Version    string                // answer to version.bind in class CH; default hidden
	NSID       string                // answer to the NSID option (RFC 5001) and to id.server; default hidden
	UDPSize    int                   // size of the largest reply over UDP, in bytes
	RRL        RRLConfig
	TCP        TCPConfig
	Forward    Forwarder // resolves names outside our zones; nil: they are REFUSED
	Peers      Peers     // nil: transfers are REFUSED, TSIG keys are unknown, NOTIFY and UPDATE are NOTIMP
	Cookies    [16]byte  // secret of DNS cookies; servers behind one address share it; default random
	Log        *slog.Logger

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
	tcp       []*tcpListener
	addrs     []netip.AddrPort
	bound     Bound
	counters  []*counters
	conns     *connTable
	requests  gate
	streams   *capacity // of requests over HTTPS and QUIC
	messages  *capacity // of messages over TCP that are larger than startBuffer and not complete
	quic      []*quicListener
	quicConns quicConns
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
	s := &Server{cfg: cfg, conns: newConnTable(cfg.TCP), timeouts: defaultTimeouts, streams: newCapacity(maxRequests),
		messages: newCapacity(maxRequests)}
	s.workPool.New = newTCPWork
	s.replyPool.New = func() any { return new([writeBuffer]byte) }
	s.settings = cfg.settings()
	if err := s.bindEach(); err != nil {
		s.Close()
		return nil, err
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

// Addrs returns the bound addresses for UDP and TCP, with the ports that the system chose for port 0.
func (s *Server) Addrs() []netip.AddrPort { return s.addrs }

// Bound has the bound addresses as Config has them, with the ports that the system chose for port 0.
type Bound struct{ Listen, TLS, QUIC []string }

// Bound returns all bound addresses.
func (s *Server) Bound() Bound { return s.bound }

// Close closes the sockets. It is for a Server that will not run.
func (s *Server) Close() {
	for _, u := range s.udp {
		u.conn.Close()
	}
	for _, l := range s.tcp {
		l.Close()
	}
	for _, l := range s.quic {
		l.conn.Close()
	}
}

// Run serves until ctx ends. It then answers the messages that had arrived and closes all sockets.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	defer s.settings.finish()
	defer s.requests.close()
	g, ctx := errgroup.WithContext(ctx)
	for _, u := range s.udp {
		g.Go(func() error { return s.serveUDP(u) })
	}
	for _, l := range s.tcp {
		g.Go(func() error { return s.serveTCP(ctx, l) })
	}
	for _, l := range s.quic {
		g.Go(func() error { return s.serveQUIC(ctx, l) })
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
	if u.proxies != nil || s.cfg.portable {
		loop = servePortable
	}
	if err := loop(u, h); err != nil {
		return fmt.Errorf("serve UDP on %s: %w", u.conn.LocalAddr(), err)
	}
	return nil
}
