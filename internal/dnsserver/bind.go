package dnsserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// udpSocket is one of the sockets of an address.
type udpSocket struct {
	conn     *net.UDPConn
	wildcard bool           // bound to all addresses, so each reply must name its source address
	sharedBy int            // number of sockets of the same address, with this one
	proxies  []netip.Prefix // networks whose messages begin with a PROXY header; nil: no message does
	count    *counters
	send     sendFunc // set by the loop that serves the socket
}

// tcpListener is one bound TCP address.
type tcpListener struct {
	*net.TCPListener
	tls     *tls.Config    // nil for plain TCP
	proxies []netip.Prefix // networks whose connections begin with a PROXY header; nil: no connection does
	count   *[2]*counters  // for clients with IPv4 and with IPv6
}

func (l *tcpListener) isProxied() bool { return l != nil && l.proxies != nil }

func (l *tcpListener) countOf(client netip.Addr) *counters {
	if client.Is6() {
		return l.count[1]
	}
	return l.count[0]
}

// proxyPrefix begins an address whose clients are proxies that send a PROXY header.
const proxyPrefix = "proxy://"

// bindEach opens the sockets of all addresses of the configuration.
func (s *Server) bindEach() error {
	kinds := []struct {
		transport string
		listen    []string
		bound     *[]string
		tls       *tls.Config
	}{{"tcp", s.cfg.Listen, &s.bound.Listen, nil}, {"tls", s.cfg.TLS, &s.bound.TLS, s.cfg.TLSConfig}}
	for _, k := range kinds {
		if len(k.listen) == 0 {
			continue
		}
		count := &[2]*counters{s.newCounters(k.transport, "ipv4"), s.newCounters(k.transport, "ipv6")}
		for _, address := range k.listen {
			l := tcpListener{tls: k.tls, count: count}
			rest, proxied := strings.CutPrefix(address, proxyPrefix)
			prefix := address[:len(address)-len(rest)]
			if proxied {
				l.proxies = append([]netip.Prefix{}, s.cfg.Proxies...) // not nil
			}
			addrs, err := s.bind(rest, l)
			if err != nil {
				return fmt.Errorf("listen on %s: %w", address, hint(err))
			}
			for _, a := range addrs {
				*k.bound = append(*k.bound, prefix+a.String())
			}
			if k.tls == nil {
				s.addrs = append(s.addrs, addrs...)
			}
		}
	}
	return s.bindQUIC()
}

// maxPortAttempts bounds the search for a port that is free for UDP and TCP in both families, when the port is 0.
const maxPortAttempts = 16

// bind opens the UDP and TCP sockets of one address. It copies like for each TCP socket and sets only the socket in the
// copy.
func (s *Server) bind(address string, like tcpListener) ([]netip.AddrPort, error) {
	ips, port, err := parseListen(address)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		udp, tcp := len(s.udp), len(s.tcp)
		addrs, err := s.bindAll(ips, port, like)
		if err == nil {
			return addrs, nil
		}
		if port != 0 || try == maxPortAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		(&Server{udp: s.udp[udp:], tcp: s.tcp[tcp:]}).Close()
		s.udp, s.tcp = s.udp[:udp], s.tcp[:tcp]
	}
}

// parseListen parses "192.0.2.1:53", "[2001:db8::1]:53" or ":53". All addresses need two sockets, because a socket of
// both families reports IPv4 clients with IPv6 addresses.
func parseListen(address string) ([]netip.Addr, uint16, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, 0, fmt.Errorf("%w; write it as 192.0.2.1:53, [2001:db8::1]:53 or :53", err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, 0, fmt.Errorf("port %q is not a number from 0 to 65535", service)
	}
	if host == "" {
		return []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}, uint16(port), nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil, 0, fmt.Errorf("%q is not an IP address", host)
	}
	return []netip.Addr{ip.Unmap()}, uint16(port), nil
}

// bindAll opens sockets on one port of all given addresses: TCP, and without TLS also UDP. TCP comes first, because a
// TCP port is not shared: a second server on the same port is noticed. UDP would give it half of the queries.
func (s *Server) bindAll(ips []netip.Addr, port uint16, like tcpListener) ([]netip.AddrPort, error) {
	var addrs []netip.AddrPort
	for _, ip := range ips {
		family, digit := "ipv4", "4"
		if ip.Is6() {
			family, digit = "ipv6", "6"
		}
		l, err := listenTCP("tcp"+digit, netip.AddrPortFrom(ip, port))
		if len(ips) > 1 && ip.Is6() && noFamily(err) {
			s.cfg.Log.Info("serving IPv4 only: this system has no IPv6")
			continue
		}
		if err != nil {
			return nil, err
		}
		listener := like
		listener.TCPListener = l
		s.tcp = append(s.tcp, &listener)
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		at := netip.AddrPortFrom(ip, port)
		addrs = append(addrs, at)
		if like.tls != nil {
			continue
		}
		if err := s.bindUDP("udp"+digit, at, family, like.proxies); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// noFamily reports whether a listen failed because the system has no addresses of that family.
func noFamily(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

func listenTCP(network string, at netip.AddrPort) (*net.TCPListener, error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: controlTCP} // idle connections are closed long before a probe
	l, err := lc.Listen(context.Background(), network, at.String())
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// bindUDP opens the sockets over which the kernel spreads the clients of one address.
func (s *Server) bindUDP(network string, at netip.AddrPort, family string, proxies []netip.Prefix) error {
	wildcard := at.Addr().IsUnspecified()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return controlUDP(c, at.Addr(), wildcard)
	}}
	n := cmp.Or(s.cfg.workers, runtime.GOMAXPROCS(0))
	var shared *net.UDPConn
	for range n {
		conn := shared
		if conn == nil {
			c, err := lc.ListenPacket(context.Background(), network, at.String())
			if err != nil {
				return err
			}
			conn = c.(*net.UDPConn)
			if !reusePort {
				shared = conn
			}
		}
		s.udp = append(s.udp, &udpSocket{conn: conn, wildcard: wildcard, sharedBy: n, proxies: proxies,
			count: s.newCounters("udp", family)})
	}
	return nil
}

// hint adds to a bind error what usually helps.
func hint(err error) error {
	switch {
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w (ports below 1024 need root, or the capability CAP_NET_BIND_SERVICE)", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w (another DNS server is there; choose one address instead of all, or another port)", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w (this machine has no such address)", err)
	}
	return err
}
