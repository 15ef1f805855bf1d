package dnsserver

import (
	"bytes"
	"errors"
	"sync"

	"github.com/nameplane/nameplane/internal/wire"
)

var (
	errNoReply = errors.New("this message gets no reply")
	errEnded   = errors.New("the server has ended")
)

// exchange answers one message of a transport with a request for each query: HTTPS and QUIC. held is what the request
// has of the server's memory. write sends a reply and does not keep the slice; fail is called when the answer cannot be
// completed. exchange returns when the message is answered.
func (s *Server) exchange(message []byte, from client, count *counters, held *share, write func([]byte) error,
	fail func(),
) error {
	if !s.requests.enter() {
		return errEnded
	}
	defer s.requests.leave()
	r := &requester{server: s, held: held, write: write, fail: fail, done: make(chan struct{})}
	reply, waits, err := s.tryAnswer(message, from, count, r)
	switch {
	case waits:
		<-r.done
	case err == nil && write(reply) != nil:
		count.drop(dropSend)
	}
	return err
}

// tryAnswer returns the reply to a message, or makes it wait for the forwarder or for Peers. The reply is a copy: a
// client that does not read it must not hold a buffer for the largest.
func (s *Server) tryAnswer(message []byte, from client, count *counters, to *requester) (
	_ []byte, waits bool, _ error,
) {
	w := s.workPool.Get().(*tcpWork)
	defer s.workPool.Put(w)
	buf := s.replyPool.Get().(*[writeBuffer]byte)
	defer s.replyPool.Put(buf)
	h := &w.handler
	h.settings, h.count = s.settings, count
	h.start()
	n := h.answer(message, buf[:wire.MaxSize], from)
	switch {
	case n == replyLater && h.tryAdmit():
		h.startPending(to)
		h.done(0)
		return nil, true, nil
	case n == replyLater:
		n = h.overloaded()
	case n == 0:
		h.done(0)
		return nil, false, errNoReply
	}
	h.done(1)
	reply, err := to.hold(buf[:n])
	return reply, false, err
}

// requester replies to a request that waits for the forwarder or for Peers.
type requester struct {
	server *Server
	held   *share
	write  func([]byte) error
	fail   func()
	done   chan struct{} // closed when the query no longer waits
}

// hold returns a copy of a reply. It fails when the client has too much memory already: clients need not read replies.
func (r *requester) hold(reply []byte) ([]byte, error) {
	if err := r.held.holds(len(reply)); err != nil {
		return nil, err
	}
	return bytes.Clone(reply), nil
}

func (r *requester) reply(compose func(out []byte) int) error {
	buf := r.server.replyPool.Get().(*[writeBuffer]byte)
	message, err := r.hold(buf[:compose(buf[:wire.MaxSize])])
	r.server.replyPool.Put(buf)
	if err != nil {
		r.fail()
		return err
	}
	return r.write(message)
}

func (r *requester) send(message []byte) error { return r.write(message) }

func (r *requester) abort() { r.fail() }

func (r *requester) release() { close(r.done) }

// gate keeps requests out once the server has ended.
type gate struct {
	running sync.WaitGroup

	mu     sync.Mutex // guards closed
	closed bool
}

// enter begins a request. It returns false when the gate is closed. The caller calls leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

func (g *gate) leave() { g.running.Done() }

// close keeps further requests out, and returns when no request is running.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
