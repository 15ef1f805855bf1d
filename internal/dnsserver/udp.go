package dnsserver

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/nameplane/nameplane/internal/wire"
)

const (
	// sendTimeout is how long to wait for a full send buffer. It empties at the speed of the network card; when it does
	// not, newer queries matter more.
	sendTimeout = 20 * time.Millisecond

	// socketBuffer is the buffer size requested from the kernel for each direction: 4,000 small queries, a few
	// milliseconds of work.
	socketBuffer = 4 << 20

	controlSize = 64 // one IP_PKTINFO or IPV6_PKTINFO, and one UDP_SEGMENT
)

// isClientPort reports whether a client can use this source port. Port 0 belongs to nobody. The other excluded ports
// are services that answer any message (echo, daytime, qotd, chargen, time): a forged query from one would start an
// endless exchange.
func isClientPort(port uint16) bool {
	if port >= 64 {
		return true
	}
	switch port {
	case 0, 7, 13, 17, 19, 37:
		return false
	}
	return true
}

// servePortable serves a socket one message at a time, until its read deadline. With a PROXY header, the reply goes to
// the proxy, and the client's address is used for everything else: permissions, rate limits and cookies.
func servePortable(u *udpSocket, h *handler) error {
	u.send = sendPortable
	in, out := make([]byte, wire.MaxSize), make([]byte, h.settings.udpSize)
	control := make([]byte, controlSize)
	for {
		n, c, _, from, err := u.conn.ReadMsgUDPAddrPort(in, control)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			if transient(err) {
				continue
			}
			return err
		}
		addr, message := from.Addr().Unmap(), in[:n]
		if u.proxies != nil {
			var ok bool
			if addr, message, ok = u.unwrap(message, from); !ok {
				h.count.drop(dropProxy)
				continue
			}
		} else if !isClientPort(from.Port()) {
			h.count.drop(dropPort)
			continue
		}
		h.start()
		size := h.answer(message, out, client{addr: addr})
		source := replySource(control[:c])
		if size == replyLater {
			size = h.waitUDP(u, source, from)
		}
		if size == 0 {
			h.done(0)
			continue
		}
		if err := sendPortable(u, out[:size], source, from); err != nil {
			h.count.drop(dropSend)
		}
		h.done(1)
	}
}

// sendFunc sends a message from a socket. source is the control message that sets the source address of the reply.
type sendFunc func(u *udpSocket, message, source []byte, to netip.AddrPort) error

// sendPortable tries three times. The deadline belongs to the socket, and on a busy machine it can pass before the
// first attempt.
func sendPortable(u *udpSocket, message, source []byte, to netip.AddrPort) error {
	var err error
	for range 3 {
		u.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
		if _, _, err = u.conn.WriteMsgUDPAddrPort(message, source, to); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return err
}

// datagram replies to a client that asked over UDP.
type datagram struct {
	socket *udpSocket
	source []byte // control message that sets the source address to the one the client asked; nil for any
	to     netip.AddrPort
	size   int // size of the largest reply
}

// waitUDP makes the query that h has read wait for the forwarder or for Peers, and returns 0. When too many queries
// wait already, it writes an error reply and returns its length.
func (h *handler) waitUDP(u *udpSocket, source []byte, to netip.AddrPort) int {
	if !h.tryAdmit() {
		return h.overloaded()
	}
	h.startPending(&datagram{u, bytes.Clone(source), to, h.settings.udpSize})
	return 0
}

func (d *datagram) reply(compose func(out []byte) int) error {
	out := make([]byte, d.size)
	return d.send(out[:compose(out)])
}

func (d *datagram) send(message []byte) error {
	return d.socket.send(d.socket, message, d.source, d.to)
}

func (d *datagram) abort() {}

func (d *datagram) release() {}
