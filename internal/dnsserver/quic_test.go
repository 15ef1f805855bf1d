package dnsserver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// TestQUICLimits checks the limits on connections, and that clients must prove their address when many are open.
func TestQUICLimits(t *testing.T) {
	table := &quicConns{cfg: TCPConfig{MaxConns: 8, MaxPerClient: 2}, clients: map[netip.Addr]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	add := func(addr string) bool { return table.add(ctx, netip.MustParseAddr(addr)) == nil }
	if table.busy() || !add("192.0.2.1") || !add("192.0.2.1") || add("192.0.2.1") {
		t.Error("a client does not have two connections")
	}
	if !table.busy() {
		t.Error("a quarter of the connections is open, and clients need not prove their address")
	}
	for _, a := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.4", "2001:db8::1", "2001:db8::2", "2001:db8:1::1"} {
		if !add(a) {
			t.Errorf("%s has no connection", a)
		}
	}
	if add("192.0.2.5") {
		t.Error("there are more than eight connections")
	}
	cancel()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		table.mu.Lock()
		open, clients := table.open, len(table.clients)
		table.mu.Unlock()
		if open == 0 && clients == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("ended connections still count")
}

// TestQUICOnAllAddresses checks that a listener without an address serves both families.
func TestQUICOnAllAddresses(t *testing.T) {
	s := listening(t, Config{QUIC: []string{":0"}, QUICConfig: testTLS(t, "doq")})
	run(t, s)
	query := packed(t, question("www.example.org.", dns.TypeA))
	query[1] = 0
	for _, bound := range s.Bound().QUIC {
		addr := netip.MustParseAddrPort(bound)
		loopback := netip.IPv6Loopback()
		if addr.Addr().Is4() {
			loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		c, err := quic.DialAddr(t.Context(), netip.AddrPortFrom(loopback, addr.Port()).String(),
			&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"doq"}}, nil)
		if err != nil {
			t.Fatalf("%s: %v", bound, err)
		}
		reply, err := request(c, framed(query))
		if err != nil || len(unpacked(t, reply[lengthSize:]).Answer) != 1 {
			t.Errorf("%s: %x %v", bound, reply, err)
		}
		_ = c.CloseWithError(0, "")
	}
}

// request sends bytes on a new stream and returns everything that the server sends.
func request(c *quic.Conn, in []byte) ([]byte, error) {
	stream, err := c.OpenStreamSync(context.Background())
	if err != nil {
		return nil, err
	}
	_ = stream.SetDeadline(time.Now().Add(patience))
	if _, err := stream.Write(in); err != nil {
		return nil, err
	}
	stream.Close()
	return io.ReadAll(stream)
}

// FuzzQUIC sends any bytes on a stream.
func FuzzQUIC(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...))
	}
	query := packed(f, withOPT(question("www.example.org.", dns.TypeA), 1232,
		&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}))
	query[1] = 0
	f.Add(framed(query))
	s := listening(f, Config{QUIC: []string{"127.0.0.1:0"}, QUICConfig: testTLS(f, "doq"),
		Forward: &fake{knows: upstream, cached: true}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	f.Cleanup(func() { cancel(); <-ended })
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"doq"}}
	var c *quic.Conn
	f.Fuzz(func(t *testing.T, in []byte) {
		var err error
		if c == nil {
			if c, err = quic.DialAddr(t.Context(), s.Bound().QUIC[0], config, nil); err != nil {
				t.Fatal(err)
			}
		}
		reply, err := request(c, in)
		message, cutErr := cutQUIC(in)
		if cutErr == nil && err == nil && (len(reply) < 14 || reply[2] != 0 || reply[3] != 0) {
			t.Fatalf("%x: the reply is %x", message, reply)
		}
		if cutErr != nil && err == nil {
			t.Fatalf("%x is answered with %x", in, reply)
		}
		if err != nil { // the server has closed the connection
			_ = c.CloseWithError(0, "")
			c = nil
		}
	})
}
