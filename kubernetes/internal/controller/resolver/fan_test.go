package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

const zone = "zone example.net.\nwww.example.net. 60 A 203.0.113.1\n"

// testFan returns a fan with pods that each answer from a script. Pods are chosen in the order of their addresses.
func testFan(net *simnet.Net, width int, scripts ...string) *fan {
	p := newPods(time.Now())
	p.shuffle = func(int, func(i, j int)) {}
	p.weight = func(string, netip.AddrPort) uint64 { return 0 }
	var addrs []netip.AddrPort
	for i, s := range scripts {
		pod := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		net.MustServer(pod.String(), s)
		addrs = append(addrs, netip.AddrPortFrom(pod, 53))
	}
	p.set(addrs, time.Now())
	return &fan{client: net, pods: p, width: func(dnsname.Name) int { return width }, home: dnsname.Name.String}
}

func askFan(t *testing.T, f *fan, name string) (*dns.Msg, time.Duration, error) {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(name, dns.TypeA)
	begin := time.Now()
	reply, err := f.Exchange(context.Background(), resolve.Server{}, q)
	return reply, time.Since(begin), err
}

func TestFan(t *testing.T) {
	for _, tc := range []struct {
		name    string
		width   int
		scripts []string
		rcode   int
		took    time.Duration
		asked   int // number of queried pods
	}{
		{"one pod is enough for one address", 1, []string{zone, zone, zone}, dns.RcodeSuccess, 0, 1},
		{"several pods learn", 2, []string{zone, zone, zone}, dns.RcodeSuccess, 0, 2},
		{"a silent pod costs a moment", 1, []string{zone + "fault timeout *", zone}, dns.RcodeSuccess, hedgeAfter, 2},
		{"a dead pod costs nothing", 1, []string{zone + "fault unreachable *", zone}, dns.RcodeSuccess, 0, 2},
		{"a slow pod is not waited for", 2, []string{zone + "latency 1s", zone}, dns.RcodeSuccess, 0, 2},
		{"who knows the name is right", 2, []string{zone + "fault nxdomain *", zone + "latency 20ms"}, dns.RcodeSuccess,
			20 * time.Millisecond, 2},
		{"one whose upstream fails is not the last word", 1, []string{zone + "fault servfail *", zone, zone},
			dns.RcodeSuccess, 0, 2},
		{"of two that fail there is no third", 1, []string{zone + "fault servfail *", zone + "fault servfail *", zone},
			dns.RcodeServerFailure, 0, 2},
		{"a failure is an answer when there is no better", 2, []string{zone + "fault servfail *", zone + "fault nxdomain *"},
			dns.RcodeNameError, 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				f := testFan(net, tc.width, tc.scripts...)
				reply, took, err := askFan(t, f, "www.example.net.")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * askTimeout) // wait for the slow ones, too
				if reply.Rcode != tc.rcode || took != tc.took {
					t.Errorf("%s after %v, want %s after %v", dns.RcodeToString[reply.Rcode], took, dns.RcodeToString[tc.rcode],
						tc.took)
				}
				servers := map[netip.AddrPort]bool{}
				for _, q := range net.History() {
					servers[q.Server] = true
				}
				if len(servers) != tc.asked {
					t.Errorf("%d pods were asked, want %d", len(servers), tc.asked)
				}
			})
		})
	}
}

func TestFanWithoutPods(t *testing.T) {
	f := testFan(simnet.New(1), 1)
	if _, _, err := askFan(t, f, "www.example.net."); !errors.Is(err, errNoPods) {
		t.Errorf("got %v, want %v", err, errNoPods)
	}
}

// TestSilentPodIsLeftAlone queries many names while one pod is silent. After the first few, no query waits for it, and
// it is used again when it is back.
func TestSilentPodIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		f := testFan(net, 1, zone+"fault timeout *", zone)
		waited := 0
		for range 20 {
			if _, took, err := askFan(t, f, "www.example.net."); err != nil {
				t.Fatal(err)
			} else if took > 0 {
				waited++
			}
			time.Sleep(3 * time.Second)
		}
		if waited != downAfter {
			t.Errorf("%d of 20 lookups waited for the silent pod, want %d", waited, downAfter)
		}
		if n, _ := f.pods.up(time.Now()); n != 1 {
			t.Errorf("%d pods are up, want 1", n)
		}
		net.MustServer("10.0.0.1", "heal")
		time.Sleep(lastRetry)
		askFan(t, f, "www.example.net.")
		time.Sleep(askTimeout)
		if n, _ := f.pods.up(time.Now()); n != 2 {
			t.Errorf("%d pods are up after the silent one came back, want 2", n)
		}
	})
}

// TestPodsChange checks that a pod keeps its health when others come and go.
func TestPodsChange(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:53"), netip.MustParseAddrPort("10.0.0.2:53")
	now := time.Now()
	p := newPods(now)
	p.set([]netip.AddrPort{a}, now)
	for range downAfter {
		p.report(p.all[0], false, now)
	}
	p.set([]netip.AddrPort{b, a, b}, now)
	if len(p.all) != 2 {
		t.Fatalf("%d pods, want 2", len(p.all))
	}
	if n, _ := p.up(now); n != 1 {
		t.Errorf("%d pods are up, want 1", n)
	}
	p.set([]netip.AddrPort{a}, now)
	if n, since := p.up(now.Add(time.Second)); n != 0 || !since.Equal(now.Add(time.Second)) {
		t.Errorf("%d pods are up, none was until %v; want 0 until now", n, since)
	}
	chosen, _ := p.pick("www.example.net.", 1, now)
	if len(chosen) != 1 {
		t.Error("when all pods are down one must be asked nevertheless")
	}
}

// TestHome checks that a name is queried at the same pod each time, at another one while that is down, and that names
// are distributed.
func TestHome(t *testing.T) {
	now := time.Now()
	p := newPods(now)
	var all []netip.AddrPort
	for i := range 4 {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 53))
	}
	p.set(all, now)
	homes := map[netip.AddrPort]int{}
	for i := range 400 {
		name := fmt.Sprintf("n%d.example.net.", i)
		chosen, others := p.pick(name, 1, now)
		homes[chosen[0].addr]++
		if len(others) != 3 {
			t.Fatalf("%d others", len(others))
		}
		for range 5 {
			again, _ := p.pick(name, 3, now)
			if again[0] != chosen[0] {
				t.Fatalf("%s is asked for at %v and at %v", name, chosen[0].addr, again[0].addr)
			}
		}
	}
	for a, n := range homes {
		if n < 60 || n > 140 {
			t.Errorf("%v is the home of %d of 400 names", a, n)
		}
	}
	home, _ := p.pick("www.example.net.", 1, now)
	for range downAfter {
		p.report(home[0], false, now)
	}
	if other, _ := p.pick("www.example.net.", 1, now); other[0] == home[0] {
		t.Error("a pod that is down is the home of a name")
	}
}

// TestInTheDark checks when the current addresses are unknown, whether or not it was called during that time.
func TestInTheDark(t *testing.T) {
	a := netip.MustParseAddrPort("10.0.0.1:53")
	t0 := time.Now()
	const long = time.Hour
	tests := []struct {
		name string
		do   func(p *pods, now time.Time)
		dark bool
	}{
		{"answers", func(p *pods, now time.Time) { p.report(p.all[0], true, now) }, false},
		{"quiet for a moment", func(p *pods, now time.Time) { p.report(p.all[0], true, now.Add(-grace)) }, false},
		{"silent, not often enough to be down", func(p *pods, now time.Time) {
			p.report(p.all[0], true, now.Add(-2*grace))
			p.report(p.all[0], false, now)
		}, true},
		{"down until a moment ago, not called meanwhile", func(p *pods, now time.Time) {
			for range downAfter {
				p.report(p.all[0], false, now.Add(-long/2))
			}
			p.report(p.all[0], true, now.Add(-time.Second))
		}, true},
		{"down until a while ago", func(p *pods, now time.Time) {
			for range downAfter {
				p.report(p.all[0], false, now.Add(-long/2))
			}
			p.report(p.all[0], true, now.Add(-2*grace))
			p.report(p.all[0], true, now)
		}, false},
		{"there was none until a moment ago", func(p *pods, now time.Time) {
			p.set(nil, now.Add(-long/2))
			p.set([]netip.AddrPort{a}, now.Add(-time.Second))
			p.report(p.all[0], true, now)
		}, true},
		{"we work since a moment ago", func(p *pods, now time.Time) {
			p.begin(now.Add(-time.Second))
			p.report(p.all[0], true, now)
		}, true},
	}
	for _, tt := range tests {
		p := newPods(t0)
		p.set([]netip.AddrPort{a}, t0)
		now := t0.Add(long)
		tt.do(p, now)
		if got := p.inTheDark(now); got != tt.dark {
			t.Errorf("%s: in the dark is %v", tt.name, got)
		}
	}
}
