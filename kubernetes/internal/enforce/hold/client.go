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

// Reasons for which a reply was sent before all addresses were programmed.
var (
	ErrTimeout = errors.New("the agent did not acknowledge in time")
	ErrBroken  = errors.New("there is no agent to wait for, or it did not answer before")
	ErrRefused = errors.New("the agent could not program the addresses")
)

// Options configure a Client.
type Options struct {
	Dial    Dial
	Timeout time.Duration // maximum hold
	Log     *slog.Logger
}

// Dial connects to an agent; see Files.Dial.
type Dial func(ctx context.Context, endpoint string) (net.Conn, error)

// Client is the plugin's side of the streams: all agents, the leases that each of them has acknowledged, and the
// messages in flight.
type Client struct {
	opts    Options
	changed chan struct{} // signals a change of agents; has capacity one
	view    atomic.Pointer[view]

	mu       sync.Mutex // guards the fields below and the creation of views
	agents   map[string]*agent
	orphaned map[netip.Prefix]bool // prefixes of removed agents: their pods may still exist
}

// view is an immutable copy of the agents for Hold.
type view struct {
	agents []*agent
	routes map[netip.Prefix][]*agent // a nil agent means that it was removed
	bits   [2][]int                  // prefix lengths in routes: IPv4, IPv6
}

// NewClient returns a client without agents.
func NewClient(o Options) *Client {
	c := &Client{opts: o, changed: make(chan struct{}, 1), agents: map[string]*agent{}, orphaned: map[netip.Prefix]bool{}}
	c.view.Store(&view{})
	return c
}

// SetAgents sets the agents, as HOST:PORT. It keeps the state of agents that remain.
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
			c.orphanLocked(a)
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

// orphanLocked keeps the prefixes of a removed agent until another agent announces them. A newer agent may replace it,
// and until then nothing programs the addresses for the pods of its node.
func (c *Client) orphanLocked(a *agent) {
	for _, p := range a.announced() {
		if len(c.orphaned) < maxOrphaned {
			c.orphaned[p] = true
		}
	}
}

// buildView rebuilds the view after a change of agents or prefixes.
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
			delete(c.orphaned, p)
		}
	}
	for p := range c.orphaned {
		v.add(p, nil)
	}
	slices.SortFunc(v.agents, func(a, b *agent) int { return strings.Compare(a.endpoint, b.endpoint) })
	share := maxLeases / max(len(v.agents), 1)
	for _, a := range v.agents {
		a.room.Store(int64(max(share, minLeases)))
	}
	c.view.Store(v)
}

// add adds a route. A route to a nil agent leads nowhere.
func (v *view) add(p netip.Prefix, a *agent) {
	v.routes[p] = append(v.routes[p], a)
	if f := familyOf(p.Addr()); !slices.Contains(v.bits[f], p.Bits()) {
		v.bits[f] = append(v.bits[f], p.Bits())
	}
}

// route returns the agents that announced the prefix of an address; a nil agent was removed. All of them count: an
// agent that announces the pods of another one must not be the only one that a reply waits for.
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

// Serves reports whether addr is in a prefix that an agent announced.
func (c *Client) Serves(addr netip.Addr) bool { return len(c.view.Load().route(addr)) > 0 }

// Hold sends what was learned to all agents. It blocks until the agent of the client's node has programmed it, or the
// timeout expires. If no agent announced the client's address, Hold waits for all agents.
func (c *Client) Hold(ctx context.Context, client netip.Addr, what []Learned) error {
	v := c.view.Load()
	targets := v.route(client)
	var waits []wait
	// Without any agent, or without the agent of the client's node, nothing has programmed the addresses.
	broken := len(v.agents) == 0 || len(targets) > 0 &&
		!slices.ContainsFunc(targets, func(a *agent) bool { return a != nil })
	for _, a := range v.agents {
		flights, open := a.program(what)
		switch {
		case len(flights) == 0, len(targets) > 0 && !slices.Contains(targets, a):
		case open:
			// An agent that announced prefixes does not serve this client. One that never announced any may serve it.
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

// Send sends what was learned to all agents without waiting.
func (c *Client) Send(what []Learned) {
	for _, a := range c.view.Load().agents {
		a.program(what)
	}
}

// wait is an agent and the messages that it must acknowledge.
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

// missed counts a timeout for the agent, unless it has acknowledged and only others have not.
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

// AgentState is the state of the connection to an agent.
type AgentState struct {
	Connected, Broken bool
	Leases            int
}

// Agents returns the states of all agents.
func (c *Client) Agents() []AgentState {
	var out []AgentState
	for _, a := range c.view.Load().agents {
		out = append(out, a.state())
	}
	return out
}

// Explain queries one agent about an address of a pattern.
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
			return Explanation{}, fmt.Errorf("ask %s: its protocol version is %d, not %d", endpoint, m.Version, version)
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
