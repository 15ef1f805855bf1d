package dnsserver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// Error codes of DNS over QUIC (RFC 9250 §4.3).
const (
	doqNoError       = 0x0
	doqInternal      = 0x1
	doqProtocolError = 0x2
	doqExcessiveLoad = 0x4
	doqUnspecified   = 0x5
)

const (
	quicStreams = maxPerConn // streams that a client may have open on one connection
	// quicStreamBuffer and quicConnBuffer limit what was received and not yet read; maxRequests limits what was read.
	quicStreamBuffer = lengthSize + wire.MaxSize
	quicConnBuffer   = 2 * quicStreamBuffer
)

// quicListener is one bound UDP address for QUIC.
type quicListener struct {
	conn  *net.UDPConn
	tls   *tls.Config
	count *[2]*counters // for clients with IPv4 and with IPv6
}

// quicConns limits the connections over QUIC, like those over TCP.
type quicConns struct {
	cfg TCPConfig

	mu      sync.Mutex // guards the following
	open    int
	clients map[netip.Addr]int
}

var errQUICLimit = errors.New("too many connections")

// add adds a connection until ctx ends.
func (t *quicConns) add(ctx context.Context, addr netip.Addr) error {
	client := clientOf(addr)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= t.cfg.MaxConns || t.clients[client] >= t.cfg.MaxPerClient {
		return errQUICLimit
	}
	t.open++
	t.clients[client]++
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.open--
		if t.clients[client]--; t.clients[client] == 0 {
			delete(t.clients, client)
		}
	})
	return nil
}

// busy reports whether new clients must prove their address first (RFC 9000 §8.1.2). It costs them a round trip, and
// keeps forged addresses from taking the connections of others.
func (t *quicConns) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return 4*t.open >= t.cfg.MaxConns
}

// bindQUIC opens the sockets of all addresses for QUIC.
func (s *Server) bindQUIC() error {
	if len(s.cfg.QUIC) == 0 {
		return nil
	}
	s.quicConns = quicConns{cfg: s.cfg.TCP, clients: map[netip.Addr]int{}}
	count := &[2]*counters{s.newCounters("quic", "ipv4"), s.newCounters("quic", "ipv6")}
	for _, address := range s.cfg.QUIC {
		ips, port, err := parseListen(address)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", address, err)
		}
		for _, ip := range ips {
			network := "udp4"
			if ip.Is6() {
				network = "udp6"
			}
			conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, port)))
			if len(ips) > 1 && ip.Is6() && noFamily(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("listen on %s: %w", address, hint(err))
			}
			s.quic = append(s.quic, &quicListener{conn, s.cfg.QUICConfig, count})
			s.bound.QUIC = append(s.bound.QUIC, conn.LocalAddr().String())
			port = conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
		}
	}
	return nil
}

// serveQUIC accepts connections until ctx ends, and waits for them to end.
func (s *Server) serveQUIC(ctx context.Context, l *quicListener) error {
	transport := &quic.Transport{Conn: l.conn, VerifySourceAddress: func(net.Addr) bool { return s.quicConns.busy() },
		ConnContext: func(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
			return ctx, s.quicConns.add(ctx, addrOf(info.RemoteAddr))
		}}
	defer transport.Close()
	// 0-RTT is not accepted: others could replay an update or a transfer. A client with early data sends it again after
	// the handshake.
	listener, err := transport.Listen(l.tls, &quic.Config{HandshakeIdleTimeout: s.timeouts.read,
		MaxIdleTimeout: s.timeouts.idle, MaxIncomingStreams: quicStreams, MaxIncomingUniStreams: -1,
		InitialStreamReceiveWindow: startBuffer, MaxStreamReceiveWindow: quicStreamBuffer,
		InitialConnectionReceiveWindow: quicStreamBuffer, MaxConnectionReceiveWindow: quicConnBuffer})
	if err != nil {
		return err
	}
	var open sync.WaitGroup
	for {
		c, err := listener.Accept(ctx)
		if err != nil {
			break
		}
		open.Go(func() { s.serveQUICConn(ctx, l, c) })
	}
	listener.Close()
	open.Wait()
	return nil
}

func addrOf(a net.Addr) netip.Addr {
	if u, ok := a.(*net.UDPAddr); ok {
		return u.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// serveQUICConn answers the queries of one connection, each on its own stream.
func (s *Server) serveQUICConn(ctx context.Context, l *quicListener, c *quic.Conn) {
	from := client{addr: addrOf(c.RemoteAddr()), tcp: true, encrypted: encryptionOf(c.ConnectionState().TLS)}
	count := l.count[0]
	if from.addr.Is6() {
		count = l.count[1]
	}
	var running sync.WaitGroup
	for {
		stream, err := c.AcceptStream(ctx)
		if err != nil {
			break
		}
		running.Go(func() {
			if err := s.answerStream(stream, from, count); err != nil {
				_ = c.CloseWithError(doqProtocolError, err.Error())
			}
		})
	}
	end := func() { _ = c.CloseWithError(doqNoError, "") } // it may have ended already
	ended := time.AfterFunc(s.timeouts.grace, end)
	running.Wait()
	ended.Stop()
	end()
}

// answerStream answers the query of a stream. It returns an error when the client does not follow the protocol.
func (s *Server) answerStream(stream *quic.Stream, from client, count *counters) error {
	held := &share{from: s.streams, addr: from.addr}
	defer held.release()
	_ = stream.SetReadDeadline(time.Now().Add(s.timeouts.read))
	err := held.holds(0)
	var in []byte
	if err == nil {
		in, err = held.read(stream)
	}
	if err != nil { // also when the client does not end the stream in time
		code := codeOf(err)
		stream.CancelRead(code)
		stream.CancelWrite(code)
		return nil
	}
	message, err := cutQUIC(in)
	if err != nil {
		return err
	}
	write := func(reply []byte) error {
		_ = stream.SetWriteDeadline(time.Now().Add(s.timeouts.write))
		_, err := stream.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		return err
	}
	failed := false
	fail := func() {
		failed = true
		stream.CancelWrite(doqInternal)
	}
	err = s.exchange(message, from, count, held, write, fail)
	switch {
	case errors.Is(err, errNoReply):
		return err
	case err != nil:
		stream.CancelWrite(codeOf(err))
	case !failed:
		stream.Close()
	}
	return nil
}

func codeOf(err error) quic.StreamErrorCode {
	if errors.Is(err, errLoad) {
		return doqExcessiveLoad
	}
	return doqUnspecified
}

var errQUICMessage = errors.New("a stream must have one query with the ID 0, and no edns-tcp-keepalive")

// cutQUIC returns the message of a stream (RFC 9250 §4.2, §5.5.2).
func cutQUIC(in []byte) ([]byte, error) {
	message, rest, ok := cutMessage(in)
	if !ok || len(rest) > 0 || len(message) < wire.HeaderSize || message[0] != 0 || message[1] != 0 {
		return nil, errQUICMessage
	}
	var q query
	var name [dnsname.MaxWire + 1]byte
	q.readHeader(message)
	if (q.questions() == 0 || q.questions() == 1 && q.readQuestion(&name)) && q.readRecords() && q.edns.present &&
		q.edns.keepalive {
		return nil, errQUICMessage
	}
	return message, nil
}
