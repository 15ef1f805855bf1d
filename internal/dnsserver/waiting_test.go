package dnsserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/zone"
)

// holding is a fake whose upstream does not answer before hold is closed.
func holding(t *testing.T) *fake {
	return &fake{knows: upstream, hold: make(chan struct{}), begun: make(chan string, 1000)}
}

// listening is a server that is not run yet.
func listening(t *testing.T, cfg Config) *Server {
	t.Helper()
	zones := testZones(t)
	cfg.Snapshot = func() *zone.Snapshot { return zones }
	if cfg.Listen == nil {
		cfg.Listen = []string{"127.0.0.1:0"}
	}
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// identified gives a query an id.
func identified(id int, m *dns.Msg) *dns.Msg {
	m.Id = uint16(id)
	return m
}

func sendTo(t *testing.T, c *net.UDPConn, to netip.AddrPort, m *dns.Msg) {
	t.Helper()
	if _, err := c.WriteToUDPAddrPort(packed(t, m), to); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c *net.UDPConn) (*dns.Msg, netip.AddrPort) {
	t.Helper()
	b := make([]byte, 4096)
	n, from, err := c.ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatal(err)
	}
	return unpacked(t, b[:n]), from
}

// TestForwardDelaysNobody: while an upstream is silent, everything else is answered; and when it speaks, the reply comes
// from the address that was asked.
func TestForwardDelaysNobody(t *testing.T) {
	for _, loop := range loops {
		for _, tt := range []struct{ listen, client, server, other string }{
			{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
			{"0.0.0.0:0", "127.0.0.1:0", "127.0.0.2", "127.0.0.3"},
			{"[::]:0", "[::1]:0", "::1", "::1"},
		} {
			t.Run(loop.name+"/"+tt.listen, func(t *testing.T) {
				f := holding(t)
				addrs, _ := start(t, Config{Listen: []string{tt.listen}, Workers: 1, portable: loop.portable, Forward: ForwardConfig{By: f}})
				port := netip.MustParseAddrPort(addrs[0]).Port()
				to, other := netip.AddrPortFrom(mustAddr(tt.server), port), netip.AddrPortFrom(mustAddr(tt.other), port)
				c := udpClient(t, tt.client)
				const n = 100
				for i := range n {
					sendTo(t, c, to, identified(i, desired("www.example.net.", dns.TypeA)))
					sendTo(t, c, other, identified(n+i, desired("www.example.org.", dns.TypeA)))
				}
				for i := range n {
					if m, from := receive(t, c); int(m.Id) != n+i || len(m.Answer) != 1 || from != other {
						t.Fatalf("reply %d of ours, from %v, is %v", i, from, m)
					}
				}
				f.began(t, n)
				close(f.hold)
				seen := map[uint16]bool{}
				for range n {
					m, from := receive(t, c)
					if seen[m.Id] || m.Id >= n || len(m.Answer) != 2 || from != to {
						t.Fatalf("reply from %v is %v", from, m)
					}
					seen[m.Id] = true
				}
			})
		}
	}
}

// TestForwardBounds: one client has its part of those that may wait, all together have no more than all.
func TestForwardBounds(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			f := holding(t)
			s := listening(t, Config{Workers: 1, portable: loop.portable, Forward: ForwardConfig{By: f, MaxQueries: 3, MaxPerClient: 2}})
			stop := run(t, s)
			over := summary{"SERVFAIL", "rd ra ", "www.example.net.", 0, true, forward.EDENetworkError}
			var clients []*net.UDPConn
			for i, waits := range []int{2, 1, 0} {
				c := udpClient(t, fmt.Sprintf("127.0.0.%d:0", i+1))
				clients = append(clients, c)
				for range 3 {
					sendTo(t, c, s.Addrs()[0], withOPT(desired("www.example.net.", dns.TypeA), 1232))
				}
				f.began(t, waits)
				for range 3 - waits {
					m, _ := receive(t, c)
					if diff := cmp.Diff(over, summarise(m)); diff != "" {
						t.Fatalf("client %d (-want +got):\n%s", i, diff)
					}
				}
			}
			if n := gathered(t, s.Collector())["nameplane_dns_forward_waiting"]; n != 3 {
				t.Errorf("%v queries wait, want 3", n)
			}
			close(f.hold)
			for i, waits := range []int{2, 1, 0} {
				for range waits {
					if m, _ := receive(t, clients[i]); len(m.Answer) != 2 {
						t.Errorf("client %d got %v", i, m)
					}
				}
			}
			stop()
			got := gathered(t, s.Collector())
			for key, want := range map[string]float64{
				"nameplane_dns_forward_queries_total asked": 3, "nameplane_dns_forward_queries_total over_bound": 6,
				"nameplane_dns_forward_waiting": 0, "nameplane_dns_request_duration_seconds udp": 9,
			} {
				if got[key] != want {
					t.Errorf("%s = %v, want %v", key, got[key], want)
				}
			}
			if w := s.settings.waiting; len(w.clients) != 0 || w.queries != 0 {
				t.Errorf("%d queries of %d clients are counted after all were answered", w.queries, len(w.clients))
			}
		})
	}
}

// TestForwardWeight: large queries count for the memory that they hold.
func TestForwardWeight(t *testing.T) {
	w := newWaiting(ForwardConfig{By: &fake{}, MaxQueries: 100, MaxPerClient: 40}, nil)
	large, small := weight(make([]byte, maxTCPSize)), weight(make([]byte, 100))
	if !w.take(stranger.addr, large) || w.take(stranger.addr, large) || !w.take(stranger.addr, small) {
		t.Errorf("a query of %d octets weighs %d, one of 100 %d", maxTCPSize, large, small)
	}
	if !w.take(mustAddr("2001:db8::1"), large) || w.take(mustAddr("2001:db8::2"), large) {
		t.Error("an IPv6 /64 is not one client")
	}
}

// TestForwardRefusesStrangers: who may not have names looked for makes no upstream hear of them, on either transport.
func TestForwardRefusesStrangers(t *testing.T) {
	f := &fake{knows: upstream, denies: netip.MustParsePrefix("127.0.0.0/8")}
	s := listening(t, Config{Forward: ForwardConfig{By: f}})
	stop := run(t, s)
	want := summary{"REFUSED", "rd ", "www.example.net.", 0, true, edeNotAuthoritative}
	for _, network := range []string{"udp", "tcp"} {
		m := exchange(t, network, s.Addrs()[0].String(), withOPT(desired("www.example.net.", dns.TypeA), 1232))
		if diff := cmp.Diff(want, summarise(m)); diff != "" {
			t.Errorf("over %s (-want +got):\n%s", network, diff)
		}
	}
	stop()
	if n := f.times(); n != 0 {
		t.Errorf("the forwarder was asked %d times", n)
	}
	if n := gathered(t, s.Collector())["nameplane_dns_forward_queries_total client_refused"]; n != 2 {
		t.Errorf("%v queries were counted as refused, want 2", n)
	}
}

// TestForwardNoResponses: a response is not forwarded either.
func TestForwardNoResponses(t *testing.T) {
	for _, loop := range loops {
		f := &fake{knows: upstream}
		addrs, stop := start(t, Config{Workers: 1, portable: loop.portable, Forward: ForwardConfig{By: f}})
		c := udpClient(t, "127.0.0.1:0")
		response := identified(7, desired("www.example.net.", dns.TypeA))
		response.Response = true
		sendTo(t, c, netip.MustParseAddrPort(addrs[0]), response)
		sendTo(t, c, netip.MustParseAddrPort(addrs[0]), identified(8, desired("www.example.org.", dns.TypeA)))
		if m, _ := receive(t, c); m.Id != 8 {
			t.Errorf("a response got %v", m)
		}
		stop()
		if f.times() != 0 {
			t.Error("a response was forwarded")
		}
	}
}

// TestForwardOutOfOrder: what must wait on a connection is overtaken by what need not (RFC 7766 §6.2.1.1).
func TestForwardOutOfOrder(t *testing.T) {
	f := holding(t)
	addrs, _ := start(t, Config{Forward: ForwardConfig{By: f}})
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

// TestForwardPerConn: a connection with its share waiting is read on when one of them is done, and gets all replies, those
// for which there is no room among them.
func TestForwardPerConn(t *testing.T) {
	f := holding(t)
	addrs, _ := start(t, Config{Forward: ForwardConfig{By: f, MaxPerConn: 2, MaxPerClient: 3}})
	c := dialTCP(t, addrs[0])
	var all []byte
	const n = 50
	for i := range n {
		all = append(all, framed(packed(t, identified(2*i, desired("www.example.org.", dns.TypeA))))...)
		all = append(all, framed(packed(t, identified(2*i+1, desired("www.example.net.", dns.TypeA))))...)
	}
	go c.Write(all)
	for i := range 3 { // what was answered before the third wait is not held back by it
		if m := readFramed(t, c); int(m.Id) != 2*i {
			t.Fatalf("reply %d is %v", i, m)
		}
	}
	f.began(t, 2)
	other := dialTCP(t, addrs[0]) // of the same client: one more may wait, the next may not
	writeFramed(t, other, packed(t, desired("www.example.net.", dns.TypeA)))
	f.began(t, 1)
	writeFramed(t, other, packed(t, identified(9, desired("www.example.net.", dns.TypeA))))
	if m := readFramed(t, other); m.Rcode != dns.RcodeServerFailure || m.Id != 9 {
		t.Errorf("a fourth query of a client that may have three got %v", m)
	}
	if n := f.times(); n != 3 {
		t.Errorf("%d queries wait, want 2 of the first connection and 1 of the other", n)
	}
	close(f.hold)
	for range 2*n - 3 {
		if m := readFramed(t, c); len(m.Answer) == 0 {
			t.Fatalf("reply is %v", m)
		}
	}
	if m := readFramed(t, other); len(m.Answer) != 2 {
		t.Errorf("reply is %v", m)
	}
}

// TestFrame: a reply that was written behind others is moved to the front when these were sent meanwhile.
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

// TestForwardNoRoomOnConn: that there is no room is said in the place of the answer.
func TestForwardNoRoomOnConn(t *testing.T) {
	f := holding(t)
	addrs, _ := start(t, Config{Forward: ForwardConfig{By: f, MaxPerConn: 1, MaxQueries: 1}})
	first := dialTCP(t, addrs[0])
	writeFramed(t, first, packed(t, desired("www.example.net.", dns.TypeA)))
	f.began(t, 1)
	c := dialTCP(t, addrs[0])
	var all []byte
	for i, name := range []string{"www.example.org.", "www.example.net.", "www.example.net.", "www.example.org."} {
		all = append(all, framed(packed(t, identified(i, desired(name, dns.TypeA))))...)
	}
	c.Write(all)
	for i, rcode := range []int{dns.RcodeSuccess, dns.RcodeServerFailure, dns.RcodeServerFailure, dns.RcodeSuccess} {
		if m := readFramed(t, c); int(m.Id) != i || m.Rcode != rcode || m.Question[0].Name == "" {
			t.Errorf("reply %d is %v", i, m)
		}
	}
	close(f.hold)
	readFramed(t, first)
}

// TestForwardAfterHalfClose: a client that has said that it asks no more, or was silent for too long, gets what it waits
// for.
func TestForwardAfterHalfClose(t *testing.T) {
	for _, half := range []bool{true, false} {
		f := holding(t)
		s := listening(t, Config{Forward: ForwardConfig{By: f}, TCP: TCPConfig{IdleTimeout: time.Hour}})
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
		if half { // the other may have been forgiven, if the reply was quicker
			closed(t, c)
		}
	}
}

// expire has the one connection of a server time out, once it waits for its next message.
func expire(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.conns.mu.Lock()
		for c := range s.conns.all {
			if c.place.reading {
				c.net.SetReadDeadline(time.Unix(1, 0))
				s.conns.mu.Unlock()
				return
			}
		}
		s.conns.mu.Unlock()
	}
	t.Fatal("the connection stays busy")
}

// TestForwardSlowReader: a client that does not read what was forwarded for it is cut off, and nothing waits for it.
func TestForwardSlowReader(t *testing.T) {
	large := found{}
	for i := range 40 {
		large.answers = append(large.answers, fmt.Sprintf("www.example.net. 60 TXT %03d%s", i, strings.Repeat("x", 250)))
	}
	f := &fake{knows: map[string]found{"www.example.net. TXT": large}}
	s := listening(t, Config{Forward: ForwardConfig{By: f}, TCP: TCPConfig{WriteTimeout: 50 * time.Millisecond}})
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
	if n := s.settings.waiting.len(); n != 0 {
		t.Errorf("%d queries wait after the end", n)
	}
}

// TestForwardLateReply: when a reply cannot be sent in time the connection is closed, so that its reader ends too.
func TestForwardLateReply(t *testing.T) {
	s := listening(t, Config{Forward: ForwardConfig{By: &fake{}}, TCP: TCPConfig{WriteTimeout: -1}})
	defer s.Close()
	dialTCP(t, s.Addrs()[0].String())
	accepted, err := s.tcp[0].AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	accepted.SetReadDeadline(time.Now().Add(patience))
	c := newConn(accepted, s)
	if err := c.reply(func([]byte) int { return headerSize }); err == nil {
		t.Error("a reply was sent after its time")
	}
	if _, err := accepted.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
}

// TestForwardShutdown: who waits at the end gets the answer if it comes soon, and SERVFAIL if not.
func TestForwardShutdown(t *testing.T) {
	for _, loop := range loops {
		for _, network := range []string{"udp", "tcp"} {
			for _, soon := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/soon=%v", loop.name, network, soon), func(t *testing.T) {
					f := holding(t)
					s := listening(t, Config{portable: loop.portable, Forward: ForwardConfig{By: f}})
					s.grace, s.patience = time.Hour, 2*drainTime // sockets that are no longer read must stay open
					if soon {
						s.patience = time.Hour
					}
					shutDown(t, s, f, network, soon)
				})
			}
		}
	}
}

func shutDown(t *testing.T, s *Server, f *fake, network string, soon bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	reply := make(chan *dns.Msg)
	go func() {
		c := dns.Client{Net: network, Timeout: patience}
		m, _, _ := c.Exchange(desired("www.example.net.", dns.TypeA), s.Addrs()[0].String())
		reply <- m
	}()
	f.began(t, 1)
	cancel()
	rcode := dns.RcodeServerFailure
	if soon {
		close(f.hold)
		rcode = dns.RcodeSuccess
	}
	if m := <-reply; m == nil || m.Rcode != rcode {
		t.Errorf("reply is %v, want %s", m, dns.RcodeToString[rcode])
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestForwardHoldsConn: a connection that we owe replies is busy; once it has them it is idle.
func TestForwardHoldsConn(t *testing.T) {
	table := newConnTable(TCPConfig{MaxConns: 2, MaxPerClient: 9, IdleTimeout: time.Second})
	add := func() (*conn, bool) {
		c := &conn{net: new(net.TCPConn), from: client{addr: stranger.addr}}
		return c, table.add(c)
	}
	waits, _ := add()
	table.idle(waits)
	table.busy(waits)
	table.hold(waits)
	table.hold(waits)
	table.idle(waits)
	idle, _ := add()
	table.idle(idle)
	next, ok := add()
	if !ok || waits.place.evicted || !idle.place.evicted {
		t.Errorf("a new connection was taken: %v; the one that waits evicted: %v; the idle one: %v", ok, waits.place.evicted, idle.place.evicted)
	}
	table.busy(next)
	table.release(waits)
	if _, ok := add(); ok {
		t.Error("a connection that waits made room")
	}
	table.release(waits)
	if _, ok := add(); !ok || !waits.place.evicted {
		t.Error("a connection that waits no longer did not make room")
	}
	table.hold(idle)
	table.release(idle) // one that is gone stays so
	if table.waiting.Len() != 0 {
		t.Error("a connection that was closed is idle")
	}
}

// TestForwardRateLimit: the limit comes before the upstream, and clients with a cookie have none.
func TestForwardRateLimit(t *testing.T) {
	for _, cached := range []bool{true, false} {
		f := &fake{knows: upstream, cached: cached}
		h := newHandler(t, Config{RRL: RRLConfig{Responses: 2, Errors: 1, Slip: 1}, Forward: ForwardConfig{By: f}})
		q := withOPT(withAD(desired("www.example.net.", dns.TypeA)), 1232, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})
		var m *dns.Msg
		for i := range 4 {
			m = unpacked(t, settle(h, packed(t, q), stranger))
			if limited := i >= 2; m.Truncated != limited || (len(m.Answer) == 0) != limited || m.AuthenticatedData == limited || m.Rcode != 0 {
				t.Errorf("answer %d, cached %v: %v", i, cached, m)
			}
		}
		if n := f.times(); !cached && n != 2 {
			t.Errorf("the forwarder was asked %d times, want 2", n)
		}
		if m := unpacked(t, settle(h, packed(t, desired("cdn.example.net.", dns.TypeA)), stranger)); m.Truncated {
			t.Error("another name is limited too")
		}
		q.IsEdns0().Option = m.IsEdns0().Option[:1] // with the server's part
		if m := unpacked(t, settle(h, packed(t, q), stranger)); m.Truncated || len(m.Answer) != 2 {
			t.Errorf("a client with a cookie got %v", m)
		}
	}
}

// TestForwardThenNotDNS: octets behind a query that waits are judged as ever.
func TestForwardThenNotDNS(t *testing.T) {
	f := holding(t)
	addrs, _ := start(t, Config{Forward: ForwardConfig{By: f}})
	c := dialTCP(t, addrs[0])
	response := packed(t, question("www.example.org.", dns.TypeA))
	response[2] |= 0x80
	c.Write(append(framed(packed(t, desired("www.example.net.", dns.TypeA))), framed(response)...))
	f.began(t, 1)
	close(f.hold)
	b, err := io.ReadAll(c)
	if n := len(b) - lengthSize; err != nil || n < headerSize || bytes.Count(b, []byte("example")) != 1 {
		t.Errorf("read %x, %v; want one reply and the end", b, err)
	}
}
