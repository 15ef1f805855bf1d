package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// askChanges makes the client of ask send changes too, between its questions. A separate process would need CPU time
// of the client's core to wake up a thousand times per second. Queries would then drop for a reason that is not the
// server's.
type askChanges struct {
	Addr, Token string // without Addr, the client answers itself (the control)
	Zone        string // id of the zone
	Sets        []recordset
	First       int // number of the first change, so that every one changes something
	Rate, Batch int // changes per second, and per request
}

const (
	changeConns  = 64                     // enough for the rate when a request takes 60 ms
	pollInterval = 500 * time.Microsecond // how often the client checks whether a change is due or answered
)

// changer sends requests that were written before the start, on connections that stay open.
type changer struct {
	requests [][]byte
	next     int
	every    time.Duration // time between two requests
	batch    int
	conns    []*changeConn
	done     changesDone
	taken    []time.Duration
	start    time.Time
	lastPoll time.Duration // time of the last poll, since start
}

// changesDone is the result of the changes.
type changesDone struct {
	sourceResult
	Late int // requests that found no free connection when they were due, and were sent later
}

// changeConn is a connection with at most one request in flight.
type changeConn struct {
	fd   int
	sink *echo // answers in the control; nil: a server answers
	busy bool
	sent time.Time
	rest []byte // part of the request that the kernel has not taken yet
	in   []byte // received part of the reply
}

// newChanger writes all requests of a run.
func newChanger(s askChanges, length time.Duration) (*changer, error) {
	c := &changer{every: time.Duration(s.Batch) * time.Second / time.Duration(s.Rate), batch: s.Batch}
	n := int(length/c.every) + 1
	for i := range n {
		c.requests = append(c.requests, s.request(s.First+i*s.Batch))
	}
	c.taken = make([]time.Duration, 0, n)
	for range changeConns {
		conn, err := s.dial()
		if err != nil {
			c.close()
			return nil, err
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

// request returns the request of the changes beginning with number first.
func (s askChanges) request(first int) []byte {
	method, path := "PUT", "/v2/zones/"+s.Zone+"/recordsets/"+s.Sets[first%len(s.Sets)].ID
	body := []byte(`{"records":["` + newAddress(first) + `"]}`)
	if s.Batch > 1 {
		method, path = "POST", "/v2/zones/"+s.Zone+"/changes"
		body, _ = json.Marshal(batch(s.Sets, first, s.Batch)) // strings can always be marshalled
	}
	return append([]byte(method+" "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Auth-Token: "+s.Token+
		"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
}

// dial opens a connection to the server, or to an echo in the control. It does not use package net, so that the client
// can poll the socket between its questions.
func (s askChanges) dial() (*changeConn, error) {
	conn := &changeConn{in: make([]byte, 0, 1<<17)}
	if s.Addr == "" {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, os.NewSyscallError("socketpair", err)
		}
		conn.fd, conn.sink = ends[0], newEcho(ends[1], s.Batch)
		return conn, nil
	}
	addr, err := netip.ParseAddrPort(s.Addr)
	if err != nil {
		return nil, err
	}
	if conn.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	err = errors.Join(unix.Connect(conn.fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}),
		unix.SetsockoptInt(conn.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	if err != nil {
		unix.Close(conn.fd)
	}
	return conn, err
}

// close closes connections with requests in flight too. The server may finish them; nobody counts them.
func (c *changer) close() {
	for _, conn := range c.conns {
		unix.Close(conn.fd)
		conn.sink.close()
	}
}

// poll reads replies, and sends the requests that are due when more is true. It does nothing until pollInterval after
// the last call. It reports whether any request is in flight.
func (c *changer) poll(passed time.Duration, more bool) (open bool, err error) {
	if c.start.IsZero() {
		c.start = time.Now().Add(-passed)
	}
	if passed-c.lastPoll < pollInterval {
		return true, nil
	}
	c.lastPoll = passed
	before := threadTime()
	for _, conn := range c.conns {
		if err := c.use(conn, passed, more); err != nil {
			return false, err
		}
		open = open || conn.busy
	}
	if more && time.Duration(c.next)*c.every <= passed && c.next < len(c.requests) {
		c.done.Late++
	}
	c.done.Each += (threadTime() - before).Seconds() // a sum, until result divides it
	return open, nil
}

// use continues the request of a connection, or sends the next one that is due.
func (c *changer) use(conn *changeConn, passed time.Duration, more bool) error {
	if conn.busy {
		reply, err := conn.receive()
		switch {
		case err != nil:
			return err
		case reply == nil:
			return nil
		case !bytes.HasPrefix(reply, []byte("HTTP/1.1 2")):
			if c.done.Errors++; c.done.First == "" {
				c.done.First = string(reply)
			}
		default:
			c.taken = append(c.taken, time.Since(conn.sent))
		}
		conn.busy, conn.in = false, conn.in[:0]
	}
	if !more || c.next == len(c.requests) || time.Duration(c.next)*c.every > passed {
		return nil
	}
	conn.rest, conn.busy, conn.sent = c.requests[c.next], true, time.Now()
	c.next++
	return conn.send()
}

// result returns the changes until the last request was sent.
func (c *changer) result() changesDone {
	d := c.done
	d.changes = summary(c.taken, nil, time.Duration(max(1, c.next))*c.every)
	d.Errors, d.First = c.done.Errors, c.done.First
	d.PerSec *= float64(c.batch)
	d.Each *= 1000 / float64(max(1, c.next*c.batch))
	return d
}

// send never blocks: a server that does not read must not stop the queries, which the same thread sends.
func (conn *changeConn) send() error {
	for len(conn.rest) > 0 {
		n, err := unix.SendmsgN(conn.fd, conn.rest, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("send", err)
		}
		conn.rest = conn.rest[max(0, n):]
	}
	return conn.sink.answer()
}

// receive returns the reply when it is complete.
func (conn *changeConn) receive() ([]byte, error) {
	if len(conn.rest) > 0 {
		return nil, conn.send()
	}
	n, _, err := unix.Recvfrom(conn.fd, conn.in[len(conn.in):cap(conn.in)], unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil, nil
	case err != nil:
		return nil, os.NewSyscallError("recv", err)
	case n == 0:
		return nil, errors.New("a connection for changes was closed")
	}
	conn.in = conn.in[:len(conn.in)+n]
	return wholeReply(conn.in)
}

// wholeReply returns b when it is a complete reply, and nil when more must be read.
func wholeReply(b []byte) ([]byte, error) {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		return nil, nil
	}
	_, length, ok := bytes.Cut(head, []byte("\r\nContent-Length: "))
	if !ok {
		return nil, fmt.Errorf("a reply has no length: %s", head)
	}
	length, _, _ = bytes.Cut(length, []byte("\r\n"))
	n, err := strconv.Atoi(string(length))
	if err != nil || len(body) < n {
		return nil, err
	}
	return b, nil
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0 // it cannot fail with these arguments
	}
	return time.Duration(t.Nano())
}

// echo is the other end of a connection in the control. It confirms requests with replies as long as those of a
// server.
type echo struct {
	fd    int
	in    []byte
	reply []byte
}

// newEcho returns an echo whose replies have the length of the server's: 640 bytes per change.
func newEcho(fd, batch int) *echo {
	body := bytes.Repeat([]byte{' '}, 640*batch)
	return &echo{fd: fd, in: make([]byte, 1<<17),
		reply: append([]byte("HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)}
}

// answer answers a request that was just sent.
func (e *echo) answer() error {
	if e == nil {
		return nil
	}
	if _, _, err := unix.Recvfrom(e.fd, e.in, unix.MSG_DONTWAIT); err != nil {
		return os.NewSyscallError("recv", err)
	}
	_, err := unix.Write(e.fd, e.reply)
	return os.NewSyscallError("write", err)
}

// close does nothing without an echo, which only the control has.
func (e *echo) close() {
	if e != nil {
		unix.Close(e.fd)
	}
}
