package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"

	"github.com/nameplane/nameplane/internal/certs"
)

// ListenConfig configures a listener.
type ListenConfig struct {
	Name string      // the name of the listener in the configuration, for errors; default http
	Addr string      // IP:PORT or localhost:PORT
	TLS  certs.Files // with ClientCA, clients need a certificate of this CA in addition to their token

	// HTTP2 also serves HTTP/2, for handlers that set deadlines of their own.
	HTTP2 bool

	// MaxConns bounds the connections; default 1024. Connections take memory, and a client needs only a few. One client
	// may have a quarter of them, unless it is on this machine.
	MaxConns int

	MaxPerClient int // default: a quarter of MaxConns

	// SendBuffer is the memory of the kernel for a reply that the client has not read, in bytes; default 128 KiB. Without
	// a bound Linux gives up to 4 MiB to each connection, and they count against the memory limit of the process.
	SendBuffer int

	Log *slog.Logger
}

// Server listens for HTTP.
type Server struct {
	listener net.Listener
	http     *http.Server
	certs    *certs.Set // nil without TLS
}

// Times and sizes of a connection. Reading and writing of bodies has deadlines of its own, which depend on the progress
// (see stall).
const (
	headTime     = 10 * time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 10 * time.Second
	headBytes    = 64 << 10 // tokens of OpenStack services can have 8 KiB

	maxStreams  = 64        // requests at a time on one connection of HTTP/2
	streamBytes = 128 << 10 // received and not yet read, for one connection of HTTP/2
)

// Listen binds the address. It refuses to listen without TLS on an address that is not loopback: others could read the
// tokens on the network.
func Listen(c ListenConfig, h http.Handler) (*Server, error) {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.MaxConns = cmp.Or(c.MaxConns, 1024)
	c.Name = cmp.Or(c.Name, "http")
	addr, err := listenAddr(c.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if c.TLS.Enabled() {
		base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: c.protocols(),
			ClientAuth: tls.RequireAndVerifyClientCert}
		if s.certs, err = certs.Open(c.TLS, base); err != nil {
			return nil, fmt.Errorf("certificate of %s: %w", c.Name, err)
		}
	} else if !addr.Addr().Unmap().IsLoopback() {
		return nil, fmt.Errorf("refusing to serve %[2]s on %[1]s without TLS, because tokens would cross the network in the "+
			"clear: give a certificate (http.tls.cert and http.tls.key in the configuration), or listen on 127.0.0.1 and put "+
			"a TLS proxy in front", c.Addr, c.Name)
	}
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("%s.listen: %w", c.Name, err)
	}
	limited := newClientListener(l, cmp.Or(c.MaxPerClient, c.MaxConns/4), cmp.Or(c.SendBuffer, 128<<10))
	s.listener = netutil.LimitListener(limited, c.MaxConns)
	if s.certs != nil {
		s.listener = tls.NewListener(s.listener, s.certs.Config())
	}
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: headBytes,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug), Protocols: new(http.Protocols)}
	if s.certs != nil {
		s.http.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, certKey{}, s.certs.Leaf())
		}
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(c.HTTP2)
	s.http.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: streamBytes,
		MaxReceiveBufferPerStream: streamBytes}
	return s, nil
}

// protocols returns the protocols that a TLS client can select. The APIs have HTTP/1 only: their clients gain nothing
// from the streams of HTTP/2, and the deadlines of bodies need one connection for each request.
func (c *ListenConfig) protocols() []string {
	if c.HTTP2 {
		return []string{"h2", "http/1.1"}
	}
	return []string{"http/1.1"}
}

// listenAddr parses an address without a DNS lookup: the resolver may be this server.
func listenAddr(s string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: must be IP:PORT, such as 127.0.0.1:8053", s)
	}
	switch host {
	case "localhost":
		host = "127.0.0.1"
	case "":
		host = "::"
	}
	ap, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: must be IP:PORT, such as 127.0.0.1:8053", s)
	}
	return ap, nil
}

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Prepare reads certificates and keys again. New connections use them after apply is called, so that several servers
// can change together or not at all. On an error nothing changes.
func (s *Server) Prepare() (apply func(), err error) {
	if s.certs == nil {
		return func() {}, nil
	}
	return s.certs.Prepare()
}

// Close stops listening. Call it only for a server that does not Run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx ends. Then it waits up to shutdownTime for running requests.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := s.http.Shutdown(ending)
	if err != nil {
		err = errors.Join(fmt.Errorf("some HTTP requests were cut off: %w", err), s.http.Close())
	}
	<-served
	return err
}
