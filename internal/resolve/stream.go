package resolve

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// maxPipelined is the number of queries that wait on one connection before another one is opened. Servers have
	// limits too, often about a hundred.
	maxPipelined = 64
	// idleTime is how long a connection is kept after its last query. Servers keep idle connections for about as long.
	idleTime = 10 * time.Second
	// dialTime limits a handshake. It has its own limit because several callers may wait for the same handshake.
	dialTime = 2 * time.Second
)

var (
	errClosed = errors.New("the connection is closed")
	errFull   = errors.New("the connection has no room")
)

// stream is a TCP or TLS connection. Queries are pipelined: they do not wait for earlier replies (RFC 7766 §6.2.1.1).
type stream struct {
	client  *Client
	server  Server
	users   int           // guarded by the client's mu
	ready   chan struct{} // closed when conn or err is set
	writing sync.Mutex    // held while a message is written

	mu      sync.Mutex // guards the following
	conn    net.Conn
	err     error
	waiting map[uint16]*waiter
	replies int // number of messages received
	matched int // number of messages that a waiter matched
}

// waiter is a query that waits for its reply.
type waiter struct {
	query []byte
	done  chan struct{} // closed when reply or err is set
	reply *dns.Msg
	size  int // bytes of the reply
	err   error
	wrong error // ErrQuestion: its ID with another question; ErrID: its question with another ID
}

// exchangeStream sends the query over an open connection, or opens one.
func (c *Client) exchangeStream(ctx context.Context, server Server, wire []byte) (*dns.Msg, error) {
	for {
		s := c.acquire(server)
		before, _ := s.counts()
		reply, err := s.exchange(ctx, wire)
		c.release(s)
		// A server may close connections at any time. We may notice only now that it closed an idle one, and some servers
		// close after each reply, whatever other queries wait (RFC 7766 §6.2.4). So retry on another connection, unless
		// this one never carried a matching reply. Each iteration uses up a connection that worked, so the loop ends.
		_, matched := s.counts()
		if err == nil || before == 0 && matched == 0 || ctx.Err() != nil || errors.Is(err, errMalformed) {
			return reply, err
		}
		c.remove(s)
	}
}

// acquire returns a connection that has room for a query, or starts a new one.
func (c *Client) acquire(server Server) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams[server] {
		if s.users < maxPipelined {
			s.users++
			return s
		}
	}
	s := &stream{client: c, server: server, users: 1, waiting: map[uint16]*waiter{},
		ready: make(chan struct{})}
	if c.streams == nil {
		c.streams = map[Server][]*stream{}
	}
	c.streams[server] = append(c.streams[server], s)
	go s.run()
	return s
}

func (c *Client) release(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
}

// remove takes a connection out of the pool, so that no further query uses it.
func (c *Client) remove(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(c.streams[s.server]), func(other *stream) bool { return other == s })
	if c.streams[s.server] = left; len(left) == 0 {
		delete(c.streams, s.server)
	}
}

// CloseIdle closes the connections that have no waiting queries. The others close idleTime after their last query.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	var idle []*stream
	for _, all := range c.streams {
		for _, s := range all {
			if s.users == 0 {
				idle = append(idle, s)
			}
		}
	}
	c.mu.Unlock()
	for _, s := range idle {
		s.fail(errClosed)
	}
}

// run opens the connection and reads from it until it fails or is closed.
func (s *stream) run() {
	conn, err := s.open()
	if err != nil {
		s.fail(err)
		close(s.ready)
		return
	}
	s.mu.Lock()
	s.conn, err = conn, s.err // fail may have run while the connection was being opened
	s.mu.Unlock()
	close(s.ready)
	defer conn.Close()
	for err == nil {
		err = s.read(conn)
	}
	s.fail(err)
}

// open connects to the server. It has its own timeout, because several callers may wait for the connection.
func (s *stream) open() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	conn, err := s.client.dial(ctx, "tcp", s.server)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(idleTime)) // all callers may have given up in the meantime
	if s.server.Transport != TLS {
		return conn, nil
	}
	secure := tls.Client(conn, s.client.tlsConfig(s.server))
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

func (c *Client) tlsConfig(server Server) *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions == nil {
		c.sessions = tls.NewLRUClientSessionCache(0)
	}
	name := server.Name
	if name == "" {
		name = server.Addr.Addr().WithZone("").String() // the certificate must have the address as a name
	}
	return &tls.Config{ServerName: name, RootCAs: c.Roots, MinVersion: tls.VersionTLS12, ClientSessionCache: c.sessions,
		NextProtos: []string{"dot"}}
}

// read reads one message and passes it to the query that waits for it.
func (s *stream) read(conn net.Conn) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	wire := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, wire); err != nil {
		return err
	}
	if len(wire) < headerSize {
		return errMalformed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies++
	id := binary.BigEndian.Uint16(wire)
	w := s.waiting[id]
	if w == nil {
		s.wrongIDLocked(wire)
		return nil // its caller gave up
	}
	if w.wrong = Match(w.query, wire); w.wrong != nil {
		return nil
	}
	delete(s.waiting, id)
	s.matched++
	w.size = len(wire)
	w.reply, w.err = unpack(wire)
	close(w.done)
	return nil
}

// wrongIDLocked sets ErrID in the waiters for the same question: a reply arrived with another ID. The caller holds
// mu.
func (s *stream) wrongIDLocked(wire []byte) {
	for id, w := range s.waiting {
		renamed := binary.BigEndian.AppendUint16(nil, id)
		if Match(w.query, append(renamed, wire[2:]...)) == nil {
			w.wrong = ErrID
		}
	}
}

// fail closes the connection and passes the error to all waiters.
func (s *stream) fail(err error) {
	s.client.remove(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	if s.conn != nil {
		s.conn.Close()
	}
	for _, w := range s.waiting {
		w.err = err
		close(w.done)
	}
	s.waiting = nil
}

// counts returns the number of messages received and how many of them a waiter matched.
func (s *stream) counts() (replies, matched int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replies, s.matched
}

// exchange sends a query over the connection and blocks until its reply arrives.
func (s *stream) exchange(ctx context.Context, wire []byte) (*dns.Msg, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w, before, err := s.register(wire)
	if err != nil {
		return nil, err
	}
	if err := s.write(ctx, w.query); err != nil {
		s.fail(err)
		return nil, err
	}
	select {
	case <-w.done:
		NoteSize(ctx, w.size)
		return w.reply, w.err
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), s.forget(w, before, ctx.Err()))
	}
}

// register gives the query an ID that is unique on this connection. It also returns the number of messages received
// so far.
func (s *stream) register(wire []byte) (*waiter, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, 0, s.err
	}
	id := randomID()
	for range maxPipelined {
		if s.waiting[id] == nil {
			break
		}
		id++
	}
	if s.waiting[id] != nil {
		return nil, 0, errFull
	}
	w := &waiter{query: slices.Clone(wire), done: make(chan struct{})}
	binary.BigEndian.PutUint16(w.query, id)
	s.waiting[id] = w
	return w, s.replies, nil
}

// forget removes a waiter whose caller gave up. It returns what arrived instead of the reply, if anything. A deadline
// without a single message since the query may mean that the peer has vanished. The connection is then not used for
// further queries.
func (s *stream) forget(w *waiter, before int, why error) error {
	s.mu.Lock()
	id := binary.BigEndian.Uint16(w.query)
	if s.waiting[id] == w {
		delete(s.waiting, id)
	}
	silent := s.replies == before && errors.Is(why, context.DeadlineExceeded)
	wrong := w.wrong
	s.mu.Unlock()
	if silent {
		s.client.remove(s)
	}
	return wrong
}

// write sends a message with its length. It also moves the read deadline, so that idleTime counts from the last
// query.
func (s *stream) write(ctx context.Context, wire []byte) error {
	framed := append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(wire)), uint16(len(wire))), wire...)
	s.writing.Lock()
	defer s.writing.Unlock()
	if ctx.Err() != nil {
		return nil // nothing was written, so the connection is still usable
	}
	deadline, _ := ctx.Deadline()
	s.conn.SetWriteDeadline(deadline)
	s.conn.SetReadDeadline(time.Now().Add(idleTime))
	_, err := s.conn.Write(framed)
	return err
}
