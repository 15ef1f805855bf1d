package follow_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

const oneTarget = "zone example.net.\ncdn.example.net. 60 A 203.0.113.1\n"

// TestChange compares all fields of the reported changes.
func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer("192.0.2.53",
			"zone example.net.\nwww.example.net. 90 CNAME cdn.example.net.\ncdn.example.net. 60 A 203.0.113.1\n"+
				"at 10s fault servfail")
		began := time.Now()
		r := newTestEnv(net, follow.Options{Rand: noJitter}, "192.0.2.53")
		r.Follow(name("www.example.net."), follow.IPv4)
		r.start(t)
		r.until(time.Minute)
		first := follow.State{
			Addrs: addrs("203.0.113.1"), TTL: time.Minute, Learned: began, ValidUntil: began.Add(time.Minute),
			Chain:  []follow.Link{{Name: name("www.example.net."), Target: name("cdn.example.net."), TTL: 90 * time.Second}},
			Answer: follow.Found, Since: began, LastSuccess: began, NextAttempt: began.Add(54 * time.Second),
		}
		first.AnswerChain = first.Chain
		second := first
		second.Err = &follow.Error{Cause: follow.ServFail, Server: "192.0.2.53:53"}
		second.Failures, second.Since, second.NextAttempt = 1, began.Add(54*time.Second), began.Add(59*time.Second)
		want := []reported{
			{0, follow.Change{Name: name("www.example.net."), Family: follow.IPv4, New: first}},
			{54 * time.Second, follow.Change{Name: name("www.example.net."), Family: follow.IPv4, Old: first, New: second}},
		}
		if diff := cmp.Diff(want, r.changesSince(0), cmp.AllowUnexported(reported{}),
			cmpopts.EquateComparable(name("."), first.Addrs[0])); diff != "" {
			t.Errorf("reported changes (-want +got):\n%s", diff)
		}
	})
}

// TestNotFollowed checks that nothing is known, done or kept for a name without followers.
func TestNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestEnv(simnet.New(1), follow.Options{}, "192.0.2.53")
		r.Unfollow(name(target), follow.Both)
		if r.Refresh(name(target)) {
			t.Error("Refresh says that it is followed")
		}
		r.Follow(name(target), follow.IPv4)
		if _, ok := r.State(name(target), follow.IPv6); ok {
			t.Error("State knows a family that nobody follows")
		}
		if !r.Refresh(name(target)) {
			t.Error("Refresh says that it is not followed")
		}
		r.Unfollow(name(target), follow.IPv4)
		if got := gather(t, r.Tracker)["nameplane_follow_names"]; got != 0 {
			t.Errorf("%v names are left", got)
		}
	})
}

func TestNoServers(t *testing.T) {
	if err := follow.New(follow.Options{}).Run(t.Context()); err == nil {
		t.Error("Run without servers returned nil")
	}
}

// TestUnfollowInFlight removes the last follower of a name while its lookup is in flight.
func TestUnfollowInFlight(t *testing.T) {
	tests := []struct {
		name    string
		back    bool // and follows again before the reply
		changes int
	}{
		{"goes", false, 0},
		{"comes back", true, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				net.MustServer("192.0.2.53", oneTarget+"latency 1s")
				r := newTestEnv(net, follow.Options{}, "192.0.2.53")
				r.start(t)
				r.Follow(name(target), follow.IPv4)
				r.until(500 * time.Millisecond)
				r.Unfollow(name(target), follow.IPv4)
				if _, ok := r.State(name(target), follow.IPv4); ok {
					t.Error("still followed")
				}
				r.until(700 * time.Millisecond)
				if tt.back {
					r.Follow(name(target), follow.IPv4)
				}
				r.until(30 * time.Second)
				if n := len(r.changesSince(0)); n != tt.changes {
					t.Errorf("%d changes, want %d", n, tt.changes)
				}
				if n := len(net.History()); n != 1 {
					t.Errorf("%d queries, want 1", n)
				}
				if got := gather(t, r.Tracker)["nameplane_follow_names"]; got != float64(tt.changes) {
					t.Errorf("%v names are left", got)
				}
			})
		})
	}
}

// TestEnd cancels the context while lookups and a callback are running. Run waits for the callback. A cancelled lookup
// is no failure.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer("192.0.2.53", oneTarget+"slow.example.net. 60 A 203.0.113.2\nfault timeout slow.example.net.")
		var calls atomic.Int32
		r := newTestEnv(net, follow.Options{Changed: func(follow.Change) {
			time.Sleep(time.Minute)
			calls.Add(1)
		}}, "192.0.2.53")
		r.start(t)
		r.Follow(name(target), follow.IPv4)
		r.Follow(name("slow.example.net."), follow.IPv4)
		r.until(time.Second)
		r.end()
		if calls.Load() != 1 || net.Age() != time.Minute {
			t.Errorf("Run ended after %v and %d callbacks, want 1m and 1", net.Age(), calls.Load())
		}
		if s, _ := r.State(name("slow.example.net."), follow.IPv4); s.Failures != 0 || s.Err != nil {
			t.Errorf("the attempt that was given up counts: %+v", s)
		}
	})
}

// TestSlowCallback blocks the callback of one name for an hour. Other names are reported in time. The slow one then
// gets all changes at once, from its last reported state.
func TestSlowCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer("192.0.2.53", `
			zone example.net.
			slow.example.net. 60 A 203.0.113.1
			fast.example.net. 60 A 203.0.113.1
			at 5m set slow.example.net. 60 A 203.0.113.2
			at 10m set slow.example.net. 60 A 203.0.113.3
			at 10m set fast.example.net. 60 A 203.0.113.3
		`)
		var mu sync.Mutex
		var got []string
		r := newTestEnv(net, follow.Options{Rand: noJitter, Changed: func(c follow.Change) {
			mu.Lock()
			got = append(got, fmt.Sprint(net.Age(), c.Name, c.Old.Addrs, c.New.Addrs))
			mu.Unlock()
			if c.Name == name("slow.example.net.") {
				time.Sleep(time.Hour)
			}
		}}, "192.0.2.53")
		r.Follow(name("slow.example.net."), follow.IPv4)
		r.start(t)
		r.until(time.Second)
		r.Follow(name("fast.example.net."), follow.IPv4)
		r.until(2*time.Hour + time.Minute)
		want := []string{
			"0s slow.example.net. [] [203.0.113.1]",
			"1s fast.example.net. [] [203.0.113.1]",
			"10m49s fast.example.net. [203.0.113.1] [203.0.113.3]",
			"1h0m0s slow.example.net. [203.0.113.1] [203.0.113.3]",
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestOneCallbackPerName changes both families of names all the time, while followers come and go.
func TestOneCallbackPerName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		server := net.MustServer("192.0.2.53", "zone example.net.\nlatency 1ms 90ms")
		var running [3]atomic.Int32
		var calls atomic.Int32
		r := newTestEnv(net, follow.Options{Rate: 1e6, Changed: func(c follow.Change) {
			n := &running[c.Name.Label()[0]-'a']
			if n.Add(1) > 1 {
				t.Errorf("two callbacks for %v", c.Name)
			}
			time.Sleep(150 * time.Millisecond)
			n.Add(-1)
			calls.Add(1)
		}}, "192.0.2.53")
		r.start(t)
		for i := range 300 {
			n := fmt.Sprintf("%c.example.net.", 'a'+i%3)
			for f, data := range map[string]string{"A": "203.0.113.%d", "AAAA": "2001:db8::%d"} {
				if err := server.Do(fmt.Sprintf("set %s 60 %s "+data, n, f, i%250)); err != nil {
					t.Fatal(err)
				}
			}
			if i%7 == 0 {
				r.Unfollow(name(n), follow.Both)
			}
			r.Follow(name(n), follow.Both)
			r.Refresh(name(n))
			time.Sleep(30 * time.Millisecond)
		}
		if calls.Load() < 100 {
			t.Errorf("only %d callbacks", calls.Load())
		}
	})
}

// TestParallel checks that no server is queried for more names at once than allowed, and that the second server is
// used.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most, total := map[resolve.Server]int{}, map[resolve.Server]int{}, 0
		ex := exchange(func(_ context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
			mu.Lock()
			now[server]++
			total++
			most[server] = max(most[server], now[server])
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now[server]--
			mu.Unlock()
			return replyOf(t, query, "NXDOMAIN"), nil
		})
		r := newTestEnv(simnet.New(1), follow.Options{Exchanger: ex, Parallel: 4, Rate: 1000}, "192.0.2.1", "192.0.2.2")
		for i := range 80 {
			r.Follow(name(fmt.Sprintf("n%d.example.net.", i)), follow.IPv4)
		}
		r.start(t)
		r.until(10 * time.Second)
		want := map[resolve.Server]int{}
		for _, s := range []string{"192.0.2.1", "192.0.2.2"} {
			srv, _ := resolve.ParseServer(s)
			srv.Once = true
			want[srv] = 4
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, most, cmpopts.EquateComparable(resolve.Server{})); diff != "" || total != 80 {
			t.Errorf("%d names asked; at once (-want +got):\n%s", total, diff)
		}
	})
}

// gather returns the metrics of a tracker; metrics with labels are added up.
func gather(t *testing.T, tr *follow.Tracker) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(tr.Collectors()...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			out[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer("192.0.2.53", oneTarget+`
			a.example.net. 60 A 203.0.113.2
			b.example.net. 60 A 203.0.113.3
			fault timeout
			at 5s heal
		`)
		r := newTestEnv(net, follow.Options{Rand: noJitter, Rate: 2, Timeout: 3 * time.Second}, "192.0.2.53", "192.0.2.53")
		r.Follow(name(target), follow.IPv4)
		r.Follow(name(target), follow.IPv4)
		r.Follow(name("a.example.net."), follow.IPv4)
		r.Follow(name("b.example.net."), follow.IPv4)
		r.start(t)
		want := map[string]float64{
			"nameplane_follow_names": 3, "nameplane_follow_followers": 4, "nameplane_follow_failing": 3,
			"nameplane_follow_overdue":     0,
			"nameplane_follow_resolver_up": 0, "nameplane_follow_queries_total": 3, "nameplane_follow_queries_held_total": 1,
			"nameplane_follow_lookups_total": 3, "nameplane_follow_changes_total": 3,
			"nameplane_follow_query_duration_seconds": 0, "nameplane_follow_longest_chain": 0,
			"nameplane_follow_oldest_success_timestamp_seconds": 0,
			"nameplane_follow_next_attempt_timestamp_seconds":   float64(time.Now().Unix() + 3 + 5),
		}
		r.until(4500 * time.Millisecond)
		if diff := cmp.Diff(want, gather(t, r.Tracker)); diff != "" {
			t.Errorf("while the resolver is down (-want +got):\n%s", diff)
		}
		r.until(20 * time.Second)
		got := gather(t, r.Tracker)
		if got["nameplane_follow_resolver_up"] != 1 || got["nameplane_follow_failing"] != 0 ||
			got["nameplane_follow_query_duration_seconds"] == 0 ||
			got["nameplane_follow_oldest_success_timestamp_seconds"] < float64(time.Now().Unix()-20) {
			t.Errorf("after that: %v", got)
		}
	})
}

// TestChainWithoutAddresses checks the CNAMEs of an answer that has no addresses.
func TestChainWithoutAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer("192.0.2.53",
			"zone example.net.\nwww.example.net. 90 CNAME cdn.example.net.\ncdn.example.net. 60 A 203.0.113.1\n"+
				"old.example.net. 90 CNAME gone.example.net.")
		r := newTestEnv(net, follow.Options{Rand: noJitter}, "192.0.2.53")
		r.Follow(name("www.example.net."), follow.Both)
		r.Follow(name("old.example.net."), follow.IPv4)
		r.start(t)
		for _, tt := range []struct {
			name   string
			family follow.Family
			answer follow.Cause
			target string
		}{
			{"www.example.net.", follow.IPv4, follow.Found, "cdn.example.net."},
			{"www.example.net.", follow.IPv6, follow.NoData, "cdn.example.net."},
			{"old.example.net.", follow.IPv4, follow.NXDomain, "gone.example.net."},
		} {
			st, _ := r.State(name(tt.name), tt.family)
			if st.Answer != tt.answer || len(st.AnswerChain) != 1 || st.AnswerChain[0].Target != name(tt.target) {
				t.Errorf("%s %v: %s with chain %v, want %s with target %s", tt.name, tt.family, st.Answer, st.AnswerChain,
					tt.answer, tt.target)
			}
		}
	})
}
