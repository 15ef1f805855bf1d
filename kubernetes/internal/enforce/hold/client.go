package hold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Why a reply was not held until all was programmed.
var (
	ErrTimeout = errors.New("the agent did not acknowledge in time")
	ErrBroken  = errors.New("there is no agent to wait for, or it did not answer before")
	ErrRefused = errors.New("the agent could not program the addresses")
)

// Options of a Client.
type Options struct {
	Dial    Dial
	Timeout time.Duration // the longest hold
	Log     *slog.Logger
}

// Dial connects to an agent, so that messages can be sent; see Files.Dial.
type Dial func(ctx context.Context, endpoint string) (net.Conn, error)

// Client is a plugin's side: all agents, what each of them has acknowledged, and who waits for what.
type Client struct {
	opts    Options
	changed chan struct{} // of the agents that should run; holds one
	view    atomic.Pointer[view]

	mu     sync.Mutex // guards all below, and the making of views
	agents map[string]*agent
	left   map[netip.Prefix]bool // of agents that are gone: their pods may not be
}

// view is what Hold reads: never changed, swapped as a whole.
type view struct {
	agents []*agent
	routes map[netip.Prefix][]*agent // none: of agents that are gone
	bits   [2][]int                  // lengths of prefixes in routes: IPv4, IPv6
}

// NewClient makes a client that has no agents yet.
func NewClient(o Options) *Client {
	c := &Client{opts: o, changed: make(chan struct{}, 1), agents: map[string]*agent{}, left: map[netip.Prefix]bool{}}
	c.view.Store(&view{})
	return c
}

// SetAgents says which agents there are, as HOST:PORT. What is known about those that stay is kept.
func (c *Client) SetAgents(endpoints []string) {
	c.mu.Lock()
	for _, e := range endpoints {
		if c.agents[e] == nil {
			c.agents[e] = newAgent(e, c)
		}
	}
	for e, a := range c.agents {
		if !slices.Contains(endpoints, e) {
			delete(c.agents, e)
			c.rememberLocked(a)
			a.end()
		}
	}
	c.buildViewLocked()
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// rememberLocked keeps the prefixes of an agent that goes, until another one has them: the agent may be replaced by a newer
// one, and until that is there nobody programs what the pods of its node ask for.
func (c *Client) rememberLocked(a *agent) {
	for _, p := range a.announced() {
		if len(c.left) < maxLeft {
			c.left[p] = true
		}
	}
}

// buildView is called when agents or their prefixes changed.
func (c *Client) buildView() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buildViewLocked()
}

func (c *Client) buildViewLocked() {
	v := &view{routes: map[netip.Prefix][]*agent{}}
	for _, a := range c.agents {
		v.agents = append(v.agents, a)
		for _, p := range a.announced() {
			v.add(p, a)
			delete(c.left, p)
		}
	}
	for p := range c.left {
		v.add(p, nil)
	}
	slices.SortFunc(v.agents, func(a, b *agent) int { return strings.Compare(a.endpoint, b.endpoint) })
	share := maxLeases / max(len(v.agents), 1)
	for _, a := range v.agents {
		a.room.Store(int64(max(share, minLeases)))
	}
	c.view.Store(v)
}

// add makes a route; of a nil agent one that leads nowhere.
func (v *view) add(p netip.Prefix, a *agent) {
	v.routes[p] = append(v.routes[p], a)
	if f := familyOf(p.Addr()); !slices.Contains(v.bits[f], p.Bits()) {
		v.bits[f] = append(v.bits[f], p.Bits())
	}
}

// route are the agents that say that an address is their pod's; a nil one is an agent that is gone. There may be several, and
// all of them count: an agent that claims the pods of another one must not be the only one that is waited for.
func (v *view) route(addr netip.Addr) []*agent {
	addr = addr.Unmap()
	if !addr.IsValid() {
		return nil
	}
	var out []*agent
	for _, bits := range v.bits[familyOf(addr)] {
		if p, err := addr.Prefix(bits); err == nil {
			out = append(out, v.routes[p]...)
		}
	}
	return out
}

// Run keeps connections to all agents until ctx ends.
func (c *Client) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		for _, a := range c.view.Load().agents {
			if a.started.CompareAndSwap(false, true) {
				wg.Go(func() { a.run(ctx) })
			}
		}
		select {
		case <-c.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Serves reports whether addr is one of the pods that agents announced.
func (c *Client) Serves(addr netip.Addr) bool { return len(c.view.Load().route(addr)) > 0 }

// Hold returns when the agent of the asker's node has programmed what was learned, and with nil in that case; or when that took
// too long. All other agents are told without waiting for them. An asker that is nobody's pod waits for all agents.
func (c *Client) Hold(ctx context.Context, asker netip.Addr, what []Learned) error {
	v := c.view.Load()
	targets := v.route(asker)
	var waits []wait
	// Without any agent there is nobody who could have programmed it, and no more is there when the one of the asker is gone.
	broken := len(v.agents) == 0 || len(targets) > 0 && !slices.ContainsFunc(targets, func(a *agent) bool { return a != nil })
	for _, a := range v.agents {
		flights, open := a.program(what)
		switch {
		case len(flights) == 0, len(targets) > 0 && !slices.Contains(targets, a):
		case open:
			// One that said whose agent it is said so of others. One that never did may be the asker's.
			broken = broken || len(targets) > 0 || len(a.announced()) == 0
		default:
			waits = append(waits, wait{a, flights})
		}
	}
	if err := c.wait(ctx, waits); err != nil || !broken {
		return err
	}
	return ErrBroken
}

// Tell is Hold without waiting.
func (c *Client) Tell(what []Learned) {
	for _, a := range c.view.Load().agents {
		a.program(what)
	}
}

// wait is an agent and what it has to acknowledge.
type wait struct {
	agent   *agent
	flights []*flight
}

func (c *Client) wait(ctx context.Context, waits []wait) error {
	if len(waits) == 0 {
		return nil
	}
	timer := time.NewTimer(c.opts.Timeout)
	defer timer.Stop()
	var failed error
	for i, w := range waits {
		for _, f := range w.flights {
			select {
			case <-f.done:
				if f.err != nil {
					failed = f.err
				}
			case <-ctx.Done():
				return ctx.Err()
			case <-timer.C:
				for _, late := range waits[i:] {
					late.missed()
				}
				return ErrTimeout
			}
		}
	}
	return failed
}

// missed counts a hold that ran out, unless the agent was done and only others were not.
func (w wait) missed() {
	for _, f := range w.flights {
		select {
		case <-f.done:
		default:
			w.agent.miss()
			return
		}
	}
}

// AgentState is how one agent is doing.
type AgentState struct {
	Connected, Broken bool
	Leases            int
}

// Agents tells how all of them are doing.
func (c *Client) Agents() []AgentState {
	var out []AgentState
	for _, a := range c.view.Load().agents {
		out = append(out, a.state())
	}
	return out
}

// Explain asks one agent about an address of a pattern.
func (d Dial) Explain(ctx context.Context, endpoint, pattern string, addr netip.Addr) (Explanation, error) {
	conn, err := d(ctx, endpoint)
	if err != nil {
		return Explanation{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	s := newStream(conn)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = s.write(ctx) })
	if err := s.send(message{Op: opExplain, ID: 1, Pattern: pattern, Addrs: []netip.Addr{addr}}); err != nil {
		return Explanation{}, err
	}
	for {
		m, err := s.read(agentIdle)
		switch {
		case err != nil:
			return Explanation{}, fmt.Errorf("ask %s: %w", endpoint, err)
		case m.Op == opHello && m.Version != version:
			return Explanation{}, fmt.Errorf("ask %s: it speaks version %d, not %d", endpoint, m.Version, version)
		case m.Op != opExplained:
		case m.Error != "":
			return Explanation{}, fmt.Errorf("ask %s: %s", endpoint, m.Error)
		case m.Explained != nil:
			return *m.Explained, nil
		}
	}
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}
