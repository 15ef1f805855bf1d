package dnsserver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nameplane/nameplane/internal/wire"
)

// TCPConfig limits TCP connections.
type TCPConfig struct {
	MaxConns     int // maximum of all clients; beyond it, the connection that was idle longest is closed
	MaxPerClient int // maximum for one IPv4 address or IPv6 /64; beyond it, new connections are refused
}

// SendBuffer is the memory of the kernel for replies that a client does not read, in bytes; Linux takes twice as much.
// Without it, the kernel takes up to 4 MiB for one connection.
const SendBuffer = 32 << 10

const (
	lengthSize = 2 // size of the length before each message (RFC 1035 §4.2.2)

	// firstRead is the read buffer of an idle connection. Most queries fit, so they take one system call.
	firstRead = 128
	// startBuffer is the first read buffer of a busy connection. It grows only as bytes arrive, so a client must send a
	// large message to make us allocate room for one.
	startBuffer = 4 << 10
	// writeBuffer holds the replies to pipelined queries until they are sent together, and one more of any size.
	writeBuffer = 128 << 10

	// transferBuffer replaces SendBuffer for connections with a transfer, so that a distant secondary gets it fast: the
	// number of transfers has a limit.
	transferBuffer = 1 << 20
	// sendTime is how long the kernel keeps replies that a client does not read, also after the connection is closed.
	sendTime = 10 * time.Second

	// maxPerConn limits the queries of one connection that wait for the forwarder or for Peers. At the limit the server
	// stops reading the connection.
	maxPerConn = 64

	acceptPause = 100 * time.Millisecond // pause after a failed accept: file descriptors may come free
)

// errDone closes a connection without a network error.
var errDone = errors.New("done")

// tcpWork is the memory that a connection needs once the first byte of a message has arrived.
type tcpWork struct {
	handler handler
	in      []byte // received and not yet answered
	out     []byte // replies not yet sent; it has memory only while whole messages are being answered
}

// frame appends a message to the replies, with its length. The message of n bytes stands in the memory of w.out at
// offset at+lengthSize.
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
	stream   net.Conn // carries the messages: net, or TLS over it
	listener *tcpListener
	server   *Server
	from     client
	count    *counters
	state    connState // guarded by the mutex of the connTable
	firstBuf [firstRead]byte
	slots    chan struct{}  // one element for each query that waits for the forwarder or for Peers; nil without them
	waiters  sync.WaitGroup // one for each of these queries

	sending atomic.Int64 // when the write began that runs now, in nanoseconds of Unix time; 0: none does

	writing sync.Mutex // held while replies are sent; guards grown
	grown   bool       // the connection has transferBuffer
}

// serveTCP accepts connections until the listener's deadline, and waits for them to end.
func (s *Server) serveTCP(ctx context.Context, l *tcpListener) error {
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
		c := newConn(nc, l, s)
		if !c.admit() {
			nc.Close()
			continue
		}
		open.Go(c.serve)
	}
	l.Close()
	closing := time.AfterFunc(s.timeouts.grace, s.conns.closeAll)
	open.Wait()
	closing.Stop()
	return nil
}

func newConn(nc *net.TCPConn, l *tcpListener, s *Server) *conn {
	c := &conn{net: nc, stream: nc, listener: l, server: s}
	if s.cfg.Forward != nil || s.cfg.Peers != nil {
		c.slots = make(chan struct{}, maxPerConn)
	}
	return c
}

// admit adds the connection to the table of connections. It returns false when a limit is reached.
func (c *conn) admit() bool {
	addr, ok := c.net.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	c.from = client{addr: addr.AddrPort().Addr().Unmap().WithZone(""), tcp: true}
	c.count = c.listener.countOf(c.from.addr)
	return c.server.conns.add(c)
}

// clientOf returns the unit that MaxPerClient counts: the IPv4 address or the IPv6 /64.
func clientOf(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return addr
	}
	p, _ := addr.Prefix(64)
	return p.Addr()
}

// serve reads messages and answers them in the order of arrival, until the client or a limit ends the connection.
// Queries that must be forwarded are answered later, even after the client has closed its sending side.
func (c *conn) serve() {
	defer c.server.conns.remove(c)
	defer func() { c.stream.Close() }()
	defer c.waiters.Wait()
	if reason, err := c.open(); err != nil {
		c.count.drop(reason)
		c.server.cfg.Log.Debug("connection not opened", "client", c.from.addr, "error", err)
		return
	}
	for {
		idle := c.server.conns.idle(c, c.server.timeouts.idle)
		c.from.keepalive = uint16(min(idle/(100*time.Millisecond), 65535))
		n, err := c.stream.Read(c.firstBuf[:])
		if n == 0 || err != nil {
			return
		}
		w := c.server.workPool.Get().(*tcpWork)
		w.handler.settings, w.handler.count = c.server.settings, c.count
		w.in = append(w.in[:0], c.firstBuf[:n]...)
		err = c.work(w)
		if cap(w.in) == startBuffer {
			c.server.workPool.Put(w)
		}
		if err != nil {
			return
		}
	}
}

// work answers the received messages, and continues to read until no message is half read.
func (c *conn) work(w *tcpWork) error {
	started := time.Time{} // start of the message that is not complete yet
	held := share{from: c.server.messages, addr: c.from.addr}
	defer held.release()
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
			c.server.conns.wait(c, started.Add(c.server.timeouts.read))
		}
		if len(w.in) == cap(w.in) {
			size := min(2*cap(w.in), lengthSize+wire.MaxSize)
			if err := held.holds(size); err != nil {
				return err
			}
			w.in = append(make([]byte, 0, size), w.in...)
		}
		n, err = c.stream.Read(w.in[len(w.in):cap(w.in)])
		if err != nil {
			return err
		}
		w.in = w.in[:len(w.in)+n]
	}
}

// answerAll answers all complete messages, sends the replies, and keeps the remaining bytes in w.in. It returns the
// number of messages.
func (c *conn) answerAll(w *tcpWork) (int, error) {
	message, rest, ok := cutMessage(w.in)
	if !ok {
		return 0, nil
	}
	if !c.server.conns.busy(c) {
		return 0, errDone
	}
	buf := c.server.replyPool.Get().(*[writeBuffer]byte)
	defer c.server.replyPool.Put(buf)
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

// cutMessage returns the first message of b and the bytes after it. It returns false when the message is not
// complete.
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

// answer appends the reply to one message. A message that gets no reply did not come from a DNS client: answer
// returns errDone, which closes the connection.
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
	case replyLater:
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

// write sends b. Callers hold c.writing. A client that does not take b in time is disconnected, so that the kernel
// and all goroutines with more replies for it free their memory.
func (c *conn) write(b []byte) error {
	c.beginWrite()
	defer c.endWrite()
	_, err := c.stream.Write(b)
	if err != nil {
		c.abort()
	}
	c.net.SetWriteDeadline(time.Time{}) // TLS also writes while it reads
	return err
}

func (c *conn) beginWrite() {
	now := time.Now()
	c.net.SetWriteDeadline(now.Add(c.server.timeouts.write))
	c.server.conns.beginWrite(c, now)
}

func (c *conn) endWrite() { c.server.conns.endWrite(c) }
