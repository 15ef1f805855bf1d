package follow_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/simnet"
)

// TestChainInCache follows a chain whose CNAMEs enter and leave the resolver's cache at different times, because other
// clients query parts of it. Nothing changes. So nothing is reported, except at first that TTLs are longer than they
// seemed.
func TestChainInCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer("192.0.2.51", "zone example.org.\nwww.example.org. 100 CNAME mid.example.com.\nlatency 5ms 50ms")
		net.MustServer("192.0.2.52", "zone example.com.\nmid.example.com. 70 CNAME cdn.example.net.\nlatency 5ms 50ms")
		net.MustServer("192.0.2.53", "zone example.net.\ncdn.example.net. 60 A 203.0.113.1\nlatency 5ms 50ms")
		net.MustServer("192.0.2.1",
			"forward example.org. 192.0.2.51\nforward example.com. 192.0.2.52\nforward example.net. 192.0.2.53\nlatency 1ms")
		r := newTestEnv(net, follow.Options{Rand: rand.New(rand.NewPCG(1, 1)).Float64}, "192.0.2.1")
		others := newTestEnv(net, follow.Options{Rand: rand.New(rand.NewPCG(1, 2)).Float64}, "192.0.2.1")
		others.Follow(name("cdn.example.net."), follow.IPv4)
		others.start(t)
		others.until(17 * time.Second)
		others.Follow(name("mid.example.com."), follow.IPv4)
		r.start(t)
		r.until(31 * time.Second)
		r.Follow(name("www.example.org."), follow.IPv4)
		r.until(6 * time.Hour)
		changes := r.changesSince(0)
		if n, last := len(changes), changes[len(changes)-1]; n > 5 || last.at > 5*time.Minute || last.New.TTL != time.Minute {
			for _, c := range changes {
				t.Logf("%v: %s", c.at, brief(c.New))
			}
			t.Errorf("%d changes were reported", n)
		}
	})
}
