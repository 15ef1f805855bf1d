package httpapi

import (
	"io"
	"net"
	"net/netip"
	"testing"
)

// fakeListener accepts connections from the given addresses.
type fakeListener struct {
	net.Listener
	from []string
}

type fakeConn struct {
	net.Conn
	from string
}

func (l *fakeListener) Accept() (net.Conn, error) {
	if len(l.from) == 0 {
		return nil, io.EOF
	}
	ours, theirs := net.Pipe()
	_ = ours.Close()
	c := fakeConn{theirs, l.from[0]}
	l.from = l.from[1:]
	return c, nil
}

func (c fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
}

func TestClientShare(t *testing.T) {
	fake := &fakeListener{from: []string{"192.0.2.1:1", "192.0.2.1:2", "[::ffff:192.0.2.1]:3", "192.0.2.2:1",
		"127.0.0.1:1",
		"127.0.0.1:2", "127.0.0.1:3", "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "[2001:db8:0:1::1]:1"}}
	l := newClientListener(fake, 2, 1<<10)
	var got []string
	var first net.Conn
	for {
		c, err := l.Accept()
		if err != nil {
			break
		}
		if first == nil {
			first = c
		}
		got = append(got, c.RemoteAddr().String())
	}
	want := []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3",
		"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:1::1]:1"}
	if len(got) != len(want) {
		t.Fatalf("accepted %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("accepted %q, want %q", got, want)
			break
		}
	}
	_ = first.Close()
	_ = first.Close() // a second Close must not count
	fake.from = []string{"192.0.2.1:4", "192.0.2.1:5"}
	if c, err := l.Accept(); err != nil || c.RemoteAddr().String() != "192.0.2.1:4" {
		t.Errorf("after a close: %v, %v", c, err)
	}
	if c, err := l.Accept(); err == nil {
		t.Errorf("accepted %v beyond the share", c.RemoteAddr())
	}
}
