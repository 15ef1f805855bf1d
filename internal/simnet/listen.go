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

// Sockets are the servers of a Net on real sockets: each on a loopback address of its own, with UDP and TCP on one port. What
// servers ask each other stays in memory.
type Sockets struct {
	net    *Net
	places map[netip.AddrPort]netip.AddrPort
	doors  map[netip.AddrPort]door // by the address in the Net
}

// door is where one server is reached.
type door struct {
	udp *net.UDPConn
	tcp net.Listener
}

// Listen opens sockets for all servers that the Net has now, on 127.53.0.1 and those that follow. With port 0 each has a port
// that is free. Run serves them.
func (n *Net) Listen(port uint16) (*Sockets, error) {
	l := &Sockets{net: n, places: map[netip.AddrPort]netip.AddrPort{}, doors: map[netip.AddrPort]door{}}
	host := netip.AddrFrom4([4]byte{127, 53, 0, 0})
	for _, addr := range n.addrs() {
		host = host.Next()
		d, err := openDoor(host, port)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("listen for %v: %w", addr, err)
		}
		l.doors[addr], l.places[addr] = d, d.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	}
	return l, nil
}

// addrs are those of all servers, in order.
func (n *Net) addrs() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Keys(n.servers), netip.AddrPort.Compare)
}

// portTries is how often a port that was free for TCP may be taken for UDP.
const portTries = 20

func openDoor(host netip.Addr, port uint16) (door, error) {
	for try := 0; ; try++ {
		tcp, err := net.Listen("tcp4", netip.AddrPortFrom(host, port).String())
		if err != nil {
			return door{}, err
		}
		udp, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(tcp.Addr().(*net.TCPAddr).AddrPort()))
		if err == nil {
			return door{udp, tcp}, nil
		}
		tcp.Close()
		if port != 0 || try == portTries {
			return door{}, err
		}
	}
}

// Places tell where each server of the Net is on loopback.
func (l *Sockets) Places() map[netip.AddrPort]netip.AddrPort { return l.places }

// Run serves until ctx ends, and closes the sockets.
func (l *Sockets) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for addr, d := range l.doors {
		all.Go(func() { l.packets(ctx, addr, d.udp, &all) })
		all.Go(func() { l.connections(ctx, addr, d.tcp, &all) })
	}
	<-ctx.Done()
	l.close()
	return nil
}

func (l *Sockets) close() {
	for _, d := range l.doors {
		d.udp.Close()
		d.tcp.Close()
	}
}

// querySize is more than any query over UDP has.
const querySize = 4096

// packets replies to queries over UDP, each as soon as its reply is there.
func (l *Sockets) packets(ctx context.Context, addr netip.AddrPort, conn *net.UDPConn, all *sync.WaitGroup) {
	buf := make([]byte, querySize)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // what a reply to somebody who has gone came to
		}
		query := new(dns.Msg)
		if query.Unpack(buf[:n]) != nil {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			l.reply(ctx, addr, from, query)
		})
	}
}

// reply sends the reply to one query over UDP. Nobody is told where there is none.
func (l *Sockets) reply(ctx context.Context, addr, from netip.AddrPort, query *dns.Msg) {
	p, err := l.net.send(ctx, path{resolve.UDP, addr, from.Addr().Unmap()}, query)
	if err != nil {
		return
	}
	wire, err := p.pack()
	if d, ok := l.doors[p.from]; ok && err == nil {
		_, _ = d.udp.WriteToUDPAddrPort(wire, from)
	}
}

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
				_ = tcp.SetLinger(0) // it looks as if nothing listened
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

// ServeConn replies to queries on a connection, such as one with TLS, as a server of the Net does over TCP, until the connection or
// ctx ends.
func (n *Net) ServeConn(ctx context.Context, c net.Conn, to netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	client := loopback
	if a, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		client = a.Addr().Unmap()
	}
	(&conn{net: n, path: path{resolve.TCP, to, client}, pipe: c}).serve(ctx)
}
