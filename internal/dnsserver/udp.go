package dnsserver

import (
	"errors"
	"net"
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

	controlSize = 64 // room for one IP_PKTINFO or IPV6_PKTINFO
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
		if size == 0 {
			continue
		}
		u.conn.SetWriteDeadline(h.now.Add(sendPatience))
		if _, _, err := u.conn.WriteMsgUDPAddrPort(out[:size], replySource(control[:c]), from); err != nil {
			h.count.drop(dropSend)
		}
		h.done(1)
	}
}
