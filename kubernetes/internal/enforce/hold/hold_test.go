package hold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

func one() map[string]*fakeAgent {
	return map[string]*fakeAgent{"n1": newFakeAgent("10.1.0.0/24", "2001:db8:1::/64")}
}

// TestHold checks that the reply waits for the switch, and that known addresses pass at once.
func TestHold(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(20*ms, nil)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 20*ms, nil)
		r.want("10.1.0.8", "192.0.2.1", time.Minute, 0, nil)
		r.want("2001:db8:1::9", "192.0.2.1", time.Minute, 0, nil)
		r.want("10.1.0.8", "192.0.2.2", time.Minute, 20*ms, nil)
		if got := agents["n1"].got[0]; got.Lease != time.Minute || got.Name != "a.example.com." ||
			got.Pattern != "*.example.com." {
			t.Errorf("the agent got %+v", got)
		}
	})
}

// TestOneFlight checks that a second query for the same address waits for the first message.
func TestOneFlight(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(100*ms, nil)
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * ms)
				r.want("10.1.0.7", "192.0.2.1", time.Minute, 100*ms-time.Duration(i)*10*ms, nil)
			})
		}
		wg.Wait()
		if n := agents["n1"].programs(); n != 1 {
			t.Errorf("programmed %d times", n)
		}
	})
}

// TestLease checks that replies pass while more than a second of a lease is left, and that the lease is renewed in the
// background.
func TestLease(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(20*ms, nil)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 20*ms, nil)
		time.Sleep(2 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 0, nil) // no renewal needed
		if n := agents["n1"].programs(); n != 1 {
			t.Errorf("programmed %d times", n)
		}
		time.Sleep(2 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 0, nil) // renewed in the background
		time.Sleep(6 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 0, nil)
		time.Sleep(8*time.Second + 20*ms)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 20*ms, nil) // less than a second is left
		if n := agents["n1"].programs(); n != 4 {
			t.Errorf("programmed %d times", n)
		}
	})
}

// TestRenewalThatHangs checks that a reply waits for a renewal in flight if it needs its address.
func TestRenewalThatHangs(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		r.want("10.1.0.7", "192.0.2.1", 4*time.Second, 0, nil)
		agents["n1"].set(2*time.Second+50*ms, nil)
		time.Sleep(2 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 4*time.Second, 0, nil)
		time.Sleep(2 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 4*time.Second, 50*ms, nil)
	})
}

// TestTimeout checks the timeout, and that a late acknowledgement counts afterwards.
func TestTimeout(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(time.Second, nil)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 250*ms, ErrTimeout)
		time.Sleep(time.Second)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, nil)
	})
}

func TestRefusal(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(10*ms, errors.New("no such set"))
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 10*ms, ErrRefused)
		agents["n1"].set(10*ms, nil)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 10*ms, nil)
	})
}

// TestBreaker checks that replies do not wait for an agent after three timeouts until it answers. Other agents are not
// affected.
func TestBreaker(t *testing.T) {
	stopped := newFakeAgent("10.1.0.0/24")
	agents := map[string]*fakeAgent{"n1": stopped, "n2": newFakeAgent("10.2.0.0/24")}
	run(t, agents, func(r *rig) {
		r.kill("n1", nil) // no listener: holds time out, then the breaker opens
		for i := range 3 {
			r.want("10.1.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 250*ms, ErrTimeout)
			r.want("10.2.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 0, nil)
		}
		for i := range 100 {
			r.want("10.1.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 0, ErrBroken)
		}
		r.want("10.9.0.7", "192.0.2.77", time.Minute, 0, nil) // a client of no agent waits for the agents that answer
		r.mu.Lock()
		r.agents["n1"] = stopped
		r.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		r.want("10.1.0.7", "192.0.2.200", time.Minute, 0, nil)
	})
}

// TestBreakerPing checks the same with a connection that stays open while the switch does not answer.
func TestBreakerPing(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(-1, nil)
		for i := range 2 {
			r.want("10.1.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 250*ms, ErrTimeout)
		}
		time.Sleep(6 * time.Second) // a ping in between does not reset the count
		r.want("10.1.0.7", "192.0.2.2", time.Minute, 250*ms, ErrTimeout)
		if s := r.client.Agents()[0]; !s.Broken || !s.Connected {
			t.Errorf("agent is %+v", s)
		}
		synctest.Wait() // the reply to the ping
		agents["n1"].set(10*ms, nil)
		r.want("10.1.0.7", "192.0.2.3", time.Minute, 10*ms, nil)
	})
}

// TestSilent checks that a peer that reads everything and sends nothing is disconnected.
func TestSilent(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		mute := newFakeAgent()
		mute.frozen = make(chan struct{})
		r.kill("n1", mute)
		time.Sleep(20 * time.Second)
		r.mu.Lock()
		dials := r.dials
		r.mu.Unlock()
		if dials < 5 || dials > 12 {
			t.Errorf("dialled %d times in 20 s", dials)
		}
	})
}

// TestWhoWaits checks that a pod waits for the agent of its node, and an unknown address for all agents.
func TestWhoWaits(t *testing.T) {
	agents := map[string]*fakeAgent{"n1": newFakeAgent("10.1.0.0/16"), "n2": newFakeAgent("10.1.2.0/24", "10.2.0.0/16")}
	run(t, agents, func(r *rig) {
		agents["n1"].set(10*ms, nil)
		agents["n2"].set(70*ms, nil)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 10*ms, nil)
		r.want("10.2.0.7", "192.0.2.2", time.Minute, 70*ms, nil)
		r.want("10.1.2.7", "192.0.2.3", time.Minute, 70*ms, nil) // the longer prefix
		r.want("10.3.0.7", "192.0.2.4", time.Minute, 70*ms, nil)
		r.want("::ffff:10.1.0.7", "192.0.2.5", time.Minute, 10*ms, nil)
		time.Sleep(time.Second)
		if a, b := agents["n1"].programs(), agents["n2"].programs(); a != 5 || b != 5 {
			t.Errorf("programmed %d and %d times: all agents must get it", a, b)
		}
		agents["n1"].move("10.3.0.0/16")
		synctest.Wait()
		r.want("10.3.0.7", "192.0.2.6", time.Minute, 10*ms, nil)
		if !r.client.Serves(netip.MustParseAddr("10.3.9.9")) || r.client.Serves(netip.MustParseAddr("10.1.0.7")) {
			t.Error("prefixes that moved did not")
		}
	})
}

// TestRestart checks that a restarted agent has no leases and gets the messages in flight.
func TestRestart(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, nil)
		fresh := newFakeAgent("10.1.0.0/24")
		fresh.changed = make(chan struct{})
		r.kill("n1", fresh)
		synctest.Wait()
		if took, err := r.hold("10.1.0.7", "192.0.2.1", time.Minute); err != nil || took == 0 || took > 200*ms {
			t.Errorf("after the restart: %v after %v", err, took)
		}
		if fresh.programs() != 1 {
			t.Errorf("the new agent got %d messages", fresh.programs())
		}
	})
}

// TestNoAgents checks that addresses that no agent programmed do not count as programmed.
func TestNoAgents(t *testing.T) {
	run(t, map[string]*fakeAgent{}, func(r *rig) {
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, ErrBroken)
	})
}

// TestAgentLeaves checks that replies do not wait for a removed agent, nor for another one in its stead.
func TestAgentLeaves(t *testing.T) {
	agents := one()
	agents["n2"] = newFakeAgent("10.2.0.0/24")
	run(t, agents, func(r *rig) {
		agents["n1"].set(-1, nil)
		go func() {
			time.Sleep(30 * ms)
			r.client.SetAgents([]string{"n2"})
		}()
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 30*ms, ErrBroken)
		r.want("10.1.0.7", "192.0.2.2", time.Minute, 0, ErrBroken)
		r.want("10.2.0.7", "192.0.2.2", time.Minute, 0, nil)
		if !r.client.Serves(netip.MustParseAddr("10.1.0.7")) {
			t.Error("the pods of the agent that left are nobody's")
		}
		agents["n1"].set(10*ms, nil)
		r.agents["n3"] = agents["n1"]
		r.client.SetAgents([]string{"n2", "n3"})
		synctest.Wait()
		r.want("10.1.0.7", "192.0.2.3", time.Minute, 10*ms, nil)
	})
}

// TestBounds checks that messages in flight are bounded, and that many addresses need several messages.
func TestBounds(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		l := Learned{Pattern: "*.example.com.", Name: "a.example.com.", Lease: time.Minute}
		for i := range 2*maxAddrs + 1 {
			l.Addrs = append(l.Addrs, netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}))
		}
		if err := r.client.Hold(r.ctx, netip.MustParseAddr("10.1.0.7"), []Learned{l}); err != nil ||
			agents["n1"].programs() != 3 {
			t.Errorf("many addresses: %v in %d messages", err, agents["n1"].programs())
		}
		r.kill("n1", nil)
		synctest.Wait()
		for i := range maxFlights + 10 {
			r.client.Send(learned(netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String(), time.Minute))
		}
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, ErrBroken)
		time.Sleep(2 * flightTimeout)
		if n := r.flights(); n != 0 {
			t.Errorf("%d flights are still waited for", n)
		}
	})
}

// TestHostileLines checks that an invalid message ends the connection, on either side, and nothing else.
func TestHostileLines(t *testing.T) {
	for _, line := range []string{"no JSON\n", `{"op":"program","addrs":["x"]}` + "\n", strings.Repeat("x", maxLine+1)} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- serve(t.Context(), far, newFakeAgent()) }()
			go func() { _, _ = near.Write([]byte(line)) }()
			buf := make([]byte, 1000)
			for {
				if _, err := near.Read(buf); err != nil {
					break
				}
			}
			if err := <-ended; err == nil {
				t.Errorf("the agent took %.40q", line)
			}
			near.Close()
		})
	}
	for _, line := range []string{"no JSON\n", `{"op":"hello","version":2}` + "\n", `{"op":"pong"}` + "\n"} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			a := newAgent("n1", NewClient(Options{Dial: func(context.Context, string) (net.Conn, error) { return near, nil }}))
			go func() { _, _ = far.Write([]byte(line)) }()
			if err := a.connect(t.Context()); err == nil {
				t.Errorf("the plugin took %q", line)
			}
			far.Close()
		})
	}
}

func TestExplain(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		o := Dial(r.dial)
		got, err := o.Explain(r.ctx, "n1", "*.example.com.", netip.MustParseAddr("192.0.2.1"))
		if want := (Explanation{"n1", true, time.Minute, 3 * time.Second}); err != nil || got != want {
			t.Errorf("Explain = %+v, %v, want %+v", got, err, want)
		}
		if _, err := o.Explain(r.ctx, "n1", "other.", netip.MustParseAddr("192.0.2.1")); err == nil ||
			!strings.Contains(err.Error(), "no such pattern") {
			t.Errorf("Explain = %v", err)
		}
	})
}
