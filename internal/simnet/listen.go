package simnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

// Sockets serves the servers of a Net on real sockets: each on its own address, with UDP and TCP on one port. Queries
// between servers stay in memory.
type Sockets struct {
	net       *Net
	addrs     map[netip.AddrPort]netip.AddrPort
	endpoints map[netip.AddrPort]endpoint // by the address in the Net
}

// endpoint has the sockets of one server.
type endpoint struct {
	udp *net.UDPConn
	tcp net.Listener
}

// Listen opens sockets for all servers that the Net has now, on 127.53.0.1 and the following addresses. With port 0
// the system chooses a free port for each. Run serves them.
func (n *Net) Listen(port uint16) (*Sockets, error) {
	host := netip.AddrFrom4([4]byte{127, 53, 0, 0})
	return n.listen(func(netip.AddrPort) netip.AddrPort {
		host = host.Next()
		return netip.AddrPortFrom(host, port)
	})
}

// ListenPublic is like Listen, but opens the addresses of the servers themselves. It is for a network namespace whose
// loopback interface has them.
func (n *Net) ListenPublic() (*Sockets, error) {
	return n.listen(func(public netip.AddrPort) netip.AddrPort { return public })
}

// listen opens sockets at the address that at returns for each server.
func (n *Net) listen(at func(netip.AddrPort) netip.AddrPort) (*Sockets, error) {
	l := &Sockets{net: n, addrs: map[netip.AddrPort]netip.AddrPort{}, endpoints: map[netip.AddrPort]endpoint{}}
	for _, addr := range n.Addrs() {
		d, err := openEndpoint(at(addr))
		if err != nil {
			l.close()
			return nil, fmt.Errorf("listen for %v: %w", addr, err)
		}
		l.endpoints[addr], l.addrs[addr] = d, d.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	}
	return l, nil
}

// Addrs returns the addresses of all servers, in order.
func (n *Net) Addrs() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Keys(n.servers), netip.AddrPort.Compare)
}

// portTries is the number of retries if a port is free for TCP but not for UDP.
const portTries = 20

func openEndpoint(at netip.AddrPort) (endpoint, error) {
	for try := 0; ; try++ {
		tcp, err := net.Listen("tcp", at.String())
		if err != nil {
			return endpoint{}, err
		}
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(tcp.Addr().(*net.TCPAddr).AddrPort()))
		if err == nil {
			return endpoint{udp, tcp}, nil
		}
		tcp.Close()
		if at.Port() != 0 || try == portTries {
			return endpoint{}, err
		}
	}
}

// Addrs returns the address of the sockets of each server of the Net.
func (l *Sockets) Addrs() map[netip.AddrPort]netip.AddrPort { return l.addrs }

// Run serves until ctx ends. Then it closes the sockets.
func (l *Sockets) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for addr, d := range l.endpoints {
		all.Go(func() { l.packets(ctx, addr, d.udp, &all) })
		all.Go(func() { l.connections(ctx, addr, d.tcp, &all) })
	}
	<-ctx.Done()
	l.close()
	return nil
}

func (l *Sockets) close() {
	for _, d := range l.endpoints {
		d.udp.Close()
		d.tcp.Close()
	}
}

// querySize is larger than any query over UDP.
const querySize = 4096

// packets replies to queries over UDP. Each reply is sent as soon as it is ready.
func (l *Sockets) packets(ctx context.Context, addr netip.AddrPort, conn *net.UDPConn, all *sync.WaitGroup) {
	buf := make([]byte, querySize)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // such as an ICMP error for a reply to a client that has gone
		}
		query := new(dns.Msg)
		if query.Unpack(buf[:n]) != nil {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, replyTimeout)
			defer cancel()
			l.reply(ctx, addr, from, query)
		})
	}
}

// reply sends the reply to one query over UDP. Without a reply the client gets no error.
func (l *Sockets) reply(ctx context.Context, addr, from netip.AddrPort, query *dns.Msg) {
	p, err := l.net.send(ctx, path{resolve.UDP, addr, from.Addr().Unmap()}, query)
	if err != nil {
		return
	}
	wire, err := p.pack()
	if d, ok := l.endpoints[p.from]; ok && err == nil {
		_, _ = d.udp.WriteToUDPAddrPort(wire, from)
	}
}

// connections serves TCP connections. It resets them if the server does not accept TCP.
func (l *Sockets) connections(ctx context.Context, addr netip.AddrPort, from net.Listener, all *sync.WaitGroup) {
	for {
		c, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if !l.net.accepts(addr, resolve.TCP) {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // reset the connection, as if nothing listened
			}
			c.Close()
			continue
		}
		client := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			(&conn{net: l.net, path: path{resolve.TCP, addr, client}, pipe: c}).serve(ctx)
		})
	}
}

// readFramed reads a message from a stream (RFC 1035 §4.2.2).
func readFramed(r io.Reader, buf []byte) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	wire := buf[:binary.BigEndian.Uint16(size[:])]
	_, err := io.ReadFull(r, wire)
	return wire, err
}

// ServeConn replies to queries on a connection, such as a TLS connection, as a server of the Net does over TCP. It
// returns when the connection or ctx ends.
func (n *Net) ServeConn(ctx context.Context, c net.Conn, to netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	client := loopback
	if a, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		client = a.Addr().Unmap()
	}
	(&conn{net: n, path: path{resolve.TCP, to, client}, pipe: c}).serve(ctx)
}
