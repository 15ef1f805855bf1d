package simnet

import (
	"context"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

// queue is the number of packets that wait at a socket. Further packets are lost, as on a real socket.
const queue = 64

// ListenPacket opens an in-memory socket that receives packets from any server. It can be the Listen function of a
// probe.Prober.
func (n *Net) ListenPacket(ctx context.Context, _ string) (net.PacketConn, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &socket{net: n, ctx: ctx, cancel: cancel, packets: make(chan datagram, queue), moved: make(chan struct{})}, nil
}

// socket is a net.PacketConn.
type socket struct {
	net     *Net
	ctx     context.Context // ends when the socket is closed
	cancel  context.CancelFunc
	packets chan datagram

	mu       sync.Mutex // guards the following
	deadline time.Time
	moved    chan struct{} // closed when deadline changes
}

type datagram struct {
	wire []byte
	from netip.AddrPort
}

// WriteTo sends a query. ReadFrom returns its reply later.
func (s *socket) WriteTo(wire []byte, to net.Addr) (int, error) {
	addr, err := netip.ParseAddrPort(to.String())
	if err != nil {
		return 0, err
	}
	query := new(dns.Msg)
	if query.Unpack(wire) != nil {
		return len(wire), nil // no server replies to an invalid message
	}
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, replyTimeout)
		defer cancel()
		p, err := s.net.send(ctx, path{resolve.UDP, addr, loopback}, query)
		if err != nil {
			return
		}
		if wire, err := p.pack(); err == nil {
			select {
			case s.packets <- datagram{wire, p.from}:
			default:
			}
		}
	}()
	return len(wire), nil
}

// ReadFrom blocks until a packet arrives.
func (s *socket) ReadFrom(buf []byte) (int, net.Addr, error) {
	for {
		s.mu.Lock()
		deadline, moved := s.deadline, s.moved
		s.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			timer := time.NewTimer(time.Until(deadline))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case d := <-s.packets:
			return copy(buf, d.wire), net.UDPAddrFromAddrPort(d.from), nil
		case <-s.ctx.Done():
			return 0, nil, net.ErrClosed
		case <-late:
			return 0, nil, os.ErrDeadlineExceeded
		case <-moved:
		}
	}
}

// SetDeadline implements net.PacketConn.
func (s *socket) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

func (s *socket) SetReadDeadline(t time.Time) error { return s.SetDeadline(t) }
func (s *socket) SetWriteDeadline(time.Time) error  { return nil }
func (s *socket) Close() error                      { s.cancel(); return nil }
func (s *socket) LocalAddr() net.Addr               { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)} }
