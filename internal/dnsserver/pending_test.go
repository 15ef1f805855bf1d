package dnsserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// holding returns a fake whose upstream does not answer before hold is closed.
func holding(t *testing.T) *fake {
	return &fake{knows: upstream, hold: make(chan struct{}), begun: make(chan string, 1000)}
}

// listening returns a server that does not run yet.
func listening(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := Listen(withDefaults(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// identified sets the ID of a query.
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

// TestForwardDelaysNobody checks that other queries are answered while an upstream is silent. The delayed reply comes
// from the address that the client asked.
func TestForwardDelaysNobody(t *testing.T) {
	for _, loop := range loops {
		for _, tt := range []struct{ listen, client, server, other string }{
			{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
			{"0.0.0.0:0", "127.0.0.1:0", "127.0.0.2", "127.0.0.3"},
			{"[::]:0", "[::1]:0", "::1", "::1"},
		} {
			t.Run(loop.name+"/"+tt.listen, func(t *testing.T) {
				f := holding(t)
				addrs, _ := start(t, Config{Listen: []string{tt.listen}, workers: 1, portable: loop.portable, Forward: f})
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

// TestForwardBounds checks the limits on waiting queries, of one client and of all together.
func TestForwardBounds(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			f := holding(t)
			s := listening(t, Config{workers: 1, portable: loop.portable, Forward: f})
			s.settings.pending.maxQueries, s.settings.pending.perClient = 3, 2
			stop := run(t, s)
			over := summary{"SERVFAIL", "rd ra ", "www.example.net.", 0, true, wire.EDENetworkError}
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
			if w := s.settings.pending; len(w.clients) != 0 || w.queries != 0 {
				t.Errorf("%d queries of %d clients are counted after all were answered", w.queries, len(w.clients))
			}
		})
	}
}

// TestForwardWeight checks that large queries count for the memory that they hold.
func TestForwardWeight(t *testing.T) {
	w := newPendingQueries(&fake{}, 160, nil)
	large, small := weight(make([]byte, wire.MaxSize)), weight(make([]byte, 100))
	if !w.tryReserve(stranger.addr, large) || w.tryReserve(stranger.addr, large) || !w.tryReserve(stranger.addr, small) {
		t.Errorf("a query of %d bytes weighs %d, one of 100 %d", wire.MaxSize, large, small)
	}
	if !w.tryReserve(mustAddr("2001:db8::1"), large) || w.tryReserve(mustAddr("2001:db8::2"), large) {
		t.Error("an IPv6 /64 is not one client")
	}
}

// TestForwardRefusesStrangers checks that queries of clients that may not use the forwarder reach no upstream, on
// either transport.
func TestForwardRefusesStrangers(t *testing.T) {
	f := &fake{knows: upstream, denies: netip.MustParsePrefix("127.0.0.0/8")}
	s := listening(t, Config{Forward: f})
	stop := run(t, s)
	want := summary{"REFUSED", "rd ", "www.example.net.", 0, true, wire.EDENotAuthoritative}
	for _, network := range []string{"udp", "tcp"} {
		m := exchange(t, network, s.Addrs()[0].String(), withOPT(desired("www.example.net.", dns.TypeA), 1232))
		if diff := cmp.Diff(want, summarise(m)); diff != "" {
			t.Errorf("over %s (-want +got):\n%s", network, diff)
		}
	}
	stop()
	if n := f.exchanges(); n != 0 {
		t.Errorf("the forwarder was asked %d times", n)
	}
	if n := gathered(t, s.Collector())["nameplane_dns_forward_queries_total client_refused"]; n != 2 {
		t.Errorf("%v queries were counted as refused, want 2", n)
	}
}

// TestForwardNoResponses checks that responses are not forwarded.
func TestForwardNoResponses(t *testing.T) {
	for _, loop := range loops {
		f := &fake{knows: upstream}
		addrs, stop := start(t, Config{workers: 1, portable: loop.portable, Forward: f})
		c := udpClient(t, "127.0.0.1:0")
		response := identified(7, desired("www.example.net.", dns.TypeA))
		response.Response = true
		sendTo(t, c, netip.MustParseAddrPort(addrs[0]), response)
		sendTo(t, c, netip.MustParseAddrPort(addrs[0]), identified(8, desired("www.example.org.", dns.TypeA)))
		if m, _ := receive(t, c); m.Id != 8 {
			t.Errorf("a response got %v", m)
		}
		stop()
		if f.exchanges() != 0 {
			t.Error("a response was forwarded")
		}
	}
}

// TestForwardShutdown checks that a query that waits at shutdown gets its answer if it comes soon, and SERVFAIL if
// not.
func TestForwardShutdown(t *testing.T) {
	for _, loop := range loops {
		for _, network := range []string{"udp", "tcp"} {
			for _, soon := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/soon=%v", loop.name, network, soon), func(t *testing.T) {
					f := holding(t)
					s := listening(t, Config{portable: loop.portable, Forward: f})
					s.timeouts.grace, s.timeouts.forward = time.Hour, 2*drainTime // sockets that are no longer read must stay open
					if soon {
						s.timeouts.forward = time.Hour
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

// TestForwardRateLimit checks that the limit applies before the upstream is asked, and not to clients with a cookie.
func TestForwardRateLimit(t *testing.T) {
	for _, cached := range []bool{true, false} {
		f := &fake{knows: upstream, cached: cached}
		h := newHandler(t, Config{RRL: RRLConfig{Responses: 2}, Forward: f})
		q := withOPT(withAD(desired("www.example.net.", dns.TypeA)), 1232,
			&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})
		var m *dns.Msg
		for i := range 4 {
			out := settle(h, packed(t, q), stranger)
			if i == 2 { // every second limited answer is sent, empty
				if len(out) > 0 {
					t.Errorf("cached %v: the first limited answer was sent", cached)
				}
				continue
			}
			m = unpacked(t, out)
			if limited := i >= 2; m.Truncated != limited || (len(m.Answer) == 0) != limited ||
				m.AuthenticatedData == limited || m.Rcode != 0 {
				t.Errorf("answer %d, cached %v: %v", i, cached, m)
			}
		}
		if n := f.exchanges(); !cached && n != 2 {
			t.Errorf("the forwarder was asked %d times, want 2", n)
		}
		if m := unpacked(t, settle(h, packed(t, desired("cdn.example.net.", dns.TypeA)), stranger)); m.Truncated {
			t.Error("another name is limited too")
		}
		q.IsEdns0().Option = m.IsEdns0().Option[:1] // with the server cookie
		if m := unpacked(t, settle(h, packed(t, q), stranger)); m.Truncated || len(m.Answer) != 2 {
			t.Errorf("a client with a cookie got %v", m)
		}
	}
}
