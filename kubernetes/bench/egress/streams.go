package main

import (
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

const (
	poolTTL = 2 * time.Second
	grace   = 5 * time.Second // addresses stay for this time after their TTL
)

// streams keeps connections open while the name behind them rotates through a pool of addresses. Short TTLs and a
// large pool are how CDNs answer. A firewall that only has the current addresses would cut downloads.
func streams(t cluster.T, o options) figure {
	long := o.long(5*time.Minute, time.Minute)
	f := figure{title: fmt.Sprintf("Streams: a pool of 300 addresses, TTL 2 s, 20 connections that stay open, for %v",
		long),
		want: "none broken, new connections to expired addresses refused within TTL + grace + 1 s"}
	s := start(t, o, rig.Options{Plugin: hold}, rig.DenyRest...)
	var pool []netip.Addr
	for range 300 {
		pool = append(pool, s.Authority.New()[0])
	}
	const name = "pool." + suffix
	s.Authority.Script(name, rig.Rotate(pool, 5, poolTTL, poolTTL))
	if err := s.Firewall(space, append([]string{"allow " + name}, rig.DenyRest...)...); err != nil {
		t.Fatalf("%v", err)
	}
	// A resolver that has just started removes nothing: it does not know yet which names are unanswered.
	time.Sleep(3 * grace)
	w := expiries{site: s, left: s.watchLeaving(t, name)}
	end := time.Now().Add(long)
	var talking sync.WaitGroup
	results := make(chan error, 20)
	made, lost, failed := 0, 0, 0
	for i := range 20 { // one each second, so that they go to many addresses
		time.Sleep(time.Second)
		got := rig.Try(s.pod, s.DNS[i%2].At, name, dns.TypeA, 5*time.Second)
		if got.Problem != nil || got.Dialed.Err != nil {
			failed++
			continue
		}
		lost += got.Dialed.Lost
		d := s.pod.Dial(netip.AddrPortFrom(got.Addr, 80), 5*time.Second)
		if d.Conn == nil {
			failed++
			continue
		}
		made++
		w.watching.Go(func() { w.watch(t, got.Addr) })
		talking.Go(func() {
			defer func() { _ = d.Conn.Close() }()
			results <- keepTalking(d.Conn, end)
		})
	}
	talking.Wait()
	w.watching.Wait()
	close(results)
	broken := 0
	for err := range results {
		if err != nil {
			broken++
			t.Logf("broken: %v", err)
		}
	}
	f.row("connections", "%d, and %d that could not be made", made, failed)
	f.row("first SYNs lost while the addresses changed", "%d", lost)
	f.row("broken", "%d", broken)
	w.rows(&f)
	f.met = broken == 0 && failed == 0 && w.never == 0 && len(w.after) > 0 && share(w.after, 1) <= poolTTL+grace+
		time.Second
	return f
}

// expiries has the ends of addresses: when new connections to them were refused, and when the custom resource and the
// set no longer had them.
type expiries struct {
	site
	left     func(netip.Addr) (stored, set time.Duration)
	watching sync.WaitGroup

	mu                     sync.Mutex // guards the fields below
	after, unstored, unset []time.Duration
	never                  int
}

// watch waits for the end of an address.
func (w *expiries) watch(t cluster.T, a netip.Addr) {
	d, ok := w.expiry(a)
	stored, set := w.left(a)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ok {
		w.never++
		t.Logf("%s is still reached, %v after the last answer with it", a, time.Since(w.Authority.LastAnswer(a)))
		return
	}
	w.after, w.unstored, w.unset = append(w.after, d), append(w.unstored, stored), append(w.unset, set)
}

func (w *expiries) rows(f *figure) {
	f.row("addresses whose expiry was watched", "%d", len(w.after)+w.never)
	for _, x := range []struct {
		what string
		took []time.Duration
	}{{"refused", w.after}, {"not in the custom resource", w.unstored}, {"not in the address set", w.unset}} {
		f.row(x.what+" after the last answer with the address: p50, most", "%v, %v",
			share(x.took, .5).Round(10*time.Millisecond), share(x.took, 1).Round(10*time.Millisecond))
	}
	f.row("addresses still reachable 10 s after the limit", "%d", w.never)
}

// watchLeaving reads the state of a name repeatedly, until the figure is done. The returned function gives the time
// between the last answer with an address and its removal from the custom resource and from the address set.
func (s site) watchLeaving(t cluster.T, name string) func(netip.Addr) (stored, set time.Duration) {
	var mu sync.Mutex // guards the maps
	inStatus, inSet := map[netip.Addr]time.Time{}, map[netip.Addr]time.Time{}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			status, err := s.Stored(name)
			set, err2 := s.Nodes[0].Learned(name)
			mu.Lock()
			for _, text := range status {
				if a, err3 := netip.ParseAddr(text); err == nil && err3 == nil {
					inStatus[a] = time.Now()
				}
			}
			for _, a := range set {
				if err2 == nil {
					inSet[a] = time.Now()
				}
			}
			mu.Unlock()
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		wg.Wait()
	})
	return func(a netip.Addr) (stored, set time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		lastAnswer := s.Authority.LastAnswer(a)
		return inStatus[a].Sub(lastAnswer), inSet[a].Sub(lastAnswer)
	}
}

// conn is the part of a connection that keepTalking needs.
type conn interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// keepTalking sends and receives all the time: an idle connection would not notice that its packets are dropped.
func keepTalking(c conn, end time.Time) error {
	buf := make([]byte, 5)
	for time.Now().Before(end) {
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// expiry returns the time after the last answer with an address for which a new connection can be made. It returns
// false if one can still be made long after the limit. The pool is large enough that no address is repeated meanwhile.
func (s site) expiry(a netip.Addr) (time.Duration, bool) {
	for {
		lastAnswer, tried := s.Authority.LastAnswer(a), time.Now()
		if !rig.Connects(s.pod, a, 80, 400*time.Millisecond) {
			return tried.Sub(lastAnswer), true
		}
		if tried.Sub(lastAnswer) > poolTTL+grace+11*time.Second {
			return 0, false
		}
		time.Sleep(50 * time.Millisecond)
	}
}
