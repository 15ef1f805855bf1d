package hold

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNeverSeen checks that an unknown client may be a pod of an agent that never connected, however often it was
// missing.
func TestNeverSeen(t *testing.T) {
	agents := map[string]*fakeAgent{"n1": newFakeAgent(), "n2": newFakeAgent("10.2.0.0/24")}
	agents["n1"].frozen = make(chan struct{})
	run(t, agents, func(r *rig) {
		for range 3 {
			r.want("10.1.0.7", "192.0.2.1", time.Minute, 250*ms, ErrTimeout)
		}
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, ErrBroken)
		r.want("10.2.0.7", "192.0.2.1", time.Minute, 0, nil)
		agents["n2"].set(20*ms, nil)
		r.want("10.1.0.7", "192.0.2.2", time.Minute, 20*ms, ErrBroken) // it waits for the other agents that answer
	})
}

// TestClaims checks that an agent that announces the pods of another one does not release their replies.
func TestClaims(t *testing.T) {
	for _, claim := range []string{"10.1.0.0/24", "10.1.0.7/32", "10.0.0.0/8"} {
		agents := one()
		agents["n2"] = newFakeAgent(claim)
		run(t, agents, func(r *rig) {
			agents["n1"].set(70*ms, nil)
			r.want("10.1.0.7", "192.0.2.1", time.Minute, 70*ms, nil)
		})
	}
}

// TestHugePrefixes checks that an agent cannot turn all addresses into pod addresses.
func TestHugePrefixes(t *testing.T) {
	agents := one()
	agents["n2"] = newFakeAgent("0.0.0.0/0", "128.0.0.0/1", "::/0", "2000::/3", "10.2.0.9/24")
	run(t, agents, func(r *rig) {
		for _, a := range []string{"192.0.2.1", "2001:db8::1"} {
			if r.client.Serves(netip.MustParseAddr(a)) {
				t.Errorf("%s is the address of a pod", a)
			}
		}
		if !r.client.Serves(netip.MustParseAddr("10.2.0.1")) {
			t.Error("a pod is none")
		}
	})
}

// TestManyWaited checks that a returning agent gets all addresses that were learned meanwhile.
func TestManyWaited(t *testing.T) {
	agents := one()
	back := agents["n1"]
	run(t, agents, func(r *rig) {
		r.kill("n1", nil)
		synctest.Wait()
		for i := range maxFlights - 1 {
			r.client.Send(learned(netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String(), time.Minute))
		}
		r.mu.Lock()
		r.agents["n1"] = back
		r.dials = 0
		r.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := r.client.Agents()[0]; r.flights() != 0 || s.Leases != maxFlights-1 || r.dials != 1 {
			t.Errorf("after %d connections: %+v", r.dials, s)
		}
	})
}

// TestLongLease checks that a lease does not end before clients may use the last answer, however long that is.
func TestLongLease(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		r.want("10.1.0.7", "192.0.2.1", 305*time.Second, 0, nil)
		time.Sleep(5 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 305*time.Second, 0, nil)
		synctest.Wait()
		if n := agents["n1"].programs(); n != 1 {
			t.Errorf("programmed %d times", n)
		}
		time.Sleep(time.Second)
		r.want("10.1.0.7", "192.0.2.1", 305*time.Second, 0, nil)
		synctest.Wait()
		if n := agents["n1"].programs(); n != 2 {
			t.Errorf("programmed %d times", n)
		}
		r.want("10.1.0.7", "192.0.2.2", 70*365*24*time.Hour, 0, nil)
		if got := agents["n1"].got[2].Lease; got != maxLease {
			t.Errorf("lease of %v was asked for", got)
		}
	})
}

// TestHostilePrograms checks that invalid addresses and leases do not reach the handler.
func TestHostilePrograms(t *testing.T) {
	good := message{Op: opProgram, ID: 7, Pattern: "*.example.com.", Name: "a.example.com.",
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, LeaseMS: 1000}
	tests := map[string]func(*message){
		"":                     func(*message) {},
		"lease of 0 ms":        func(m *message) { m.LeaseMS = 0 },
		"lease of -1 ms":       func(m *message) { m.LeaseMS = -1 },
		"lease of 31536000000": func(m *message) { m.LeaseMS = 31536000000 },
		"lease of 92233720368": func(m *message) { m.LeaseMS = 1<<63 - 1 },
		"0 addresses":          func(m *message) { m.Addrs = nil },
		"1001 addresses":       func(m *message) { m.Addrs = slices.Repeat(m.Addrs, maxAddrs+1) },
		"\"invalid IP\"":       func(m *message) { m.Addrs = []netip.Addr{{}} },
		"\"::ffff:192.0.2.1\"": func(m *message) { m.Addrs = []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1")} },
		"\"fe80::1%eth0\"":     func(m *message) { m.Addrs = []netip.Addr{netip.MustParseAddr("fe80::1%eth0")} },
	}
	for want, change := range tests {
		m := good
		change(&m)
		s := newFakeAgent()
		got := (&agentStream{handler: s}).handle(t.Context(), m)
		if got.Op != opDone || got.ID != 7 || !strings.HasPrefix(got.Error, want) || s.programs() != 0 != (want == "") {
			line, _ := json.Marshal(got)
			t.Errorf("%q: the agent says %s, after %d programs", want, line, s.programs())
		}
	}
}

// TestAcceptFails checks that a listener with temporary errors is not given up.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := &tiredListener{closed: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, l, &tls.Config{}, newFakeAgent()) }()
		time.Sleep(time.Second)
		select {
		case err := <-ended:
			t.Fatalf("Serve ended: %v", err)
		default:
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// tiredListener fails with too many open files until it is closed.
type tiredListener struct{ closed chan struct{} }

func (l *tiredListener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return nil, errors.New("too many open files")
	}
}
func (l *tiredListener) Close() error   { close(l.closed); return nil }
func (l *tiredListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestLeaseBound checks that leases over the limit are not remembered, so that replies wait again.
func TestLeaseBound(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(10*ms, nil)
		r.client.agents["n1"].room.Store(1)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 10*ms, nil)
		for range 2 {
			r.want("10.1.0.7", "192.0.2.2", time.Minute, 10*ms, nil)
			r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, nil)
		}
	})
}

// TestHandshakeLimit checks that silent connections block others neither for long nor from other networks.
func TestHandshakeLimit(t *testing.T) {
	d := &handshakeLimiter{from: map[netip.Prefix]int{}}
	enter := func(addr string) (func(), bool) {
		return d.enter(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1)))
	}
	var leave []func()
	for i := range 2 * maxHandshakesPerNet {
		l, ok := enter("192.0.2.1")
		if ok != (i < maxHandshakesPerNet) {
			t.Fatalf("stranger %d is let in: %v", i, ok)
		}
		if ok {
			leave = append(leave, l)
		}
	}
	for i := range 2 * maxHandshakesPerNet {
		if _, ok := enter(fmt.Sprintf("2001:db8::%d", i)); ok != (i < maxHandshakesPerNet) {
			t.Fatalf("stranger %d of a network is let in: %v", i, ok)
		}
	}
	if _, ok := enter("192.0.2.2"); !ok {
		t.Error("another one is kept out")
	}
	for _, l := range leave {
		l()
	}
	if _, ok := enter("::ffff:192.0.2.1"); !ok {
		t.Error("nobody is let in when all have left")
	}
	for i := range 2 * maxHandshakes {
		enter(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}).String())
	}
	if d.all != maxHandshakes {
		t.Errorf("%d strangers", d.all)
	}
}

// TestLongerMeanwhile checks a request for a longer lease while a shorter one is in flight: it waits for the shorter
// one, and the longer one follows.
func TestLongerMeanwhile(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(100*ms, nil)
		r.client.Send(learned("192.0.2.1", 6*time.Second))
		time.Sleep(50 * ms)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 50*ms, nil)
		r.client.Send(learned("192.0.2.1", 59*time.Second))
		time.Sleep(30 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 6*time.Second, 0, nil)
		if n := agents["n1"].programs(); n != 2 || agents["n1"].got[1].Lease != time.Minute {
			t.Errorf("the agent got %+v", agents["n1"].got)
		}
	})
}

// TestOneAtATime checks that a message in flight is not sent repeatedly.
func TestOneAtATime(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(-1, nil)
		for range 9 {
			r.client.Send(learned("192.0.2.1", 10*time.Second))
			time.Sleep(time.Second)
		}
		if n := agents["n1"].programs(); n != 1 {
			t.Errorf("programmed %d times", n)
		}
	})
}
