package dnsserver

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// connTable keeps the limits of TCP.
//
// When all connections are used up, the one that was idle longest is closed for the new one, or else one that does not
// read its replies: refusing the new one would let whoever holds them keep everybody else out, and clients must expect an
// idle connection to go (RFC 7766 §6.2.3). To have sent half a message is to be idle: it would be the cheapest way to hold
// a connection. One client's own limit refuses its newest, so that it cannot use this to close other clients' connections.
type connTable struct {
	cfg TCPConfig

	mu      sync.Mutex // guards all below
	all     map[*conn]struct{}
	clients map[netip.Addr]int
	waiting list.List // connections without a whole message, the longest so first
	working list.List // the others, the longest so first
	until   time.Time // the last deadline there will be; zero while serving
}

// place is a connection's place in a connTable, guarded by its mu.
type place struct {
	waiting *list.Element // nil while busy
	working *list.Element // nil while not
	since   time.Time     // when it became busy
	evicted bool
	reading bool          // for the next message, or the rest of one
	held    int           // queries that wait for the forwarder
	patient time.Duration // how long it may be idle; 0 while it owes the rest of a message
}

// slowAfter is how long a connection may be busy before it must make room when all are used up. Answers take
// milliseconds; what takes longer is a client that does not read them.
const slowAfter = time.Second

func newConnTable(cfg TCPConfig) *connTable {
	return &connTable{cfg: cfg, all: map[*conn]struct{}{}, clients: map[netip.Addr]int{}}
}

func (t *connTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// add takes a connection in. It reports false when there is no room.
func (t *connTable) add(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	who := clientOf(c.from.addr)
	if t.clients[who] >= t.cfg.MaxPerClient {
		return false
	}
	if len(t.all) >= t.cfg.MaxConns && !t.evictLocked() {
		return false
	}
	t.all[c] = struct{}{}
	t.clients[who]++
	return true
}

// evictLocked closes the connection that was idle longest or, when none is, the slowest reader.
func (t *connTable) evictLocked() bool {
	e := t.waiting.Front()
	if e == nil {
		e = t.working.Front()
	}
	if e == nil {
		return false
	}
	c := e.Value.(*conn)
	if c.place.working != nil {
		if time.Since(c.place.since) < slowAfter {
			return false
		}
		c.net.SetLinger(0) // the kernel is to let go of the replies too
	}
	t.leaveLocked(c)
	c.place.evicted = true
	t.forgetLocked(c)
	c.net.Close()
	return true
}

// leaveLocked takes a connection off the list it is in.
func (t *connTable) leaveLocked(c *conn) {
	if c.place.waiting != nil {
		t.waiting.Remove(c.place.waiting)
	}
	if c.place.working != nil {
		t.working.Remove(c.place.working)
	}
	c.place.waiting, c.place.working = nil, nil
}

func (t *connTable) forgetLocked(c *conn) {
	if _, ok := t.all[c]; !ok {
		return
	}
	delete(t.all, c)
	who := clientOf(c.from.addr)
	if t.clients[who]--; t.clients[who] == 0 {
		delete(t.clients, who)
	}
}

// remove forgets a connection that ended.
func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked(c)
	t.forgetLocked(c)
}

// idle notes that a connection waits for its next message, and returns for how long it may: d, or less when most
// connections are in use.
func (t *connTable) idle(c *conn, d time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if 4*len(t.all) > 3*t.cfg.MaxConns {
		d /= 4
	}
	c.place.patient = d
	t.waitLocked(c, time.Now().Add(d))
	return d
}

// wait notes that a connection waits for the rest of a message. One that has waited since it was idle keeps its turn.
func (t *connTable) wait(c *conn, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.place.patient = 0
	t.waitLocked(c, until)
}

func (t *connTable) waitLocked(c *conn, until time.Time) {
	c.place.reading = true
	t.listLocked(c)
	t.deadlineLocked(c, until)
}

// listLocked puts a connection that reads among those that wait for messages, unless we owe it replies.
func (t *connTable) listLocked(c *conn) {
	if _, in := t.all[c]; in && c.place.held == 0 && c.place.waiting == nil {
		t.leaveLocked(c)
		c.place.waiting = t.waiting.PushBack(c)
	}
}

// hold notes that a query of a busy connection waits for the forwarder. The connection is busy until it is answered.
func (t *connTable) hold(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.place.held++
}

// release notes that such a query was answered. When it was the last, the connection is idle from now on.
func (t *connTable) release(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.place.held--
	if c.place.held > 0 || !c.place.reading {
		return
	}
	t.listLocked(c)
	if c.place.patient > 0 {
		t.deadlineLocked(c, time.Now().Add(c.place.patient))
	}
}

// busy notes that a connection has a message to answer. It reports false when the connection was closed meanwhile.
func (t *connTable) busy(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.place.evicted {
		return false
	}
	t.leaveLocked(c)
	c.place.reading = false
	c.place.working, c.place.since = t.working.PushBack(c), time.Now()
	return true
}

// deadlineLocked bounds the reads of a connection.
func (t *connTable) deadlineLocked(c *conn, at time.Time) {
	if !t.until.IsZero() && at.After(t.until) {
		at = t.until
	}
	c.net.SetReadDeadline(at)
}

// drain bounds the reads of all connections, present and future.
func (t *connTable) drain(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = until
	for c := range t.all {
		c.net.SetReadDeadline(until)
	}
}

// closeAll cuts off all connections.
func (t *connTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.all {
		c.net.Close()
	}
}
