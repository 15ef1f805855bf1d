package httpapi

import (
	"math"
	"net"
	"net/netip"
	"sync"
)

// clientListener closes connections of a client that has its share already, so that one client cannot use all of them:
// a connection needs no token. Loopback addresses have no limit, because all clients of a local proxy come from there.
type clientListener struct {
	net.Listener
	share int
	send  int // see ListenConfig.SendBuffer
	conns Shares[netip.Prefix]
}

func newClientListener(l net.Listener, share, send int) *clientListener {
	return &clientListener{Listener: l, share: max(1, share), send: send, conns: Shares[netip.Prefix]{Max: math.MaxInt}}
}

// Accept waits for a connection of a client that has not used up its share.
func (l *clientListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetWriteBuffer(l.send) // on an error the kernel's size is used
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

// clientOf returns the IPv4 address, or the /64 of an IPv6 address: one client usually has a whole /64. It returns
// false for loopback and for text that is not an address.
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
