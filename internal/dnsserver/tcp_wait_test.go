package dnsserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// TestForwardOutOfOrder checks that a waiting query does not delay later ones on its connection (RFC 7766 §6.2.1.1).
func TestForwardOutOfOrder(t *testing.T) {
	f := holding(t)
	addrs, _ := start(t, Config{Forward: f})
	c := dialTCP(t, addrs[0])
	var all []byte
	const n = 20
	for i := range n {
		all = append(all, framed(packed(t, identified(i, desired("www.example.net.", dns.TypeA))))...)
		all = append(all, framed(packed(t, identified(n+i, desired("www.example.org.", dns.TypeA))))...)
	}
	c.Write(all)
	for i := range n {
		if m := readFramed(t, c); int(m.Id) != n+i || len(m.Answer) != 1 {
			t.Fatalf("reply %d of ours is %v", i, m)
		}
	}
	close(f.hold)
	seen := map[uint16]bool{}
	for range n {
		m := readFramed(t, c)
		if seen[m.Id] || m.Id >= n || len(m.Answer) != 2 {
			t.Fatalf("reply is %v", m)
		}
		seen[m.Id] = true
	}
}

// TestForwardPerConn checks that a connection with maxPerConn waiting queries is read again when one is answered. It
// gets all replies, also the SERVFAIL for queries over the limit.
func TestForwardPerConn(t *testing.T) {
	f := holding(t)
	s := listening(t, Config{Forward: f})
	s.settings.pending.perClient = maxPerConn + 1
	run(t, s)
	addr := s.Addrs()[0].String()
	c := dialTCP(t, addr)
	var all []byte
	const n = 2 * maxPerConn
	for i := range n {
		all = append(all, framed(packed(t, identified(2*i, desired("www.example.org.", dns.TypeA))))...)
		all = append(all, framed(packed(t, identified(2*i+1, desired("www.example.net.", dns.TypeA))))...)
	}
	go c.Write(all)
	for i := range maxPerConn + 1 { // replies that were ready before the wait are not held back by it
		if m := readFramed(t, c); int(m.Id) != 2*i {
			t.Fatalf("reply %d is %v", i, m)
		}
	}
	f.began(t, maxPerConn)
	other := dialTCP(t, addr) // same client: one more may wait, the next may not
	writeFramed(t, other, packed(t, desired("www.example.net.", dns.TypeA)))
	f.began(t, 1)
	writeFramed(t, other, packed(t, identified(9, desired("www.example.net.", dns.TypeA))))
	if m := readFramed(t, other); m.Rcode != dns.RcodeServerFailure || m.Id != 9 {
		t.Errorf("one query more than a client may have got %v", m)
	}
	if n := f.exchanges(); n != maxPerConn+1 {
		t.Errorf("%d queries wait, want %d of the first connection and 1 of the other", n, maxPerConn)
	}
	close(f.hold)
	for range 2*n - maxPerConn - 1 {
		if m := readFramed(t, c); len(m.Answer) == 0 {
			t.Fatalf("reply is %v", m)
		}
	}
	if m := readFramed(t, other); len(m.Answer) != 2 {
		t.Errorf("reply is %v", m)
	}
}

// TestFrame checks that a reply moves to the front of the buffer when the replies before it were sent meanwhile.
func TestFrame(t *testing.T) {
	for _, sent := range []bool{false, true} {
		w := &tcpWork{out: make([]byte, 100)[:10]}
		at := len(w.out)
		copy(w.out[at+lengthSize:cap(w.out)], "message")
		want := "\x00\x07message"
		if sent {
			w.out = w.out[:0]
		} else {
			want = string(w.out) + want
		}
		if w.frame(at, len("message")); string(w.out) != want {
			t.Errorf("after others were sent: %v: %q, want %q", sent, w.out, want)
		}
	}
}

// TestForwardNoRoomOnConn checks that a query over the limit gets SERVFAIL in the order of the queries.
func TestForwardNoRoomOnConn(t *testing.T) {
	f := holding(t)
	s := listening(t, Config{Forward: f})
	s.settings.pending.maxQueries = 1
	run(t, s)
	addr := s.Addrs()[0].String()
	first := dialTCP(t, addr)
	writeFramed(t, first, packed(t, desired("www.example.net.", dns.TypeA)))
	f.began(t, 1)
	c := dialTCP(t, addr)
	names := slices.Repeat([]string{"www.example.net."}, 2*maxPerConn) // more than one connection may have waiting
	names[0], names[len(names)-1] = "www.example.org.", "www.example.org."
	var all []byte
	for i, name := range names {
		all = append(all, framed(packed(t, identified(i, desired(name, dns.TypeA))))...)
	}
	c.Write(all)
	for i, name := range names {
		ours := name == "www.example.org."
		if m := readFramed(t, c); int(m.Id) != i || m.Question[0].Name != name || (m.Rcode == dns.RcodeSuccess) != ours {
			t.Errorf("reply %d is %v", i, m)
		}
	}
	close(f.hold)
	readFramed(t, first)
}

// TestForwardAfterHalfClose checks that a client gets its waiting replies after it closed its sending side or was
// idle for too long.
func TestForwardAfterHalfClose(t *testing.T) {
	for _, half := range []bool{true, false} {
		f := holding(t)
		s := listening(t, Config{Forward: f})
		s.timeouts.idle = time.Hour
		run(t, s)
		c := dialTCP(t, s.Addrs()[0].String())
		writeFramed(t, c, packed(t, desired("www.example.net.", dns.TypeA)))
		f.began(t, 1)
		if half {
			c.CloseWrite()
		} else {
			expire(t, s)
		}
		close(f.hold)
		if m := readFramed(t, c); len(m.Answer) != 2 {
			t.Errorf("reply is %v", m)
		}
		if half { // the other connection may survive, when the reply was quicker
			closed(t, c)
		}
	}
}

// expire makes the only connection of a server time out, once it waits for its next message.
func expire(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.conns.mu.Lock()
		for c := range s.conns.all {
			if c.state.reading {
				c.net.SetReadDeadline(time.Unix(1, 0))
				s.conns.mu.Unlock()
				return
			}
		}
		s.conns.mu.Unlock()
	}
	t.Fatal("the connection stays busy")
}

// TestForwardSlowReader checks that a client that does not read forwarded replies is disconnected, and that nothing
// waits for it.
func TestForwardSlowReader(t *testing.T) {
	large := found{}
	for i := range 40 {
		large.answers = append(large.answers, fmt.Sprintf("www.example.net. 60 TXT %03d%s", i, strings.Repeat("x", 250)))
	}
	f := &fake{knows: map[string]found{"www.example.net. TXT": large}}
	s := listening(t, Config{Forward: f})
	s.timeouts.write = 50 * time.Millisecond
	stop := run(t, s)
	c := dialTCP(t, s.Addrs()[0].String())
	c.SetReadBuffer(4096)
	q := framed(packed(t, desired("www.example.net.", dns.TypeTXT)))
	for {
		if _, err := c.Write(q); err != nil {
			break
		}
	}
	stop()
	if n := s.settings.pending.len(); n != 0 {
		t.Errorf("%d queries wait after the end", n)
	}
}

// TestForwardLateReply checks that a reply that cannot be sent in time closes the connection, so that its reader ends
// too.
func TestForwardLateReply(t *testing.T) {
	s := listening(t, Config{Forward: &fake{}})
	s.timeouts.write = -1
	defer s.Close()
	dialTCP(t, s.Addrs()[0].String())
	accepted, err := s.tcp[0].AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	accepted.SetReadDeadline(time.Now().Add(patience))
	c := newConn(accepted, s.tcp[0], s)
	if err := c.reply(func([]byte) int { return wire.HeaderSize }); err == nil {
		t.Error("a reply was sent after its time")
	}
	if _, err := accepted.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
}

// TestForwardHoldsConn checks that a connection with waiting queries is busy, and idle once they are answered.
func TestForwardHoldsConn(t *testing.T) {
	table := newConnTable(TCPConfig{MaxConns: 2, MaxPerClient: 9})
	add := func() (*conn, bool) {
		c := &conn{net: new(net.TCPConn), from: client{addr: stranger.addr}}
		return c, table.add(c)
	}
	waits, _ := add()
	table.idle(waits, time.Second)
	table.busy(waits)
	table.addPending(waits)
	table.addPending(waits)
	table.idle(waits, time.Second)
	idle, _ := add()
	table.idle(idle, time.Second)
	next, ok := add()
	if !ok || waits.state.evicted || !idle.state.evicted {
		t.Errorf("a new connection was taken: %v; the one that waits evicted: %v; the idle one: %v", ok,
			waits.state.evicted, idle.state.evicted)
	}
	table.busy(next)
	table.donePending(waits)
	if _, ok := add(); ok {
		t.Error("a connection that waits made room")
	}
	table.donePending(waits)
	if _, ok := add(); !ok || !waits.state.evicted {
		t.Error("a connection that waits no longer did not make room")
	}
	table.addPending(idle)
	table.donePending(idle) // a removed connection stays removed
	if table.idleConns.Len() != 0 {
		t.Error("a connection that was closed is idle")
	}
}

// TestForwardThenNotDNS checks that bytes that are no DNS message end a connection also after a query that waits.
func TestForwardThenNotDNS(t *testing.T) {
	f := holding(t)
	addrs, _ := start(t, Config{Forward: f})
	c := dialTCP(t, addrs[0])
	response := packed(t, question("www.example.org.", dns.TypeA))
	response[2] |= 0x80
	c.Write(append(framed(packed(t, desired("www.example.net.", dns.TypeA))), framed(response)...))
	f.began(t, 1)
	close(f.hold)
	b, err := io.ReadAll(c)
	if n := len(b) - lengthSize; err != nil || n < wire.HeaderSize || bytes.Count(b, []byte("example")) != 1 {
		t.Errorf("read %x, %v; want one reply and the end", b, err)
	}
}
