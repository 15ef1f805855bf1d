package dnsserver

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

// resolver is a real server that answers from upstream on both transports, and counts its queries.
type resolver struct {
	addr  string
	asked atomic.Int32
	stop  func()
}

func newResolver(t *testing.T) *resolver {
	t.Helper()
	u, l := listenBoth(t)
	r := &resolver{addr: u.LocalAddr().String()}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r.asked.Add(1)
		m := new(dns.Msg).SetReply(q)
		a, ok := upstream[dns.CanonicalName(q.Question[0].Name)+" "+dns.TypeToString[q.Question[0].Qtype]]
		if !ok {
			a = found{rcode: wire.RcodeNXDomain, authorities: []string{negativeSOA}}
		}
		m.Rcode, m.AuthenticatedData = int(a.rcode), a.ad
		for _, s := range a.answers {
			m.Answer = append(m.Answer, testRR(t, s))
		}
		for _, s := range a.authorities {
			m.Ns = append(m.Ns, testRR(t, s))
		}
		if w.LocalAddr().Network() == "udp" {
			m.Truncate(512)
		}
		w.WriteMsg(m)
	})
	servers := []*dns.Server{{PacketConn: u, Handler: handler}, {Listener: l, Handler: handler}}
	for _, s := range servers {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		go s.ActivateAndServe()
		<-started
	}
	r.stop = func() {
		for _, s := range servers {
			s.Shutdown()
		}
	}
	t.Cleanup(r.stop)
	return r
}

// listenBoth finds a port that is free for both transports.
func listenBoth(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range maxPortAttempts {
		u, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", u.LocalAddr().String())
		if err == nil {
			return u, l
		}
		u.Close()
	}
	t.Fatal("no port is free")
	return nil, nil
}

func testRR(t *testing.T, s string) dns.RR {
	rr, err := dns.NewRR(s)
	if err != nil {
		t.Errorf("record of a test: %v", err)
	}
	return rr
}

// newForwarder returns a forwarder to real servers, for clients of the given network.
func newForwarder(t *testing.T, clients string, addrs ...string) *forward.Forwarder {
	t.Helper()
	cfg := forward.Config{Clients: []netip.Prefix{netip.MustParsePrefix(clients)}}
	for _, a := range addrs {
		s, err := resolve.ParseServer(a)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Upstreams = append(cfg.Upstreams, s)
	}
	f := forward.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestForwardReal runs the cases of TestForward through real sockets and the real forwarder. Each query is sent
// several times, and the upstream gets it only once.
func TestForwardReal(t *testing.T) {
	for _, loop := range loops {
		r := newResolver(t)
		addrs, _ := start(t, Config{portable: loop.portable, Forward: newForwarder(t, "127.0.0.0/8", r.addr)})
		for _, tt := range forwardCases {
			if tt.from == denied || tt.want.Summary.Rcode == "SERVFAIL" || tt.want.Summary.EDE == wire.EDEStale {
				continue // the upstream of this test is alive
			}
			t.Run(loop.name+"/"+tt.name, func(t *testing.T) {
				before := r.asked.Load()
				for i := range 4 {
					network := []string{"udp", "tcp"}[i%2]
					if diff := cmp.Diff(tt.want, answeredBy(exchange(t, network, addrs[0], tt.query.Copy()))); diff != "" {
						t.Errorf("over %s (-want +got):\n%s", network, diff)
					}
				}
				if n := r.asked.Load() - before; n > 1 {
					t.Errorf("the upstream was asked %d times", n)
				}
			})
		}
	}
}

// TestForwardRealTruncated checks that an answer too large for the upstream's datagrams and ours uses TCP on both
// sides.
func TestForwardRealTruncated(t *testing.T) {
	r := newResolver(t)
	addrs, _ := start(t, Config{Forward: newForwarder(t, "127.0.0.0/8", r.addr)})
	for _, name := range []string{"big.example.net.", "big.away.example.org."} {
		if m := exchange(t, "udp", addrs[0], desired(name, dns.TypeA)); !m.Truncated {
			t.Errorf("%s over UDP: %v", name, m)
		}
		m := exchange(t, "tcp", addrs[0], desired(name, dns.TypeA))
		if n := len(m.Answer); m.Truncated || n < 60 {
			t.Errorf("%s over TCP: %d answers, truncated %v", name, n, m.Truncated)
		}
	}
}

// TestForwardRealDead checks that queries fail when the upstream is dead, except for cached names.
func TestForwardRealDead(t *testing.T) {
	r := newResolver(t)
	addrs, _ := start(t, Config{Forward: newForwarder(t, "127.0.0.0/8", r.addr)})
	known := withOPT(desired("www.example.net.", dns.TypeA), 1232)
	exchange(t, "udp", addrs[0], known)
	r.stop()
	m := exchange(t, "udp", addrs[0], withOPT(desired("cdn.example.net.", dns.TypeA), 1232))
	got := summarise(m)
	if got.Rcode != "SERVFAIL" || got.EDE != wire.EDENoReachable && got.EDE != wire.EDENetworkError {
		t.Errorf("a dead upstream gives %+v", got)
	}
	if m := exchange(t, "udp", addrs[0], known); len(m.Answer) != 2 {
		t.Errorf("a known name got %v", m)
	}
	if m := exchange(t, "udp", addrs[0], desired("www.example.org.", dns.TypeA)); len(m.Answer) != 1 {
		t.Errorf("a name of ours got %v", m)
	}
}

// TestForwardRealStrangers checks that the upstream gets no packet for clients of other networks.
func TestForwardRealStrangers(t *testing.T) {
	r := newResolver(t)
	addrs, _ := start(t, Config{Forward: newForwarder(t, "192.0.2.0/24", r.addr)})
	for _, network := range []string{"udp", "tcp"} {
		for _, tt := range []struct{ name, want string }{{"www.example.net.", "REFUSED"}, {"out.example.org.", "NOERROR"}} {
			m := exchange(t, network, addrs[0], desired(tt.name, dns.TypeA))
			if s := summarise(m); s.Rcode != tt.want || m.RecursionAvailable {
				t.Errorf("%s over %s got %v", tt.name, network, m)
			}
		}
	}
	if n := r.asked.Load(); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}
