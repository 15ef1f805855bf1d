package dnsserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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
		{"signed UPDATE of two zones", withTSIG(two(new(dns.Msg).SetUpdate("example.org."))), true, wire.RcodeNotImp, 0},
		{"signed UPDATE of no zone", withTSIG(opcode(new(dns.Msg), dns.OpcodeUpdate)), true, wire.RcodeNotImp, 0},
		{"UPDATE of two zones", two(new(dns.Msg).SetUpdate("example.org.")), false, wire.RcodeNotImp, wire.RcodeFormErr},
		{"STATUS", opcode(question("example.org.", dns.TypeA), dns.OpcodeStatus), false, wire.RcodeNotImp, wire.RcodeNotImp},
		{"a signed query", withTSIG(question("www.example.org.", dns.TypeA)), true, wire.RcodeNotAuth, 0},
		{"a signed query of another version", withTSIG(badVersion(question("www.example.org.", dns.TypeA))), true,
			wire.RcodeBadVers, 0},
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

// TestRejectedSignedMessages checks that Peers gets the RCODE for a signed message that the server does not accept.
func TestRejectedSignedMessages(t *testing.T) {
	malformed := func(m *dns.Msg) *dns.Msg {
		return withOPT(m, 1232, &dns.EDNS0_LOCAL{Code: optionCookie, Data: []byte{1}})
	}
	got := make(chan PeerMessage, 1)
	addrs, _ := start(t, Config{Peers: peer(func(_ context.Context, m PeerMessage) error {
		got <- m
		return m.Send(peerReply(m.Wire, m.Rejected&0xF))
	})})
	for _, tt := range []struct {
		name string
		m    *dns.Msg
		want int
		edns bool
	}{
		{"accepted", new(dns.Msg).SetUpdate("example.org."), 0, false},
		{"accepted with EDNS", withOPT(new(dns.Msg).SetUpdate("example.org."), 1232), 0, true},
		{"two zones", two(new(dns.Msg).SetUpdate("example.org.")), wire.RcodeFormErr, false},
		{"malformed option", malformed(new(dns.Msg).SetUpdate("example.org.")), wire.RcodeFormErr, true},
		{"malformed option of a query", malformed(question("example.org.", dns.TypeSOA)), wire.RcodeFormErr, true},
		{"another version", badVersion(new(dns.Msg).SetUpdate("example.org.")), wire.RcodeBadVers, true},
	} {
		for _, network := range []string{"udp", "tcp"} {
			r := exchangeRaw(t, network, addrs[0], packed(t, withTSIG(tt.m.Copy())))
			if len(got) == 0 {
				t.Errorf("%s over %s: Peers did not get the message; reply %v", tt.name, network, r)
				continue
			}
			if m := <-got; m.Rejected != tt.want || m.EDNS != tt.edns {
				t.Errorf("%s over %s: rejected with %d, EDNS %v; want %d, %v", tt.name, network, m.Rejected, m.EDNS, tt.want,
					tt.edns)
			}
		}
	}
}

// largeUpdate returns an update with a number of records of 15 bytes.
func largeUpdate(t *testing.T, records int, network byte) []byte {
	m := new(dns.Msg).SetUpdate("example.org.")
	for i := range records {
		m.Insert([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeA, Class: dns.ClassINET},
			A: net.IPv4(192, network, byte(i>>8), byte(i))}})
	}
	return packed(t, m)
}

// TestLargeUpdate sends messages of up to the largest size of a datagram, one by one and several at once.
func TestLargeUpdate(t *testing.T) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprintf("portable %v", portable), func(t *testing.T) {
			got := make(chan []byte, 6)
			addrs, _ := start(t, Config{portable: portable, Peers: peer(func(_ context.Context, m PeerMessage) error {
				got <- m.Wire
				return m.Send(peerReply(m.Wire, dns.RcodeYXDomain))
			})})
			for _, records := range []int{1, 135, 140, 280, 1000, 4365} { // 65,504 bytes; IPv4 has room for 65,507
				sent := largeUpdate(t, records, 0)
				r := exchangeRaw(t, "udp", addrs[0], sent)
				if r.Rcode != dns.RcodeYXDomain || !bytes.Equal(<-got, sent) {
					t.Fatalf("%d records: not received unchanged; reply %v", records, r)
				}
				if r := exchange(t, "udp", addrs[0], question("www.example.org.", dns.TypeA)); len(r.Answer) != 1 {
					t.Fatalf("a query after %d records: %v", records, r)
				}
			}
			var sent [][]byte
			for i := range 6 {
				c, err := net.Dial("udp", addrs[0])
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				sent = append(sent, largeUpdate(t, 4000, byte(i)))
				if _, err := c.Write(sent[i]); err != nil {
					t.Fatal(err)
				}
			}
			for range sent {
				wire := <-got
				if !slices.ContainsFunc(sent, func(b []byte) bool { return bytes.Equal(b, wire) }) {
					t.Errorf("a message of %d bytes that nobody sent", len(wire))
				}
			}
		})
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
