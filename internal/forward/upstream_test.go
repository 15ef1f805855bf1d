package forward_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

type resolveServer = resolve.Server

// TestNextUpstream checks when another upstream is queried, and how long that takes.
func TestNextUpstream(t *testing.T) {
	good := replies(t, 0, address)
	one, two := "192.0.2.1", "192.0.2.2"
	tests := []struct {
		name     string
		handlers []handler
		want     answer
		asked    []string
		time     time.Duration
	}{
		{"first replies", []handler{good, good}, positive(0), []string{one}, 0},
		{"first refuses", []handler{replies(t, dns.RcodeRefused, ""), good}, positive(0), []string{one, two}, 0},
		{"first fails", []handler{replies(t, dns.RcodeServerFailure, ""), good}, positive(0), []string{one, two}, 0},
		{"first cannot be reached", []handler{broken, good}, positive(0), []string{one, two}, 0},
		{"first is silent", []handler{silent, good}, positive(0), []string{one, two}, 450 * time.Millisecond},
		{"first is slow, second slower", []handler{after(500*time.Millisecond, good), after(time.Second, good)}, positive(0),
			[]string{one, two}, 500 * time.Millisecond},
		{"a negative answer is an answer", []handler{replies(t, dns.RcodeNameError, "--\n"+soa), good},
			answer{Rcode: "NXDOMAIN", EDE: wire.EDENone, Authority: []string{soa300}}, []string{one}, 0},
		{"all refuse", []handler{replies(t, dns.RcodeRefused, ""), replies(t, dns.RcodeRefused, "")},
			failed(wire.EDENoReachable), []string{one, two}, 0},
		{"none can be reached", []handler{broken, broken}, failed(wire.EDENetworkError), []string{one, two}, 0},
		{"all silent", []handler{silent, silent}, failed(wire.EDENoReachable), []string{one, two, one, two, one},
			2 * time.Second},
		{"the only one silent", []handler{silent}, failed(wire.EDENoReachable), []string{one, one, one}, 2 * time.Second},
		{"first cannot be reached, second has found a forgery",
			[]handler{broken, says(t, dns.RcodeServerFailure, dns.ExtendedErrorCodeDNSBogus)},
			failed(int(dns.ExtendedErrorCodeDNSBogus)), []string{one, two}, 0},
		{"each has its time", []handler{after(300*time.Millisecond, replies(t, dns.RcodeRefused, "")),
			after(300*time.Millisecond, good), good},
			positive(0), []string{one, two}, 600 * time.Millisecond},
		{"silent and failing", []handler{silent, replies(t, dns.RcodeServerFailure, "")}, failed(wire.EDENoReachable),
			[]string{one, two, one, one}, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, n := start(t, forward.Config{}, tt.handlers...)
				took(t, tt.time, func() { check(t, f, n, tt.want, tt.asked...) })
			})
		})
	}
}

// TestLostPacket loses the first query to the only upstream.
func TestLostPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		f, n := start(t, forward.Config{}, func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
			if q.Question[0].Qtype == dns.TypeA && lost.CompareAndSwap(false, true) {
				return silent(ctx, q)
			}
			return replies(t, 0, address)(ctx, q)
		})
		took(t, 450*time.Millisecond, func() { check(t, f, n, positive(0), "192.0.2.1", "192.0.2.1") })
	})
}

// TestTCPOnce checks that queries over TCP are not repeated.
func TestTCPOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(1)
		s.Transport = resolve.TCP
		n := &network{t: t, servers: map[resolveServer]handler{s: silent}}
		f := run(t, forward.Config{Upstreams: []resolveServer{s}, Exchanger: n})
		check(t, f, n, failed(wire.EDENoReachable), "192.0.2.1")
	})
}

// TestHealth has an upstream that goes down and comes back. Names differ, so that the cache does not answer.
func TestHealth(t *testing.T) {
	for _, dead := range []struct {
		name string
		handler
		down time.Duration // time from the first failure
	}{{"silent", silent, 3 * time.Second}, {"broken", broken, 2 * time.Second}} {
		t.Run(dead.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := replies(t, 0, "--\n"+soa)
				f, n := start(t, forward.Config{}, good, good)
				count := 0
				asks := func(want ...string) {
					t.Helper()
					count++
					ask(t, f, strings.Repeat("a", count)+".example.org.", dns.TypeA)
					var got []string
					for _, a := range n.history() {
						got = append(got, strings.Fields(a)[0])
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("asked (-want +got)\n%s", diff)
					}
				}
				asks("192.0.2.1")
				n.set(server(1), dead.handler)
				asks("192.0.2.1", "192.0.2.2") // not known to be down yet
				gauge(t, f, "192.0.2.1:53", 1)
				time.Sleep(dead.down)
				synctest.Wait()
				gauge(t, f, "192.0.2.1:53", 0)
				took(t, 0, func() { asks("192.0.2.2") })
				n.set(server(1), replies(t, dns.RcodeRefused, "")) // any reply counts as alive
				time.Sleep(2 * time.Second)
				synctest.Wait()
				gauge(t, f, "192.0.2.1:53", 1)
				asks("192.0.2.1", "192.0.2.2")
				time.Sleep(time.Hour)
				n.mu.Lock()
				if len(n.asked) != 0 {
					t.Errorf("upstreams that are up were asked %v", n.asked)
				}
				n.mu.Unlock()
			})
		})
	}
}

// TestSlowNames looks up names whose servers are dead through a healthy upstream. The upstream must not count as down.
func TestSlowNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
			if strings.HasSuffix(q.Question[0].Name, "dead.test.") {
				return silent(ctx, q)
			}
			return replies(t, 0, address)(ctx, q)
		})
		for _, name := range []string{"a.dead.test.", "b.dead.test.", "c.dead.test.", "d.dead.test."} {
			ask(t, f, name, dns.TypeA)
		}
		gauge(t, f, "192.0.2.1:53", 1)
		n.history()
		check(t, f, n, positive(0), "192.0.2.1")
		time.Sleep(time.Minute)
		n.history()
		for i := range 20 {
			go ask(t, f, strings.Repeat("e", i+1)+".dead.test.", dns.TypeA)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := n.probes(); got > 3 {
			t.Errorf("%d probes for 20 slow names in 3 seconds", got)
		}
	})
}

// TestAllDown checks that questions fail at once when all upstreams are known to be down.
func TestAllDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, silent, silent)
		took(t, 2*time.Second, func() { ask(t, f, "a.example.org.", dns.TypeA) })
		time.Sleep(5 * time.Second)
		n.history()
		took(t, 0, func() { check(t, f, n, failed(wire.EDENoReachable)) })
		n.set(server(2), replies(t, 0, address))
		time.Sleep(2 * time.Second)
		check(t, f, n, positive(0), "192.0.2.2")
	})
}

// TestProbes counts the probes: one per second, however many questions fail.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, silent)
		for i := range 5 {
			go ask(t, f, strings.Repeat("a", i+1)+".example.org.", dns.TypeA)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := n.probes(); got < 9 || got > 11 {
			t.Errorf("%d probes in 10 seconds", got)
		}
	})
}

// gather returns the value of one metric.
func gather(t *testing.T, f *forward.Forwarder, name, label string) float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for _, c := range f.Collectors() {
		reg.MustRegister(c)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "nameplane_forward_"+name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += l.GetValue() + " "
			}
			if strings.TrimSpace(labels) == label {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

func gauge(t *testing.T, f *forward.Forwarder, upstream string, want float64) {
	t.Helper()
	if got := gather(t, f, "upstream_up", upstream); got != want {
		t.Errorf("upstream_up of %s is %v, want %v", upstream, got, want)
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, keepsOld, replies(t, dns.RcodeServerFailure, ""), replies(t, 0, address))
		ask(t, f, "www.example.org.", dns.TypeA)
		ask(t, f, "www.example.org.", dns.TypeA)
		ask(t, f, "localhost.", dns.TypeA)
		n.set(server(1), broken)
		n.set(server(2), silent)
		time.Sleep(300 * time.Second)
		go ask(t, f, "www.example.org.", dns.TypeA)
		synctest.Wait()
		go ask(t, f, "www.example.org.", dns.TypeA)
		synctest.Wait()
		fill(t, f, mostInFlight-1)
		ask(t, f, "www2.example.org.", dns.TypeA)
		if got := gather(t, f, "in_flight", ""); got != mostInFlight {
			t.Errorf("in_flight is %v, want %d", got, mostInFlight)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, tt := range []struct {
			name, label string
			want        float64
		}{
			{"questions_total", "hit", 1},
			{"questions_total", "miss", 1 + mostInFlight},
			{"questions_total", "local", 1},
			{"questions_total", "stale", 1},
			{"questions_total", "joined", 1},
			{"questions_total", "rejected", 1},
			{"upstream_queries_total", "SERVFAIL 192.0.2.1:53", 1},
			{"upstream_queries_total", "NOERROR 192.0.2.2:53", 1},
			{"upstream_queries_total", "none 192.0.2.1:53", mostInFlight},
			{"upstream_duration_seconds", "192.0.2.2:53", 1},
			{"upstream_up", "192.0.2.1:53", 0},
			{"cache_entries", "", mostInFlight},
			{"in_flight", "", 0},
		} {
			if got := gather(t, f, tt.name, tt.label); got != tt.want {
				t.Errorf("%s of %q is %v, want %v", tt.name, tt.label, got, tt.want)
			}
		}
		if got := gather(t, f, "cache_bytes", ""); got < 300*mostInFlight || got > 500*mostInFlight {
			t.Errorf("cache_bytes is %v", got)
		}
	})
}
