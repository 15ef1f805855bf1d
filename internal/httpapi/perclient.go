package httpapi

import (
	"math"
	"net"
	"net/netip"
	"sync"
)

// clientListener closes connections of a client that has its share already, so that one alone cannot take them all and
// lock everybody out: a connection needs no token. Loopback has no share, because a proxy brings everybody from there.
type clientListener struct {
	net.Listener
	share int
	conns Shares[netip.Prefix]
}

func newClientListener(l net.Listener, share int) *clientListener {
	return &clientListener{Listener: l, share: max(1, share), conns: Shares[netip.Prefix]{Max: math.MaxInt}}
}

// Accept waits for a connection of a client that has room for one more.
func (l *clientListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client, counted := clientOf(c.RemoteAddr())
		if !counted {
			return c, nil
		}
		if l.conns.Take(client, l.share) {
			return &clientConn{Conn: c, gone: func() { l.conns.Return(client) }}, nil
		}
		_ = c.Close()
	}
}

// clientOf is an address, or the /64 that one IPv6 client has all of; false for loopback and what is no address.
func clientOf(a net.Addr) (netip.Prefix, bool) {
	ap, err := netip.ParseAddrPort(a.String())
	ip := ap.Addr().Unmap().WithZone("")
	if err != nil || ip.IsLoopback() {
		return netip.Prefix{}, false
	}
	p, err := ip.Prefix(min(64, ip.BitLen()))
	return p, err == nil
}

type clientConn struct {
	net.Conn
	once sync.Once
	gone func()
}

func (c *clientConn) Close() error {
	c.once.Do(c.gone)
	return c.Conn.Close()
}
