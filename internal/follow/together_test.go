package follow_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/simnet"
)

// TestFamiliesReportedTogether changes both families of targets at once, again and again, with random waits. When the
// change of one family is reported, the other has changed already.
func TestFamiliesReportedTogether(t *testing.T) {
	for _, tt := range []struct {
		name, resolver string
		parted         int // how many of a hundred moves may be seen as two changes
	}{
		{"without a cache", "192.0.2.53", 0},
		// Two answers that a cache fetched in two seconds of its clock expire in two different seconds.
		{"with a cache", "192.0.2.1", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { moveTogether(t, tt.resolver, tt.parted) })
		})
	}
}

func moveTogether(t *testing.T, resolver string, allowed int) {
	net := simnet.New(1)
	names := targets(t, net, 10, 60)
	server := net.MustServer("192.0.2.53", "")
	net.MustServer("192.0.2.1", "forward . 192.0.2.53\nlatency 1ms")
	var mu sync.Mutex // guards the following
	moved, parted := 0, 0
	var r *testEnv
	rnd := rand.New(rand.NewPCG(1, 1))
	r = newTestEnv(net, follow.Options{Rand: rnd.Float64, Changed: func(c follow.Change) {
		if c.Old.Answer == "" {
			return
		}
		v4, _ := r.State(c.Name, follow.IPv4)
		v6, _ := r.State(c.Name, follow.IPv6)
		mu.Lock()
		defer mu.Unlock()
		moved++
		if v4.Addrs[0].As4()[3] != v6.Addrs[0].As16()[15] {
			parted++
		}
	}}, resolver)
	for _, n := range names {
		r.Follow(n, follow.Both)
	}
	r.start(t)
	for i := 2; i <= 11; i++ {
		r.until(time.Duration(i) * 5 * time.Minute)
		for _, n := range names {
			for _, data := range []string{"A 203.0.113.%d", "AAAA 2001:db8::%x"} {
				if err := server.Do(fmt.Sprintf("set %s 60 "+data, n, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	r.until(time.Hour)
	mu.Lock()
	defer mu.Unlock()
	if moved != 200 || parted > allowed {
		t.Errorf("of %d changes %d found one family moved and the other not; at most %d may", moved, parted, allowed)
	}
	t.Logf("%d of 100 moves were found in two moments", parted)
}

// TestFamiliesTogetherAfterSeed checks that a restart does not separate the families of a name.
func TestFamiliesTogetherAfterSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		names := targets(t, net, 100, 60)
		rnd := rand.New(rand.NewPCG(1, 1))
		r := newTestEnv(net, follow.Options{Rand: rnd.Float64}, "192.0.2.53")
		for _, n := range names {
			r.Seed(n, follow.IPv4, follow.State{Addrs: addrs("203.0.113.1"), TTL: time.Minute, Answer: follow.Found})
			r.Seed(n, follow.IPv6, follow.State{Addrs: addrs("2001:db8::1"), TTL: time.Minute, Answer: follow.Found})
			r.Follow(n, follow.Both)
			v4, _ := r.State(n, follow.IPv4)
			v6, _ := r.State(n, follow.IPv6)
			if !v4.NextAttempt.Equal(v6.NextAttempt) {
				t.Errorf("%s: A is asked for %v after AAAA", n, v4.NextAttempt.Sub(v6.NextAttempt))
			}
		}
	})
}

// TestOneFamilySilent checks that a family without a reply delays the other only for a moment.
func TestOneFamilySilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer("192.0.2.53", "zone example.net.\n"+target+" 60 A 203.0.113.1\n"+target+" 60 AAAA 2001:db8::1\n"+
			"at 30s set "+target+" 60 A 203.0.113.2\nat 30s fault timeout "+target+" AAAA")
		r := newTestEnv(net, follow.Options{Rand: noJitter}, "192.0.2.53")
		r.Follow(name(target), follow.Both)
		r.start(t)
		r.until(time.Minute)
		got := r.changesSince(2)
		if len(got) != 2 || got[0].Family != follow.IPv4 || got[0].at != 54*time.Second+500*time.Millisecond ||
			got[1].at != 56*time.Second {
			t.Errorf("reported %v", got)
		}
	})
}
