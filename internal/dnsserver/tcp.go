package dnsserver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/wire"
)

// TCPConfig limits what connections may take.
type TCPConfig struct {
	MaxConns     int // in all; when they are used up, the one that was idle longest makes room
	MaxPerClient int // for one IPv4 address or IPv6 /64; beyond it the newest is refused
}

const (
	lengthSize = 2 // in front of each message (RFC 1035 §4.2.2)

	// firstRead is what an idle connection keeps to read into: most queries, so they take one system call.
	firstRead = 128
	// startBuffer is what a busy connection has to read into. It grows only as octets arrive, so a client must send a
	// large message to make us hold room for one.
	startBuffer = 4 << 10
	// writeBuffer holds the replies to pipelined queries until they are sent together, and one more of any size.
	writeBuffer = 128 << 10

	maxPerConn = 64 // queries of one connection that wait for the forwarder or for Peers; it is not read beyond that

	acceptPause = 100 * time.Millisecond // after a failed accept: file descriptors may come free
)

// errDone says that a connection is to be closed for no fault of the network's.
var errDone = errors.New("done")

// tcpWork is what a connection needs from the first octet of a message on.
type tcpWork struct {
	handler handler
	in      []byte // received and not yet answered
	out     []byte // replies not yet sent; there is room for them only while whole messages are being answered
}

// frame appends to the replies the message of n octets that was written behind octet at of their memory.
func (w *tcpWork) frame(at, n int) {
	message := w.out[at+lengthSize : at+lengthSize+n : cap(w.out)]
	end := len(w.out)
	w.out = w.out[:end+lengthSize+n]
	copy(w.out[end+lengthSize:], message)
	binary.BigEndian.PutUint16(w.out[end:], uint16(n))
}

func newTCPWork() any { return &tcpWork{in: make([]byte, 0, startBuffer)} }

// conn is one connection.
type conn struct {
	net      *net.TCPConn
	server   *Server
	from     client
	count    *counters
	place    place // in the connTable
	first    [firstRead]byte
	forwards chan struct{}  // has an element for each query that waits for the forwarder or for Peers; nil without them
	waiters  sync.WaitGroup // of these queries

	writing sync.Mutex // held while replies are sent
}

// serveTCP accepts connections until the listener's deadline, and waits for them to end.
func (s *Server) serveTCP(ctx context.Context, l *net.TCPListener) error {
	var open sync.WaitGroup
	for {
		nc, err := l.AcceptTCP()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			s.cfg.Log.Warn("TCP connection not accepted", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		c := newConn(nc, s)
		if !c.admit() {
			nc.Close()
			continue
		}
		open.Go(c.serve)
	}
	l.Close()
	closing := time.AfterFunc(s.times.grace, s.conns.closeAll)
	open.Wait()
	closing.Stop()
	return nil
}

func newConn(nc *net.TCPConn, s *Server) *conn {
	c := &conn{net: nc, server: s}
	if s.cfg.Forward != nil || s.cfg.Peers != nil {
		c.forwards = make(chan struct{}, maxPerConn)
	}
	return c
}

// admit takes the connection in, if there is room for it.
func (c *conn) admit() bool {
	addr, ok := c.net.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	c.from = client{addr: addr.AddrPort().Addr().Unmap().WithZone(""), tcp: true}
	c.count = c.server.tcpCount[0]
	if c.from.addr.Is6() {
		c.count = c.server.tcpCount[1]
	}
	return c.server.conns.add(c)
}

// clientOf is the unit of MaxPerClient.
func clientOf(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return addr
	}
	p, _ := addr.Prefix(64)
	return p.Addr()
}

// serve reads messages and answers them in the order in which they came, until the client or a limit ends it. Those that
// must be forwarded are answered when that is done, and even after the client has said that it has no more to ask.
func (c *conn) serve() {
	defer c.server.conns.remove(c)
	defer c.net.Close()
	defer c.waiters.Wait()
	for {
		idle := c.server.conns.idle(c, c.server.times.idle)
		c.from.keepalive = uint16(min(idle/(100*time.Millisecond), 65535))
		n, err := c.net.Read(c.first[:])
		if n == 0 || err != nil {
			return
		}
		w := c.server.works.Get().(*tcpWork)
		w.handler.settings, w.handler.count = c.server.settings, c.count
		w.in = append(w.in[:0], c.first[:n]...)
		err = c.work(w)
		if cap(w.in) == startBuffer {
			c.server.works.Put(w)
		}
		if err != nil {
			return
		}
	}
}

// work answers what was received, and reads on until no message is left half read.
func (c *conn) work(w *tcpWork) error {
	started := time.Time{} // when the message that is not whole yet began
	for {
		n, err := c.answerAll(w)
		if err != nil {
			return err
		}
		if len(w.in) == 0 {
			return nil
		}
		if n > 0 || started.IsZero() {
			started = time.Now()
			c.server.conns.wait(c, started.Add(c.server.times.read))
		}
		if len(w.in) == cap(w.in) {
			w.in = append(make([]byte, 0, min(2*cap(w.in), lengthSize+wire.MaxSize)), w.in...)
		}
		n, err = c.net.Read(w.in[len(w.in):cap(w.in)])
		if err != nil {
			return err
		}
		w.in = w.in[:len(w.in)+n]
	}
}

// answerAll answers all whole messages, sends the replies, and keeps the rest in w.in. It tells how many there were.
func (c *conn) answerAll(w *tcpWork) (int, error) {
	message, rest, ok := cutMessage(w.in)
	if !ok {
		return 0, nil
	}
	if !c.server.conns.busy(c) {
		return 0, errDone
	}
	buf := c.server.replies.Get().(*[writeBuffer]byte)
	defer c.server.replies.Put(buf)
	w.out = buf[:0]
	w.handler.start()
	n := 0
	var end error
	for ok && end == nil {
		end = c.answer(w, message)
		n++
		message, rest, ok = cutMessage(rest)
	}
	w.in = w.in[:copy(w.in, rest)]
	err := c.flush(w)
	w.handler.done(n)
	return n, errors.Join(end, err)
}

// cutMessage takes the first message off b; false when it is not whole.
func cutMessage(b []byte) (message, rest []byte, ok bool) {
	if len(b) < lengthSize {
		return nil, b, false
	}
	size := lengthSize + int(binary.BigEndian.Uint16(b))
	if len(b) < size {
		return nil, b, false
	}
	return b[lengthSize:size], b[size:], true
}

// answer appends the reply to one message. Who sends what gets none is not a DNS client, and is not listened to further.
func (c *conn) answer(w *tcpWork, message []byte) error {
	if cap(w.out)-len(w.out) < lengthSize+wire.MaxSize {
		if err := c.flush(w); err != nil {
			return err
		}
	}
	at := len(w.out)
	n := w.handler.answer(message, w.out[at+lengthSize:cap(w.out)], c.from)
	switch n {
	case 0:
		return errDone
	case later:
		if err := c.wait(w, at); err != nil {
			return err
		}
	default:
		w.frame(at, n)
	}
	return nil
}

// flush sends the replies.
func (c *conn) flush(w *tcpWork) error {
	if len(w.out) == 0 {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.write(w.out)
	w.out = w.out[:0]
	if err != nil {
		c.count.drop(dropSend)
	}
	return err
}

// write sends octets; c.writing is held. A client that does not take them in time is cut off, so that the kernel lets go
// of them too, and so does everything that has more to send.
func (c *conn) write(b []byte) error {
	c.net.SetWriteDeadline(time.Now().Add(c.server.times.write))
	_, err := c.net.Write(b)
	if err != nil {
		c.cut()
	}
	return err
}
