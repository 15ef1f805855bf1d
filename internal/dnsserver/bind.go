package dnsserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"
)

// udpSocket is one of the sockets of an address.
type udpSocket struct {
	conn     *net.UDPConn
	wildcard bool // bound to all addresses, so each reply must name its source address
	sharedBy int  // number of sockets of the same address, with this one
	count    *counters
	send     sendFunc // set by the loop that serves the socket
}

// maxPortAttempts bounds the search for a port that is free for UDP and TCP in both families, when the port is 0.
const maxPortAttempts = 16

// bind opens the sockets of one element of Config.Listen.
func (s *Server) bind(address string) error {
	ips, port, err := parseListen(address)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		udp, tcp := len(s.udp), len(s.tcp)
		addrs, err := s.bindAll(ips, port)
		if err == nil {
			s.addrs = append(s.addrs, addrs...)
			return nil
		}
		if port != 0 || try == maxPortAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
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

// bindAll opens UDP and TCP sockets on one port of all given addresses. TCP comes first, because a TCP port is not
// shared: a second server on the same port is noticed. UDP would give it half of the queries.
func (s *Server) bindAll(ips []netip.Addr, port uint16) ([]netip.AddrPort, error) {
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
		s.tcp = append(s.tcp, l)
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		at := netip.AddrPortFrom(ip, port)
		if err := s.bindUDP("udp"+digit, at, s.newCounters("udp", family)); err != nil {
			return nil, err
		}
		addrs = append(addrs, at)
	}
	return addrs, nil
}

// noFamily reports whether a listen failed because the system has no addresses of that family.
func noFamily(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

func listenTCP(network string, at netip.AddrPort) (*net.TCPListener, error) {
	lc := net.ListenConfig{KeepAlive: -1} // idle connections are closed long before a probe
	l, err := lc.Listen(context.Background(), network, at.String())
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// bindUDP opens the sockets over which the kernel spreads the clients of one address.
func (s *Server) bindUDP(network string, at netip.AddrPort, first *counters) error {
	wildcard := at.Addr().IsUnspecified()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return controlUDP(c, at.Addr(), wildcard)
	}}
	n := cmp.Or(s.cfg.workers, runtime.GOMAXPROCS(0))
	var shared *net.UDPConn
	for i := range n {
		count := first
		if i > 0 {
			count = s.newCounters("udp", first.family)
		}
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
		s.udp = append(s.udp, &udpSocket{conn: conn, wildcard: wildcard, sharedBy: n, count: count})
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
