package dnsserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// peer is a Peers that calls a function.
type peer func(ctx context.Context, m PeerMessage) error

func (p peer) Serve(ctx context.Context, m PeerMessage) error { return p(ctx, m) }

// peerReply returns a reply with an RCODE that the server itself does not use.
func peerReply(wire []byte, rcode int) []byte {
	m := new(dns.Msg)
	if m.Unpack(wire) != nil {
		return nil
	}
	b, _ := new(dns.Msg).SetRcode(m, rcode).Pack()
	return b
}

func withTSIG(m *dns.Msg) *dns.Msg {
	m.SetTsig("key.", dns.HmacSHA256, 300, time.Now().Unix())
	sig := m.IsTsig()
	sig.MAC, sig.MACSize, sig.OrigId = "00112233", 4, m.Id
	return m
}

// TestPeersGetTheirMessages checks which messages Peers gets, and that the others are answered as without Peers.
func TestPeersGetTheirMessages(t *testing.T) {
	tests := []struct {
		name    string
		m       *dns.Msg
		peers   bool
		without int // RCODE without Peers
		with    int // RCODE with Peers, for messages that are not for them
	}{
		{"a query", question("www.example.org.", dns.TypeA), false, wire.RcodeNoError, wire.RcodeNoError},
		{"AXFR", question("example.org.", dns.TypeAXFR), true, wire.RcodeRefused, 0},
		{"IXFR", question("example.org.", dns.TypeIXFR), true, wire.RcodeRefused, 0},
		{"AXFR of another class", class(question("example.org.", dns.TypeAXFR), 4), false, wire.RcodeRefused,
			wire.RcodeRefused},
		{"NOTIFY", new(dns.Msg).SetNotify("example.org."), true, wire.RcodeNotImp, 0},
		{"UPDATE", new(dns.Msg).SetUpdate("example.org."), true, wire.RcodeNotImp, 0},
		{"UPDATE of no zone", opcode(new(dns.Msg), dns.OpcodeUpdate), false, wire.RcodeNotImp, wire.RcodeFormErr},
		{"UPDATE of two zones", two(new(dns.Msg).SetUpdate("example.org.")), false, wire.RcodeNotImp, wire.RcodeFormErr},
		{"STATUS", opcode(question("example.org.", dns.TypeA), dns.OpcodeStatus), false, wire.RcodeNotImp, wire.RcodeNotImp},
		{"a signed query", withTSIG(question("www.example.org.", dns.TypeA)), true, wire.RcodeNotAuth, 0},
		{"a signed query of another version", withTSIG(badVersion(question("www.example.org.", dns.TypeA))), false,
			wire.RcodeBadVers, wire.RcodeBadVers},
		{"UPDATE of another version", badVersion(new(dns.Msg).SetUpdate("example.org.")), false, wire.RcodeNotImp,
			wire.RcodeBadVers},
	}
	const mark = dns.RcodeYXDomain // no other reply has this RCODE
	addrs, _ := start(t, Config{Peers: peer(func(_ context.Context, m PeerMessage) error {
		return m.Send(peerReply(m.Wire, mark))
	})})
	plain, _ := start(t, Config{})
	for _, tt := range tests {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(tt.name+" "+network, func(t *testing.T) {
				if r := exchangeRaw(t, network, addrs[0], packed(t, tt.m)); (r.Rcode == mark) != tt.peers || !tt.peers &&
					r.Rcode != tt.with {
					t.Errorf("with peers: %v", r)
				}
				if r := exchangeRaw(t, network, plain[0], packed(t, tt.m)); r.Rcode != tt.without {
					t.Errorf("without: %v", r)
				}
			})
		}
	}
}

// two duplicates the question of a message.
func two(m *dns.Msg) *dns.Msg {
	m.Question = append(m.Question, m.Question[0])
	return m
}

func badVersion(m *dns.Msg) *dns.Msg {
	m.SetEdns0(1232, false)
	m.IsEdns0().SetVersion(1)
	return m
}

// exchangeRaw sends a packed message and reads one reply.
func exchangeRaw(t *testing.T, network, addr string, message []byte) *dns.Msg {
	t.Helper()
	if network == "tcp" {
		c := dialTCP(t, addr)
		writeFramed(t, c, message)
		return readFramed(t, c)
	}
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(message); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, wire.MaxSize)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return unpacked(t, b[:n])
}

// TestPeersLetOthersPass checks that queries on the same connection, and over UDP, are answered during a transfer,
// and that the messages of the transfer come in order.
func TestPeersLetOthersPass(t *testing.T) {
	sent, step := make(chan struct{}), make(chan struct{})
	addrs, _ := start(t, Config{Peers: peer(func(ctx context.Context, m PeerMessage) error {
		if m.From != netip.MustParseAddr("127.0.0.1") || m.TCP == (m.Limit != wire.MaxSize) {
			t.Errorf("from %v, at most %d bytes", m.From, m.Limit)
		}
		for i := range 3 {
			if err := m.Send(peerReply(m.Wire, 6+i)); err != nil {
				return err
			}
			sent <- struct{}{}
			<-step
		}
		return nil
	})})
	c := dialTCP(t, addrs[0])
	writeFramed(t, c, packed(t, question("example.org.", dns.TypeAXFR)))
	for i := range 3 {
		<-sent
		if r := readFramed(t, c); r.Rcode != 6+i {
			t.Fatalf("message %d: %v", i, r)
		}
		writeFramed(t, c, packed(t, question("www.example.org.", dns.TypeA)))
		if r := readFramed(t, c); len(r.Answer) != 1 {
			t.Fatalf("query %d: %v", i, r)
		}
		if r := exchange(t, "udp", addrs[0], question("www.example.org.", dns.TypeA)); len(r.Answer) != 1 {
			t.Fatalf("query %d over UDP: %v", i, r)
		}
		step <- struct{}{}
	}
}

// TestPeersBounds checks that messages beyond the limit get SERVFAIL, and that finished ones free capacity.
func TestPeersBounds(t *testing.T) {
	hold, begun := make(chan struct{}), make(chan struct{}, 9)
	s := listening(t, Config{Peers: peer(func(_ context.Context, m PeerMessage) error {
		begun <- struct{}{}
		<-hold
		return m.Send(peerReply(m.Wire, dns.RcodeYXDomain))
	})})
	s.settings.peers.maxQueries, s.settings.peers.perClient = 2, 2
	run(t, s)
	addr := s.Addrs()[0].String()
	notify := packed(t, new(dns.Msg).SetNotify("example.org."))
	a, b := dialTCP(t, addr), dialTCP(t, addr)
	writeFramed(t, a, notify)
	writeFramed(t, b, notify)
	<-begun
	<-begun
	for _, network := range []string{"tcp", "udp"} {
		if r := exchangeRaw(t, network, addr, notify); r.Rcode != wire.RcodeServFail {
			t.Errorf("%s: %v", network, r)
		}
	}
	close(hold)
	for _, c := range []net.Conn{a, b} {
		if r := readFramed(t, c); r.Rcode != dns.RcodeYXDomain {
			t.Errorf("reply %v", r)
		}
	}
	writeFramed(t, a, notify)
	if r := readFramed(t, a); r.Rcode != dns.RcodeYXDomain {
		t.Errorf("later: %v", r)
	}
}

// TestPeersBrokenOff checks that a client cannot take half a transfer for a complete one.
func TestPeersBrokenOff(t *testing.T) {
	addrs, _ := start(t, Config{Peers: peer(func(_ context.Context, m PeerMessage) error {
		if err := m.Send(peerReply(m.Wire, 0)); err != nil {
			return err
		}
		return errors.New("no more")
	})})
	c := dialTCP(t, addrs[0])
	writeFramed(t, c, packed(t, question("example.org.", dns.TypeAXFR)))
	closed(t, drained(c))
}

// drained reads all bytes that come. A reset may discard bytes that were sent before it.
func drained(c net.Conn) net.Conn {
	for b := make([]byte, 4096); ; {
		if _, err := c.Read(b); err != nil {
			return c
		}
	}
}

// TestPeersEnd checks that the end of the server ends running transfers.
func TestPeersEnd(t *testing.T) {
	begun := make(chan struct{})
	addrs, stop := start(t, Config{Peers: peer(func(ctx context.Context, m PeerMessage) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})})
	c := dialTCP(t, addrs[0])
	writeFramed(t, c, packed(t, question("example.org.", dns.TypeAXFR)))
	<-begun
	stop()
	closed(t, c)
}

// TestPeersAnswer checks that Answer gives the same reply as a direct query, with the reserved bytes free.
func TestPeersAnswer(t *testing.T) {
	h := newHandler(t, Config{Peers: peer(nil)})
	from := client{addr: stranger.addr}
	for _, name := range []string{"www", "nowhere", "big", "huge"} {
		for _, reserve := range []int{0, 100, 400} {
			t.Run(fmt.Sprint(name, reserve), func(t *testing.T) {
				query := packed(t, withOPT(question(name+".example.org.", dns.TypeA), 1232))
				raw, plain := h.settings.peers.answer(query, from, reserve), ask(h, query)
				got, want := unpacked(t, raw), unpacked(t, plain)
				fits := len(plain)+reserve <= 1232
				if len(raw)+reserve > 1232 || got.Rcode != want.Rcode || fits && len(got.Answer) != len(want.Answer) || !fits &&
					!got.Truncated {
					t.Errorf("answer %v, want %v", got, want)
				}
			})
		}
	}
	if r := unpacked(t, h.settings.peers.answer(packed(t, question("example.org.", dns.TypeAXFR)), from,
		0)); r.Rcode != wire.RcodeRefused {
		t.Errorf("AXFR through Answer: %v", r)
	}
}

// TestPeersSlowReader checks that a client that does not read a transfer is disconnected, and that Send returns an
// error.
func TestPeersSlowReader(t *testing.T) {
	ended := make(chan error, 1)
	s := listening(t, Config{Peers: peer(func(_ context.Context, m PeerMessage) error {
		message := append(peerReply(m.Wire, 0), make([]byte, 60000)...)
		for range 10_000 { // more than any socket holds
			if err := m.Send(message); err != nil {
				ended <- err
				return err
			}
		}
		ended <- nil
		return nil
	})})
	s.timeouts.write = 100 * time.Millisecond
	run(t, s)
	c := dialTCP(t, s.Addrs()[0].String())
	writeFramed(t, c, packed(t, question("example.org.", dns.TypeAXFR)))
	select {
	case err := <-ended:
		if err == nil {
			t.Error("600 MB were sent to nobody")
		}
	case <-time.After(patience):
		t.Fatal("a reader that does not read holds the transfer up")
	}
}
