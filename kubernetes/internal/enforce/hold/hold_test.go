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

func one() map[string]*switchboard {
	return map[string]*switchboard{"n1": newSwitchboard("10.1.0.0/24", "2001:db8:1::/64")}
}

// TestHold is case 41: the reply waits for the switch, and known addresses pass at once.
func TestHold(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(20*ms, nil)
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 20*ms, nil)
		r.want("10.1.0.8", "192.0.2.1", time.Minute, 0, nil)
		r.want("2001:db8:1::9", "192.0.2.1", time.Minute, 0, nil)
		r.want("10.1.0.8", "192.0.2.2", time.Minute, 20*ms, nil)
		if got := agents["n1"].got[0]; got.Lease != time.Minute || got.Name != "a.example.com." || got.Pattern != "*.example.com." {
			t.Errorf("the agent was told %+v", got)
		}
	})
}

// TestOneFlight is case 42: who asks for the same does not overtake.
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

// TestLease: a lease lets replies pass while more than a second is left, and is renewed behind them.
func TestLease(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(20*ms, nil)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 20*ms, nil)
		time.Sleep(2 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 0, nil) // not worth a renewal
		if n := agents["n1"].programs(); n != 1 {
			t.Errorf("programmed %d times", n)
		}
		time.Sleep(2 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 0, nil) // renewed behind
		time.Sleep(6 * time.Second)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 0, nil)
		time.Sleep(8*time.Second + 20*ms)
		r.want("10.1.0.7", "192.0.2.1", 9*time.Second, 20*ms, nil) // a second is too little
		if n := agents["n1"].programs(); n != 4 {
			t.Errorf("programmed %d times", n)
		}
	})
}

// TestRenewalThatHangs: a reply that needs what a renewal is about waits for that one.
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

// TestTimeout is case 43, and that what came too late is known afterwards.
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

// TestBreaker: an agent that let three holds run out is not waited for until it answers; others do not notice.
func TestBreaker(t *testing.T) {
	stopped := newSwitchboard("10.1.0.0/24")
	agents := map[string]*switchboard{"n1": stopped, "n2": newSwitchboard("10.2.0.0/24")}
	run(t, agents, func(r *rig) {
		r.kill("n1", nil) // nobody listens: holds run out, then the breaker opens
		for i := range 3 {
			r.want("10.1.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 250*ms, ErrTimeout)
			r.want("10.2.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 0, nil)
		}
		for i := range 100 {
			r.want("10.1.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 0, ErrBroken)
		}
		r.want("10.9.0.7", "192.0.2.77", time.Minute, 0, nil) // nobody's pod waits for those who answer
		r.mu.Lock()
		r.agents["n1"] = stopped
		r.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		r.want("10.1.0.7", "192.0.2.200", time.Minute, 0, nil)
	})
}

// TestBreakerPing: the same with a connection that stands while the switch does not answer.
func TestBreakerPing(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		agents["n1"].set(-1, nil)
		for i := range 2 {
			r.want("10.1.0.7", fmt.Sprintf("192.0.2.%d", i), time.Minute, 250*ms, ErrTimeout)
		}
		time.Sleep(6 * time.Second) // a ping in between is no reason to forget them
		r.want("10.1.0.7", "192.0.2.2", time.Minute, 250*ms, ErrTimeout)
		if s := r.client.Agents()[0]; !s.Broken || !s.Connected {
			t.Errorf("agent is %+v", s)
		}
		synctest.Wait() // the answer to the ping
		agents["n1"].set(10*ms, nil)
		r.want("10.1.0.7", "192.0.2.3", time.Minute, 10*ms, nil)
	})
}

// TestSilent: a peer that takes all and says nothing is given up.
func TestSilent(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		mute := newSwitchboard()
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

// TestWhoWaits: a pod waits for the agent of its node, an address of nobody for all.
func TestWhoWaits(t *testing.T) {
	agents := map[string]*switchboard{"n1": newSwitchboard("10.1.0.0/16"), "n2": newSwitchboard("10.1.2.0/24", "10.2.0.0/16")}
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
			t.Errorf("programmed %d and %d times: all agents are to be told", a, b)
		}
		agents["n1"].move("10.3.0.0/16")
		synctest.Wait()
		r.want("10.3.0.7", "192.0.2.6", time.Minute, 10*ms, nil)
		if !r.client.Serves(netip.MustParseAddr("10.3.9.9")) || r.client.Serves(netip.MustParseAddr("10.1.0.7")) {
			t.Error("prefixes that moved did not")
		}
	})
}

// TestRestart: an agent that comes back has nothing, and what waited is told to it.
func TestRestart(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, nil)
		fresh := newSwitchboard("10.1.0.0/24")
		fresh.changed = make(chan struct{})
		r.kill("n1", fresh)
		synctest.Wait()
		if took, err := r.hold("10.1.0.7", "192.0.2.1", time.Minute); err != nil || took == 0 || took > 200*ms {
			t.Errorf("after the restart: %v after %v", err, took)
		}
		if fresh.programs() != 1 {
			t.Errorf("the new agent was told %d times", fresh.programs())
		}
	})
}

// TestNoAgents: what nobody programmed is not said to be.
func TestNoAgents(t *testing.T) {
	run(t, map[string]*switchboard{}, func(r *rig) {
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, ErrBroken)
	})
}

// TestAgentLeaves: nobody waits for an agent that is no longer one, and nobody takes another one for it.
func TestAgentLeaves(t *testing.T) {
	agents := one()
	agents["n2"] = newSwitchboard("10.2.0.0/24")
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

// TestBounds: what waits is bounded, and many addresses go in several messages.
func TestBounds(t *testing.T) {
	agents := one()
	run(t, agents, func(r *rig) {
		l := Learned{Pattern: "*.example.com.", Name: "a.example.com.", Lease: time.Minute}
		for i := range 2*maxAddrs + 1 {
			l.Addrs = append(l.Addrs, netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}))
		}
		if err := r.client.Hold(r.ctx, netip.MustParseAddr("10.1.0.7"), []Learned{l}); err != nil || agents["n1"].programs() != 3 {
			t.Errorf("many addresses: %v in %d messages", err, agents["n1"].programs())
		}
		r.kill("n1", nil)
		synctest.Wait()
		for i := range maxFlights + 10 {
			r.client.Tell(learned(netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String(), time.Minute))
		}
		r.want("10.1.0.7", "192.0.2.1", time.Minute, 0, ErrBroken)
		time.Sleep(2 * flightLife)
		if n := r.flights(); n != 0 {
			t.Errorf("%d flights are still waited for", n)
		}
	})
}

// TestHostileLines: what is no message ends the connection, on either side, and nothing else.
func TestHostileLines(t *testing.T) {
	for _, line := range []string{"no JSON\n", `{"op":"program","addrs":["x"]}` + "\n", strings.Repeat("x", maxLine+1)} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- serve(t.Context(), far, newSwitchboard()) }()
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
		if _, err := o.Explain(r.ctx, "n1", "other.", netip.MustParseAddr("192.0.2.1")); err == nil || !strings.Contains(err.Error(), "no such pattern") {
			t.Errorf("Explain = %v", err)
		}
	})
}
