package forward_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

const address = "www.example.org. 300 IN A 192.0.2.1"

// positive returns the answer of an upstream that replies with address, after age seconds in the cache.
func positive(age int) answer {
	return answer{Rcode: "NOERROR", EDE: wire.EDENone,
		Answer: []string{fmt.Sprintf("www.example.org. %d IN A 192.0.2.1", 300-age)}}
}

func stale() answer {
	return answer{Rcode: "NOERROR", EDE: wire.EDEStale, Stale: true,
		Answer: []string{"www.example.org. 30 IN A 192.0.2.1"}}
}

func failed(ede int) answer { return answer{Rcode: "SERVFAIL", EDE: ede} }

// check looks up the address of www.example.org. and compares the answer and the queries to upstreams.
func check(t *testing.T, f *forward.Forwarder, n *network, want answer, asked ...string) {
	t.Helper()
	for i, a := range asked {
		asked[i] = a + " www.example.org. A"
	}
	got := ask(t, f, "www.example.org.", dns.TypeA)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{}, asked...), n.history()); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

// took checks how long a function takes, on fake time.
func took(t *testing.T, want time.Duration, do func()) {
	t.Helper()
	begin := time.Now()
	do()
	if got := time.Since(begin); got != want {
		t.Errorf("took %s, want %s", got, want)
	}
}

func TestTTLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, replies(t, 0, address))
		check(t, f, n, positive(0), "192.0.2.1")
		time.Sleep(999 * time.Millisecond)
		check(t, f, n, positive(0))
		time.Sleep(time.Millisecond)
		check(t, f, n, positive(1))
		time.Sleep(299*time.Second - 1)
		check(t, f, n, positive(299))
		time.Sleep(time.Nanosecond)
		check(t, f, n, positive(0), "192.0.2.1")
	})
}

// TestLifetimes checks how long each kind of answer is cached.
func TestLifetimes(t *testing.T) {
	tests := []struct {
		name  string
		rcode int
		text  string
		life  time.Duration
	}{
		{"the least TTL", 0, "www.example.org. 300 IN CNAME a.test.\na.test. 20 IN A 192.0.2.1", 20 * time.Second},
		{"TTL 0", 0, "www.example.org. 0 IN A 192.0.2.1", 0},
		{"ceiling", 0, "www.example.org. 604800 IN A 192.0.2.1", 24 * time.Hour},
		{"negative: MINIMUM", dns.RcodeNameError, "--\n" + soa, 300 * time.Second},
		{"negative: TTL", 0, "--\nexample.org. 20 IN SOA a. b. 1 2 3 4 300", 20 * time.Second},
		{"negative: ceiling", 0, "--\nexample.org. 86400 IN SOA a. b. 1 2 3 4 86400", time.Hour},
		{"negative: no SOA", dns.RcodeNameError, "", 0},
		{"failure", dns.RcodeServerFailure, "", time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, n := start(t, forward.Config{}, replies(t, tt.rcode, tt.text))
				asked := func() bool {
					ask(t, f, "www.example.org.", dns.TypeA)
					return len(n.history()) > 0
				}
				asked()
				if tt.life > 0 {
					time.Sleep(tt.life - 1)
					if asked() {
						t.Errorf("asked again within %s", tt.life)
					}
					time.Sleep(time.Nanosecond)
				}
				if !asked() {
					t.Errorf("not asked again after %s", tt.life)
				}
			})
		})
	}
}

// TestKeys sends questions that differ in one field each.
func TestKeys(t *testing.T) {
	f, n := start(t, forward.Config{}, replies(t, 0, "--\n"+soa))
	for _, q := range []forward.Question{
		{Name: wireName(t, "www.example.org."), Type: rr.TypeA},
		{Name: wireName(t, "www2.example.org."), Type: rr.TypeA},
		{Name: wireName(t, "www.example.org."), Type: rr.TypeAAAA},
		{Name: wireName(t, "www.example.org."), Type: rr.TypeA, DO: true},
		{Name: wireName(t, "www.example.org."), Type: rr.TypeA, CD: true},
	} {
		for i, want := range []int{1, 0} {
			askFor(t, f, q)
			if got := len(n.history()); got != want {
				t.Errorf("round %d: %v was forwarded %d times, want %d", i, q, got, want)
			}
		}
	}
}

// keepsOld uses answers up to a day after their TTL.
var keepsOld = forward.Config{MaxStale: 24 * time.Hour}

func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, keepsOld, replies(t, 0, address))
		check(t, f, n, positive(0), "192.0.2.1")
		n.set(server(1), replies(t, dns.RcodeServerFailure, ""))
		time.Sleep(300 * time.Second)
		check(t, f, n, stale(), "192.0.2.1")
		// Within the recheck time no upstream is queried.
		time.Sleep(30*time.Second - time.Nanosecond)
		check(t, f, n, stale())
		time.Sleep(time.Nanosecond)
		check(t, f, n, stale(), "192.0.2.1")
		n.set(server(1), broken)
		time.Sleep(30 * time.Second)
		check(t, f, n, stale(), "192.0.2.1")
		time.Sleep(30 * time.Second)
		check(t, f, n, stale()) // the upstream is down by now
		n.set(server(1), replies(t, 0, address))
		time.Sleep(30 * time.Second)
		check(t, f, n, positive(0), "192.0.2.1")
	})
}

// TestStaleNotValidated checks that a stale answer does not count as validated.
func TestStaleNotValidated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, keepsOld, func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
			r, err := replies(t, 0, address)(ctx, q)
			r.AuthenticatedData = true
			return r, err
		})
		if a := ask(t, f, "www.example.org.", dns.TypeA); !a.AD {
			t.Errorf("got %+v, want AD", a)
		}
		n.history()
		n.set(server(1), broken)
		time.Sleep(300 * time.Second)
		check(t, f, n, stale(), "192.0.2.1")
	})
}

// TestStaleWithoutRoom checks that a flood of questions does not deprive other clients of cached answers.
func TestStaleWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, keepsOld, replies(t, 0, address))
		check(t, f, n, positive(0), "192.0.2.1")
		n.set(server(1), silent)
		time.Sleep(300 * time.Second)
		wait := fill(t, f, mostInFlight)
		n.history()
		took(t, 0, func() { check(t, f, n, stale()) })
		wait()
	})
}

// TestStaleFailure checks that a failure is no answer, and is not used after it has expired.
func TestStaleFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, keepsOld, replies(t, dns.RcodeServerFailure, ""))
		for range 3 {
			check(t, f, n, failed(wire.EDENoReachable), "192.0.2.1")
			time.Sleep(time.Second)
		}
	})
}

func TestStaleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{MaxStale: time.Minute}, replies(t, 0, address))
		check(t, f, n, positive(0), "192.0.2.1")
		n.set(server(1), broken)
		time.Sleep(350 * time.Second)
		check(t, f, n, stale(), "192.0.2.1")
		time.Sleep(10 * time.Second) // within the recheck time, but too old
		check(t, f, n, failed(wire.EDENoReachable))
	})
}

// TestNotStale has situations in which a stale answer must not be used.
func TestNotStale(t *testing.T) {
	tests := []struct {
		name string
		cfg  forward.Config
		then handler
		want answer
	}{
		{"switched off", forward.Config{}, broken, failed(wire.EDENetworkError)},
		{"bogus", keepsOld, says(t, dns.RcodeServerFailure, dns.ExtendedErrorCodeDNSBogus),
			failed(int(dns.ExtendedErrorCodeDNSBogus))},
		{"gone", keepsOld, replies(t, dns.RcodeNameError, "--\n"+soa),
			answer{Rcode: "NXDOMAIN", EDE: wire.EDENone, Authority: []string{soa300}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, n := start(t, tt.cfg, replies(t, 0, address))
				check(t, f, n, positive(0), "192.0.2.1")
				n.set(server(1), tt.then)
				time.Sleep(300 * time.Second)
				check(t, f, n, tt.want, "192.0.2.1")
			})
		})
	}
}

func TestStaleNXDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, keepsOld, replies(t, dns.RcodeNameError, "--\n"+soa))
		ask(t, f, "www.example.org.", dns.TypeA)
		n.history()
		n.set(server(1), broken)
		time.Sleep(300 * time.Second)
		check(t, f, n, answer{Rcode: "NXDOMAIN", EDE: wire.EDEStaleNXDomain, Stale: true,
			Authority: []string{"example.org. 30 IN SOA ns1.example.org. hostmaster.example.org. 1 2 3 4 300"}}, "192.0.2.1")
	})
}

// TestSameQuestion has many clients with the same question at one time.
func TestSameQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, after(100*time.Millisecond, replies(t, 0, address)))
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if diff := cmp.Diff(positive(0), ask(t, f, "www.example.org.", dns.TypeA)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
		all.Wait()
		if got := n.history(); len(got) != 1 {
			t.Errorf("upstream was asked %v", got)
		}
	})
}

// TestImpatientClient has a client that gives up; the others get their answer, and so does the cache.
func TestImpatientClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, after(100*time.Millisecond, replies(t, 0, address)))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		q := forward.Question{Name: wireName(t, "www.example.org."), Type: rr.TypeA}
		took(t, 50*time.Millisecond, func() {
			msg := message(q, 512)
			if diff := cmp.Diff(failed(wire.EDENoReachable), read(t, msg, f.Exchange(ctx, q, msg))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
		clear(q.Name) // the caller may reuse the buffer
		check(t, f, n, positive(0), "192.0.2.1")
		check(t, f, n, positive(0))
	})
}

// mostInFlight is the maximum number of questions that wait for upstreams.
const mostInFlight = 1024

// fill sends n questions at once, and returns when all of them wait for upstreams. wait returns when they have ended.
func fill(t *testing.T, f *forward.Forwarder, n int) (wait func()) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { ask(t, f, fmt.Sprintf("n%d.example.org.", i), dns.TypeA) })
	}
	synctest.Wait()
	return all.Wait
}

func TestInFlightBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, silent)
		wait := fill(t, f, mostInFlight)
		n.history()
		took(t, 0, func() { check(t, f, n, failed(wire.EDENetworkError)) })
		took(t, 2*time.Second, func() { ask(t, f, "n1.example.org.", dns.TypeA) }) // joins a flight, so it is not rejected
		wait()
		n.set(server(1), replies(t, 0, address))
		time.Sleep(5 * time.Second)
		n.history()
		check(t, f, n, positive(0), "192.0.2.1")
	})
}

// TestEnd ends a Forwarder while a question is in flight: that one is answered, and later ones are not forwarded.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t, servers: map[resolveServer]handler{server(1): after(time.Second, replies(t, 0, address))}}
		f := forward.New(forward.Config{Upstreams: []resolveServer{server(1)}, Exchanger: n})
		ctx, cancel := context.WithCancel(t.Context())
		var ended atomic.Bool
		go func() {
			f.Run(ctx)
			ended.Store(true)
		}()
		var all sync.WaitGroup
		all.Go(func() {
			if diff := cmp.Diff(positive(0), ask(t, f, "www.example.org.", dns.TypeA)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if ended.Load() {
			t.Error("Run ended before the question in flight")
		}
		n.history()
		if diff := cmp.Diff(failed(wire.EDENetworkError), ask(t, f, "n2.example.org.", dns.TypeA)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if got := n.history(); len(got) != 0 {
			t.Errorf("asked %v after the end", got)
		}
		all.Wait()
		synctest.Wait()
		if !ended.Load() {
			t.Error("Run did not end")
		}
	})
}
