package dnsserver

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func dialTCP(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

func writeFramed(t *testing.T, c net.Conn, message []byte) {
	t.Helper()
	if _, err := c.Write(framed(message)); err != nil {
		t.Fatal(err)
	}
}

func readFramed(t *testing.T, c net.Conn) *dns.Msg {
	t.Helper()
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		t.Fatalf("no reply: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("half a reply: %v", err)
	}
	return unpacked(t, b)
}

// closed fails the test unless the server closes the connection without sending another byte.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	if n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open: read %d, %v", n, err)
	}
}

func TestPipelining(t *testing.T) {
	addrs, _ := start(t, Config{})
	c := dialTCP(t, addrs[0])
	var all []byte
	const n = 500
	for id := range n {
		name := "www.example.org."
		if id%50 == 0 {
			name = "huge.example.org." // replies of 10,000 bytes fill the buffer
		}
		q := question(name, dns.TypeA)
		if id%50 == 0 {
			q = question(name, dns.TypeTXT)
		}
		q.Id = uint16(id)
		all = append(all, framed(packed(t, q))...)
	}
	go c.Write(all)
	for id := range n {
		m := readFramed(t, c)
		want := 1
		if id%50 == 0 {
			want = 40
		}
		if int(m.Id) != id || len(m.Answer) != want {
			t.Fatalf("reply %d is %v", id, m)
		}
	}
}

// TestFraming checks that messages are parsed correctly however they are split into segments.
func TestFraming(t *testing.T) {
	addrs, _ := start(t, Config{})
	c := dialTCP(t, addrs[0])
	c.SetNoDelay(true)
	large := packed(t, withOPT(question("www.example.org.", dns.TypeA), 1232,
		&dns.EDNS0_PADDING{Padding: make([]byte, 60_000)}))
	small := packed(t, question("www.example.org.", dns.TypeA))
	stream := append(append(framed(small), framed(large)...), framed(small)...)
	go func() {
		for len(stream) > 0 {
			n := min(len(stream), 1+len(stream)%1000)
			c.Write(stream[:n])
			stream = stream[n:]
		}
	}()
	for range 3 {
		if m := readFramed(t, c); len(m.Answer) != 1 {
			t.Fatalf("reply is %v", m)
		}
	}
}

func TestNotDNS(t *testing.T) {
	response := packed(t, question("www.example.org.", dns.TypeA))
	response[2] |= 0x80
	for _, tt := range []struct {
		name string
		in   []byte
	}{
		{"a response", framed(response)},
		{"an empty message", framed(nil)},
		{"another protocol", append([]byte{0, 11}, "GET / HTTP/1.1\r\n\r\n"...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addrs, _ := start(t, Config{})
			c := dialTCP(t, addrs[0])
			c.Write(tt.in)
			closed(t, c)
		})
	}
}

// TestSlowClients checks that the timeouts end connections of slow clients.
func TestSlowClients(t *testing.T) {
	const short, long = 50 * time.Millisecond, time.Hour
	query := framed(packed(t, question("www.example.org.", dns.TypeA)))
	tests := []struct {
		name       string
		idle, read time.Duration
		in         []byte
	}{
		{"says nothing", short, long, nil},
		{"half a length", long, short, query[:1]},
		{"half a message", long, short, query[:10]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := listening(t, Config{})
			s.timeouts.idle, s.timeouts.read = tt.idle, tt.read
			run(t, s)
			c := dialTCP(t, s.Addrs()[0].String())
			c.Write(tt.in)
			closed(t, c)
		})
	}
}

// TestSlowReader checks that a client that asks and does not read is disconnected.
func TestSlowReader(t *testing.T) {
	s := listening(t, Config{})
	s.timeouts.write = 50 * time.Millisecond
	run(t, s)
	c := dialTCP(t, s.Addrs()[0].String())
	c.SetReadBuffer(4096)
	q := framed(packed(t, question("huge.example.org.", dns.TypeTXT)))
	for {
		if _, err := c.Write(q); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the server kept a client that does not read")
			}
			return
		}
	}
}

// TestMaxPerClient checks that beyond its limit a client's newest connection is refused, and its others stay open.
func TestMaxPerClient(t *testing.T) {
	addrs, _ := start(t, Config{TCP: TCPConfig{MaxPerClient: 2}})
	q := packed(t, question("www.example.org.", dns.TypeA))
	use := func(c net.Conn) {
		t.Helper()
		writeFramed(t, c, q)
		readFramed(t, c)
	}
	a, b := dialTCP(t, addrs[0]), dialTCP(t, addrs[0])
	use(a)
	use(b)
	closed(t, dialTCP(t, addrs[0]))
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}, Timeout: patience}
	c, err := other.Dial("tcp", addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	use(c)
	use(a)
	use(b)
}

// TestMaxConns checks that at the limit the connection that was idle longest is closed.
func TestMaxConns(t *testing.T) {
	s := listening(t, Config{TCP: TCPConfig{MaxConns: 2}})
	run(t, s)
	addr := s.Addrs()[0].String()
	q := packed(t, question("www.example.org.", dns.TypeA))
	use := func(c net.Conn) {
		t.Helper()
		writeFramed(t, c, q)
		readFramed(t, c)
		waitIdle(t, s)
	}
	a, b := dialTCP(t, addr), dialTCP(t, addr)
	use(a)
	use(b)
	use(a)
	c := dialTCP(t, addr)
	use(c)
	closed(t, b)
	use(a)
	use(c)
	if n := s.conns.len(); n != 2 {
		t.Errorf("%d connections are counted, want 2", n)
	}
}

// TestMaxConnsHalfMessages checks that half a message neither protects a connection nor holds reply memory.
func TestMaxConnsHalfMessages(t *testing.T) {
	s := listening(t, Config{TCP: TCPConfig{MaxConns: 2}})
	s.timeouts.read = time.Hour
	run(t, s)
	addr := s.Addrs()[0].String()
	q := framed(packed(t, question("www.example.org.", dns.TypeA)))
	for range 2 {
		half := dialTCP(t, addr)
		half.Write(append(q, q[:5]...))
		readFramed(t, half)
	}
	waitIdle(t, s)
	c := dialTCP(t, addr)
	c.Write(q)
	readFramed(t, c)
	if n := s.conns.len(); n != 2 {
		t.Errorf("%d connections are counted, want 2", n)
	}
}

// TestMaxConnsSlowReaders checks that slow readers are closed when no connection is idle, and busy connections are
// not.
func TestMaxConnsSlowReaders(t *testing.T) {
	table := newConnTable(TCPConfig{MaxConns: 2, MaxPerClient: 9})
	add := func() (*conn, bool) {
		c := &conn{net: new(net.TCPConn), from: client{addr: stranger.addr}}
		ok := table.add(c)
		return c, ok
	}
	slow, _ := add()
	quick, _ := add()
	for _, c := range []*conn{slow, quick} {
		table.idle(c, time.Second)
		table.busy(c)
	}
	if _, ok := add(); ok {
		t.Error("a busy connection was closed to accept a new one")
	}
	slow.state.busySince = time.Now().Add(-time.Minute)
	last, ok := add()
	if !ok || !slow.state.evicted || quick.state.evicted {
		t.Errorf("a new connection was taken: %v; slow one evicted: %v; quick one evicted: %v", ok, slow.state.evicted,
			quick.state.evicted)
	}
	for _, c := range []*conn{slow, quick, last} {
		table.remove(c)
	}
	if table.len() != 0 || table.busyConns.Len() != 0 || table.idleConns.Len() != 0 || len(table.clients) != 0 {
		t.Error("the table is not empty after all connections ended")
	}
}

// waitIdle blocks until the server has recorded that all connections are idle.
func waitIdle(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		s.conns.mu.Lock()
		idle := s.conns.idleConns.Len() == len(s.conns.all)
		s.conns.mu.Unlock()
		if idle {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("connections stay busy")
}

// TestIdleTimeoutShrinks checks that the idle timeout is shorter when most connections are in use.
func TestIdleTimeoutShrinks(t *testing.T) {
	table := newConnTable(TCPConfig{MaxConns: 4, MaxPerClient: 4})
	want := []time.Duration{8 * time.Second, 8 * time.Second, 8 * time.Second, 2 * time.Second}
	for i, d := range want {
		c := &conn{net: new(net.TCPConn), from: client{addr: stranger.addr}}
		if !table.add(c) {
			t.Fatalf("connection %d was refused", i)
		}
		if got := table.idle(c, 8*time.Second); got != d {
			t.Errorf("with %d connections the idle timeout is %v, want %v", i+1, got, d)
		}
	}
}

// TestIPv6ClientIsANetwork checks that the addresses of one IPv6 customer are one client.
func TestIPv6ClientIsANetwork(t *testing.T) {
	table := newConnTable(TCPConfig{MaxConns: 9, MaxPerClient: 1})
	add := func(addr string) bool {
		return table.add(&conn{net: new(net.TCPConn), from: client{addr: mustAddr(addr)}})
	}
	if !add("2001:db8::1") || add("2001:db8::2") || !add("2001:db8:0:1::1") {
		t.Error("the limit is not one for each /64")
	}
}

// TestShutdownWithIdleClients checks that idle connections do not delay the shutdown.
func TestShutdownWithIdleClients(t *testing.T) {
	s := listening(t, Config{})
	s.timeouts.idle, s.timeouts.grace = time.Hour, time.Hour
	stop := run(t, s)
	c := dialTCP(t, s.Addrs()[0].String())
	writeFramed(t, c, packed(t, question("www.example.org.", dns.TypeA)))
	readFramed(t, c)
	stop()
	closed(t, c)
}
