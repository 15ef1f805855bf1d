package follow_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

// targets creates n names with addresses of both families on a server.
func targets(t *testing.T, net *simnet.Net, n, ttl int) []dnsname.Name {
	t.Helper()
	s := net.MustServer("192.0.2.53", "zone example.net.\nlatency 5ms 50ms")
	var out []dnsname.Name
	for i := range n {
		text := fmt.Sprintf("t%d.example.net.", i)
		for _, data := range []string{"A 203.0.113.1", "AAAA 2001:db8::1"} {
			if err := s.Do(fmt.Sprintf("%s %d %s", text, ttl, data)); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, name(text))
	}
	return out
}

// busiest returns the largest number of queries that arrived in any second.
func busiest(history []simnet.Query) int {
	most, first := 0, 0
	for i, q := range history {
		for history[first].At <= q.At-time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestCoalescing has 10,000 followers of 50 targets: 100 lookups per cycle.
func TestCoalescing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 50, 300)
		r := newTestEnv(net, follow.Options{}, "192.0.2.53")
		r.start(t)
		for i := range 10_000 {
			r.Follow(names[i%50], follow.Both)
		}
		// The n-th refresh of a name is between 85.5 % and 90 % of n TTLs after its start.
		for cycle, age := range []time.Duration{200 * time.Second, 400 * time.Second, 650 * time.Second} {
			r.until(age)
			if n, want := len(net.History()), 100*(cycle+1); n != want {
				t.Errorf("%d lookups until %v, want %d", n, age, want)
			}
		}
	})
}

// TestHundredThousand has 100,000 followers of 1,000 targets with a TTL of 60 s. At most 40 queries may be sent in any
// second, and every name must be refreshed within its TTL.
func TestHundredThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 1000, 60)
		r := newTestEnv(net, follow.Options{Rate: 40}, "192.0.2.53")
		r.start(t)
		for i := range 100_000 {
			r.Follow(names[i%1000], follow.Both)
		}
		r.until(2 * time.Minute) // the first 2,000 lookups take 50 s
		net.Forget()
		for range 24 {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			for _, n := range names {
				for _, f := range []follow.Family{follow.IPv4, follow.IPv6} {
					if s, _ := r.State(n, f); time.Until(s.ValidUntil) < 0 {
						t.Fatalf("at %v, %v %v is valid until %v", net.Age(), n, f, s.ValidUntil)
					}
				}
			}
		}
		history := net.History()
		if n := busiest(history); n > 40 {
			t.Errorf("%d queries in a second", n)
		}
		t.Logf("%.1f queries/s, at most %d in a second", float64(len(history))/120, busiest(history))
	})
}

// TestHundredThousandCached does the same through a resolver with a cache, as most have. The cache has nothing new
// before a TTL expires. So names must be queried soon after that, but not more often.
func TestHundredThousandCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 1000, 60)
		net.MustServer("192.0.2.1", "forward . 192.0.2.53\nlatency 1ms")
		r := newTestEnv(net, follow.Options{}, "192.0.2.1")
		r.start(t)
		for i := range 100_000 {
			r.Follow(names[i%1000], follow.Both)
		}
		r.until(3 * time.Minute)
		net.Forget()
		var latest time.Duration
		for range 240 {
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
			for _, n := range names {
				s, _ := r.State(n, follow.IPv4)
				latest = max(latest, -time.Until(s.ValidUntil))
			}
		}
		// At most one second after its expiry. Add 1.25 s for a name that is queried together with its other family, where
		// the cache had fetched the two in different seconds.
		if latest > 2300*time.Millisecond {
			t.Errorf("a name was asked %v after the end of its TTL", latest)
		}
		asked := 0
		for _, q := range net.History() {
			if q.Server.Addr() == addrs("192.0.2.1")[0] {
				asked++
			}
		}
		if rate := float64(asked) / 120; rate > 40 {
			t.Errorf("%.1f queries/s", rate)
		}
		if n := len(r.changesSince(0)); n != 2000 {
			t.Errorf("%d changes were reported, want the first 2000", n)
		}
		t.Logf("%.1f queries/s, at most %v after the end of a TTL", float64(asked)/120, latest)
	})
}

// TestRate gives the tracker more work than its rate limit allows.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 1500, 3600)
		r := newTestEnv(net, follow.Options{Rate: 50, Parallel: 64}, "192.0.2.53")
		for _, n := range names {
			r.Follow(n, follow.Both)
		}
		r.start(t)
		// A refreshed name does not wait for the 3,000 others.
		r.until(10 * time.Second)
		before := len(r.changesSince(0))
		r.Refresh(names[0])
		r.until(12 * time.Second)
		if n := len(r.changesSince(before)); n > 100 {
			t.Errorf("%d reported in two seconds", n)
		}
		if s, _ := r.State(names[0], follow.IPv4); s.Answer != follow.Found || time.Until(s.ValidUntil) < 3597*time.Second {
			t.Errorf("the refreshed name is %s, valid for %v", brief(s), time.Until(s.ValidUntil))
		}
		r.until(65 * time.Second)
		if n := len(r.changesSince(0)); n != 3000+2 { // the refreshed name is reported twice
			t.Errorf("%d of 3000 were reported", n)
		}
		if n := busiest(net.History()); n != 50 {
			t.Errorf("%d queries in the busiest second, want 50", n)
		}
	})
}

// TestRateOverTCP truncates every reply over UDP: the repetitions over TCP count against the limit too.
func TestRateOverTCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 200, 3600)
		net.MustServer("192.0.2.53", "fault truncate")
		r := newTestEnv(net, follow.Options{Rate: 50, Parallel: 64}, "192.0.2.53")
		for _, n := range names {
			r.Follow(n, follow.IPv4)
		}
		r.start(t)
		r.until(20 * time.Second)
		if n := len(r.changesSince(0)); n != 200 {
			t.Errorf("%d of 200 were reported", n)
		}
		if n := busiest(net.History()); n > 50 {
			t.Errorf("%d queries in the busiest second, want at most 50", n)
		}
	})
}

// TestRefreshFlood refreshes more names all the time than the tracker may query. Another name is queried nevertheless.
func TestRefreshFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 201, 60)
		r := newTestEnv(net, follow.Options{Rate: 20, Parallel: 64}, "192.0.2.53")
		for _, n := range names {
			r.Follow(n, follow.Both)
		}
		r.start(t)
		for age := 30; age < 300; age += 5 {
			r.until(time.Duration(age) * time.Second)
			for _, n := range names[1:] {
				r.Refresh(n)
			}
		}
		if s, _ := r.State(names[0], follow.IPv4); time.Since(s.LastSuccess) > 90*time.Second {
			t.Errorf("asked for %v ago, with a TTL of a minute", time.Since(s.LastSuccess))
		}
	})
}

// TestDeadNames follows names for which the resolver never replies, as their owners can arrange, and other names. The
// others neither fail nor wait.
func TestDeadNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := exchange(func(ctx context.Context, _ resolve.Server, m *dns.Msg) (*dns.Msg, error) {
			if strings.HasPrefix(m.Question[0].Name, "dead") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return replyOf(t, m, "NOERROR\n"+m.Question[0].Name+" 60 A 203.0.113.1"), nil
		})
		r := newTestEnv(simnet.New(1), follow.Options{Exchanger: ex}, "192.0.2.53")
		r.start(t)
		var good []dnsname.Name
		for i := range 20 {
			good = append(good, name(fmt.Sprintf("good%d.example.net.", i)))
			r.Follow(good[i], follow.IPv4)
			r.until(time.Duration(i) * time.Second)
		}
		for i := range 200 {
			r.Follow(name(fmt.Sprintf("dead%d.example.net.", i)), follow.Both)
		}
		for age := 120; age < 1200; age += 5 { // after 120 s each name has been queried once
			r.until(time.Duration(age) * time.Second)
			for _, n := range good {
				if s, _ := r.State(n, follow.IPv4); s.Err != nil || time.Since(s.ValidUntil) > 0 {
					t.Fatalf("after %d s, %s is %s, over for %v", age, n, brief(s), time.Since(s.ValidUntil))
				}
			}
		}
	})
}

// TestSpread restarts with 5,000 names whose TTL of an hour has expired: the queries are spread over the whole
// interval.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 5000, 3600)
		r := newTestEnv(net, follow.Options{}, "192.0.2.53")
		r.start(t)
		old := follow.State{Addrs: addrs("203.0.113.1"), TTL: time.Hour, Answer: follow.Found,
			ValidUntil: time.Now().Add(-time.Hour)}
		for _, n := range names {
			r.Seed(n, follow.IPv4, old)
			r.Follow(n, follow.IPv4)
		}
		r.until(1801 * time.Second)
		minutes, seen := make([]int, 30), map[dnsname.Name]bool{}
		for _, q := range net.History() {
			if !seen[q.Name] { // the first ones are due again at the end
				minutes[q.At/time.Minute]++
			}
			seen[q.Name] = true
		}
		if len(seen) != 5000 {
			t.Errorf("%d names were asked for, want 5000", len(seen))
		}
		for i, n := range minutes {
			if n < 80 || n > 260 { // 167 expected, with a standard deviation of 13
				t.Errorf("%d queries in minute %d", n, i)
			}
		}
		if n := len(r.changesSince(0)); n != 0 {
			t.Errorf("%d changes of what was known", n)
		}
	})
}

// BenchmarkCycle refreshes 1,000 targets with 100,000 followers once. "tracker" gets replies without a network, to
// measure the tracker itself. "udp" uses sockets and includes the client and the server.
func BenchmarkCycle(b *testing.B) {
	instant := exchange(func(_ context.Context, _ resolve.Server, query *dns.Msg) (*dns.Msg, error) {
		return answer(query),
			nil
	})
	b.Run("tracker", func(b *testing.B) { benchmarkCycle(b, instant, "192.0.2.53") })
	b.Run("udp", func(b *testing.B) {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		handler := dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) { w.WriteMsg(answer(m)) })
		server := &dns.Server{PacketConn: conn, Handler: handler}
		go server.ActivateAndServe()
		b.Cleanup(func() { server.Shutdown() })
		benchmarkCycle(b, &resolve.Client{}, conn.LocalAddr().String())
	})
}

func answer(query *dns.Msg) *dns.Msg {
	r := new(dns.Msg).SetReply(query)
	h := dns.RR_Header{Name: query.Question[0].Name, Rrtype: query.Question[0].Qtype, Class: dns.ClassINET, Ttl: 3600}
	if h.Rrtype == dns.TypeA {
		r.Answer = []dns.RR{&dns.A{Hdr: h, A: net.IPv4(203, 0, 113, 1)}}
	} else {
		r.Answer = []dns.RR{&dns.AAAA{Hdr: h, AAAA: net.ParseIP("2001:db8::1")}}
	}
	return r
}

func benchmarkCycle(b *testing.B, ex resolve.Exchanger, server string) {
	b.Helper()
	var done atomic.Int64
	counted := exchange(func(ctx context.Context, s resolve.Server, m *dns.Msg) (*dns.Msg, error) {
		defer done.Add(1)
		return ex.Exchange(ctx, s, m)
	})
	srv, err := resolve.ParseServer(server)
	if err != nil {
		b.Fatal(err)
	}
	tr := follow.New(follow.Options{Exchanger: counted, Servers: []resolve.Server{srv}, Changed: func(follow.Change) {},
		Rate: 1 << 20})
	var names []dnsname.Name
	for i := range 1000 {
		names = append(names, name(fmt.Sprintf("t%d.example.net.", i)))
	}
	for i := range 100_000 {
		tr.Follow(names[i%1000], follow.Both)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- tr.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	cycle := func(want int64) {
		for done.Load() < want {
			time.Sleep(50 * time.Microsecond)
		}
	}
	cycle(2000)
	b.ReportAllocs()
	for b.Loop() {
		// Names in flight are not queried again, so a few queries of a cycle may be missing.
		want := done.Load() + 1990
		for _, n := range names {
			tr.Refresh(n)
		}
		cycle(want)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/2000, "µs/lookup")
}

// BenchmarkMemory measures the memory of one followed family of a name after its first answer.
func BenchmarkMemory(b *testing.B) {
	const n = 50_000
	before := heap()
	var done atomic.Int64
	ex := exchange(func(_ context.Context, _ resolve.Server, m *dns.Msg) (*dns.Msg, error) { return answer(m), nil })
	tr := follow.New(follow.Options{Exchanger: ex, Servers: make([]resolve.Server, 1), Rate: 1 << 20,
		Changed: func(follow.Change) { done.Add(1) }})
	for i := range n {
		tr.Follow(name(fmt.Sprintf("host-%d.cdn.example.net.", i)), follow.Both)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- tr.Run(ctx) }()
	for done.Load() < 2*n {
		time.Sleep(time.Millisecond)
	}
	for b.Loop() {
		b.ReportMetric(float64(heap()-before-8<<20)/n/2, "B/family") // without the ring buffer of the limiter
	}
	cancel()
	<-ended
	runtime.KeepAlive(tr)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
