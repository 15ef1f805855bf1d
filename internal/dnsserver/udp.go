package dnsserver

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

const (
	// readSize is the largest query read over UDP. Queries are far smaller; of a larger one the rest is cut off, and
	// what is then broken gets FORMERR.
	readSize = 2048

	// sendPatience is how long a full send buffer is waited for. It empties at the speed of the network card; when it
	// does not, newer queries matter more.
	sendPatience = 20 * time.Millisecond

	// socketBuffer is asked of the kernel for each direction: 4,000 small queries, a few milliseconds of work.
	socketBuffer = 4 << 20

	controlSize = 64 // room for one IP_PKTINFO or IPV6_PKTINFO, and one UDP_SEGMENT
)

// answersPort reports whether a client may have that port. On 0 there is nobody; on the others are services that answer
// anything at all (echo, daytime, qotd, chargen, time), and with which a forged query would start an endless exchange.
func answersPort(port uint16) bool {
	if port >= 64 {
		return true
	}
	switch port {
	case 0, 7, 13, 17, 19, 37:
		return false
	}
	return true
}

// servePortable serves a socket one message at a time, until its read deadline.
func servePortable(u *udpSocket, h *handler) error {
	u.send = sendPortable
	in, out := make([]byte, readSize), make([]byte, h.settings.udpSize)
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
		if !answersPort(from.Port()) {
			h.count.drop(dropPort)
			continue
		}
		h.start()
		size := h.answer(in[:n], out, client{addr: from.Addr().Unmap()})
		source := replySource(control[:c])
		if size == later {
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

// sendFunc sends a message from a socket, to and from the addresses of a query's.
type sendFunc func(u *udpSocket, message, source []byte, to netip.AddrPort) error

// sendPortable tries more than once: a deadline is the socket's, and on a busy machine it can pass before the message is
// so much as tried.
func sendPortable(u *udpSocket, message, source []byte, to netip.AddrPort) error {
	var err error
	for range 3 {
		u.conn.SetWriteDeadline(time.Now().Add(sendPatience))
		if _, _, err = u.conn.WriteMsgUDPAddrPort(message, source, to); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return err
}

// datagram is the way back to a client that asked over UDP.
type datagram struct {
	socket *udpSocket
	source []byte // control message that has the reply leave from the address asked; nil for any
	to     netip.AddrPort
	size   int // of the largest reply
}

// waitUDP lets the query that h has read wait for the forwarder or for Peers, and returns 0. When too many wait already, it returns the
// length of a reply that says so.
func (h *handler) waitUDP(u *udpSocket, source []byte, to netip.AddrPort) int {
	if !h.mayWait() {
		return h.overloaded()
	}
	h.await(&datagram{u, bytes.Clone(source), to, h.settings.udpSize})
	return 0
}

func (d *datagram) reply(compose func(out []byte) int) error {
	out := make([]byte, d.size)
	return d.send(out[:compose(out)])
}

func (d *datagram) send(message []byte) error {
	return d.socket.send(d.socket, message, d.source, d.to)
}

func (d *datagram) cut() {}

func (d *datagram) release() {}
