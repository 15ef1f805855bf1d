package dnsserver

import (
	"container/list"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// connTable enforces the limits on TCP connections.
//
// At the limit of all connections, it closes the one that was idle longest to admit a new one. When none is idle, it
// closes one whose client does not read its replies. Refusing the new connection instead would let the clients that
// hold all connections lock out the others. Clients must expect an idle connection to be closed (RFC 7766 §6.2.3). A
// connection with half a message counts as idle: otherwise half a message would be the cheapest method to hold a
// connection. At the limit of one client, its newest connection is refused, so that it cannot close connections of
// other clients.
type connTable struct {
	cfg     TCPConfig
	writers atomic.Int32 // number of connections that are sending replies

	mu            sync.Mutex // guards all fields below
	all           map[*conn]struct{}
	clients       map[netip.Addr]int
	idleConns     list.List // connections without a complete message, the longest idle first
	busyConns     list.List // the other connections, the longest busy first
	drainDeadline time.Time // deadline of all reads after shutdown began; zero while serving
}

// connState is the state of a connection in a connTable, guarded by its mu.
type connState struct {
	idleElem    *list.Element // nil while busy
	busyElem    *list.Element // nil while idle
	busySince   time.Time     // when it became busy
	evicted     bool
	reading     bool          // reading the next message, or the rest of one
	pending     int           // number of queries that wait for the forwarder
	idleTimeout time.Duration // how long it may be idle; 0 while half a message has arrived
}

// slowAfter is how long a connection may be busy before it can be closed to admit another. Answers take milliseconds,
// so a longer time means that the client does not read them.
const slowAfter = time.Second

// maxWriters limits the connections that are sending replies. Each of them holds a buffer of writeBuffer bytes, most
// for some microseconds. Beyond the limit, the one that is sending longest is closed: its client does not read.
const maxWriters = 512

// beginWrite records that a connection is sending replies.
func (t *connTable) beginWrite(c *conn, now time.Time) {
	c.sending.Store(now.UnixNano())
	if t.writers.Add(1) > maxWriters {
		t.closeSlowest(c)
	}
}

// endWrite records that a connection has sent its replies.
func (t *connTable) endWrite(c *conn) {
	c.sending.Store(0)
	t.writers.Add(-1)
}

// closeSlowest closes the connection, other than c, that is sending replies longest. It reads all connections, so that
// ordinary writes need no lock.
func (t *connTable) closeSlowest(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var slowest *conn
	since := int64(math.MaxInt64)
	for other := range t.all {
		if began := other.sending.Load(); other != c && began > 0 && began < since {
			slowest, since = other, began
		}
	}
	if slowest != nil {
		t.resetLocked(slowest)
	}
}

// resetLocked closes a connection and makes the kernel discard its replies too. Callers hold mu.
func (t *connTable) resetLocked(c *conn) {
	c.net.SetLinger(0)
	t.closeLocked(c)
}

// closeLocked removes a connection and closes it. Callers hold mu.
func (t *connTable) closeLocked(c *conn) {
	t.unlistLocked(c)
	c.state.evicted = true
	t.deleteLocked(c)
	c.net.Close()
}

func newConnTable(cfg TCPConfig) *connTable {
	return &connTable{cfg: cfg, all: map[*conn]struct{}{}, clients: map[netip.Addr]int{}}
}

func (t *connTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// add adds a connection. It returns false when a limit is reached.
func (t *connTable) add(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	client := clientOf(c.from.addr)
	if t.clients[client] >= t.cfg.MaxPerClient && !c.listener.isProxied() {
		return false
	}
	if len(t.all) >= t.cfg.MaxConns && !t.evictLocked() {
		return false
	}
	t.all[c] = struct{}{}
	t.clients[client]++
	return true
}

// setClient sets the address of the client of a connection that was added with the address of a proxy. It returns false
// when that client has as many connections as it may have.
func (t *connTable) setClient(c *conn, addr netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, in := t.all[c]; !in || t.clients[clientOf(addr)] >= t.cfg.MaxPerClient {
		return false
	}
	t.deleteLocked(c)
	c.from.addr = addr
	t.all[c] = struct{}{}
	t.clients[clientOf(addr)]++
	return true
}

// evictLocked closes the connection that was idle longest or, when none is idle, the slowest reader. Callers hold mu.
func (t *connTable) evictLocked() bool {
	e := t.idleConns.Front()
	if e == nil {
		e = t.busyConns.Front()
	}
	if e == nil {
		return false
	}
	c := e.Value.(*conn)
	if c.state.busyElem == nil {
		t.closeLocked(c)
		return true
	}
	if time.Since(c.state.busySince) < slowAfter {
		return false
	}
	t.resetLocked(c)
	return true
}

// unlistLocked removes a connection from the list that it is in. Callers hold mu.
func (t *connTable) unlistLocked(c *conn) {
	if c.state.idleElem != nil {
		t.idleConns.Remove(c.state.idleElem)
	}
	if c.state.busyElem != nil {
		t.busyConns.Remove(c.state.busyElem)
	}
	c.state.idleElem, c.state.busyElem = nil, nil
}

func (t *connTable) deleteLocked(c *conn) {
	if _, ok := t.all[c]; !ok {
		return
	}
	delete(t.all, c)
	client := clientOf(c.from.addr)
	if t.clients[client]--; t.clients[client] == 0 {
		delete(t.clients, client)
	}
}

// remove removes a connection that ended.
func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unlistLocked(c)
	t.deleteLocked(c)
}

// idle records that a connection waits for its next message. It returns how long the connection may wait: d, or a
// quarter of it when more than three quarters of the connections are in use.
func (t *connTable) idle(c *conn, d time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if 4*len(t.all) > 3*t.cfg.MaxConns {
		d /= 4
	}
	c.state.idleTimeout = d
	t.waitLocked(c, time.Now().Add(d))
	return d
}

// wait records that a connection waits for the rest of a message. A connection that was idle before keeps its
// position in the list.
func (t *connTable) wait(c *conn, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.state.idleTimeout = 0
	t.waitLocked(c, until)
}

func (t *connTable) waitLocked(c *conn, until time.Time) {
	c.state.reading = true
	t.listLocked(c)
	t.deadlineLocked(c, until)
}

// listLocked puts a connection that reads into the list of idle ones, unless it has unanswered queries. Callers hold
// mu.
func (t *connTable) listLocked(c *conn) {
	if _, in := t.all[c]; in && c.state.pending == 0 && c.state.idleElem == nil {
		t.unlistLocked(c)
		c.state.idleElem = t.idleConns.PushBack(c)
	}
}

// addPending records that a query of a busy connection waits for the forwarder. The connection stays busy until the
// answer.
func (t *connTable) addPending(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.state.pending++
}

// donePending records that a waiting query was answered. After the last one the connection is idle.
func (t *connTable) donePending(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.state.pending--
	if c.state.pending > 0 || !c.state.reading {
		return
	}
	t.listLocked(c)
	if c.state.idleTimeout > 0 {
		t.deadlineLocked(c, time.Now().Add(c.state.idleTimeout))
	}
}

// busy records that a connection has a message to answer. It returns false when the connection was evicted meanwhile.
func (t *connTable) busy(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.state.evicted {
		return false
	}
	t.unlistLocked(c)
	c.state.reading = false
	c.state.busyElem, c.state.busySince = t.busyConns.PushBack(c), time.Now()
	return true
}

// deadlineLocked bounds the reads of a connection. Callers hold mu.
func (t *connTable) deadlineLocked(c *conn, at time.Time) {
	if !t.drainDeadline.IsZero() && at.After(t.drainDeadline) {
		at = t.drainDeadline
	}
	c.net.SetReadDeadline(at)
}

// drain bounds the reads of all connections, present and future.
func (t *connTable) drain(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drainDeadline = until
	for c := range t.all {
		c.net.SetReadDeadline(until)
	}
}

// closeAll closes all connections.
func (t *connTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.all {
		c.net.Close()
	}
}
