package dnsserver

import (
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestMaxWriters checks that the connection that is sending longest is closed when too many are sending.
func TestMaxWriters(t *testing.T) {
	table := newConnTable(TCPConfig{MaxConns: maxWriters + 2, MaxPerClient: maxWriters + 2})
	start := time.Now()
	var all []*conn
	for i := range maxWriters + 2 {
		c := &conn{net: new(net.TCPConn), from: client{addr: stranger.addr}}
		table.add(c)
		table.idle(c, time.Second)
		table.busy(c)
		if all = append(all, c); i < maxWriters+1 {
			table.beginWrite(c, start.Add(time.Duration(-i)*time.Second)) // the last one is sending longest
		}
	}
	for i, c := range all {
		if want := i == maxWriters-1; c.state.evicted != want {
			t.Errorf("connection %d evicted: %v, want %v", i, c.state.evicted, want)
		}
	}
	for _, c := range all[:maxWriters+1] {
		table.endWrite(c)
	}
	if n := table.writers.Load(); n != 0 {
		t.Errorf("%d connections are sending after all have ended", n)
	}
}

// TestHalfMessages has a client send the largest messages without their ends. Their memory has a limit: beyond it the
// connection is closed. Small messages of the same client are answered.
func TestHalfMessages(t *testing.T) {
	s := listening(t, Config{})
	s.messages = newCapacity(4 * units(lengthSize+64<<10)) // one message for each client
	stop := run(t, s)
	defer stop()
	half := append([]byte{0xff, 0xff}, make([]byte, 60_000)...)
	first := dialTCP(t, s.Addrs()[0].String())
	if _, err := first.Write(half); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); s.messages.len() < units(40_000) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	second := dialTCP(t, s.Addrs()[0].String())
	second.Write(half)
	closed(t, second)
	small := dialTCP(t, s.Addrs()[0].String())
	writeFramed(t, small, packed(t, question("www.example.org.", dns.TypeA)))
	readFramed(t, small)
	first.Close()
	for end := time.Now().Add(patience); s.messages.len() > 0; {
		if time.Sleep(time.Millisecond); time.Now().After(end) {
			t.Fatalf("%d units are reserved after the connection has ended", s.messages.len())
		}
	}
}
