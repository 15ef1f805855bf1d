package hold

import (
	"context"
	"crypto/tls"
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
	ErrBroken  = errors.New("the agent is not waited for, since it did not answer before")
	ErrRefused = errors.New("the agent could not program the addresses")
)

// Options of a Client.
type Options struct {
	TLS     func() (*tls.Config, error) // for one connection; see Files.Client
	Timeout time.Duration               // the longest hold; default 250 ms
	Log     *slog.Logger                // default: none
	// Dial makes a connection that is ready to be spoken on. Default: TCP and TLS.
	Dial func(ctx context.Context, endpoint string) (net.Conn, error)
}

// Client is a plugin's side: all agents, what each of them has acknowledged, and who waits for what.
type Client struct {
	opts    Options
	changed chan struct{} // of the agents that should run; holds one
	view    atomic.Pointer[view]

	mu     sync.Mutex // guards agents and the making of views
	agents map[string]*agent
}

// view is what Hold reads: never changed, swapped as a whole.
type view struct {
	agents []*agent
	routes map[netip.Prefix]*agent
	bits   [2][]int // lengths of prefixes in routes, longest first: IPv4, IPv6
}

// NewClient makes a client that has no agents yet.
func NewClient(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = 250 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dial == nil {
		o.Dial = o.dial
	}
	c := &Client{opts: o, changed: make(chan struct{}, 1), agents: map[string]*agent{}}
	c.view.Store(&view{})
	return c
}

func (o Options) dial(ctx context.Context, endpoint string) (net.Conn, error) {
	conf, err := o.TLS()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", endpoint)
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

// buildView is called when agents or their prefixes changed.
func (c *Client) buildView() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buildViewLocked()
}

func (c *Client) buildViewLocked() {
	v := &view{routes: map[netip.Prefix]*agent{}}
	for _, a := range c.agents {
		v.agents = append(v.agents, a)
		for _, p := range a.announced() {
			v.routes[p.Masked()] = a
			if f := familyOf(p.Addr()); !slices.Contains(v.bits[f], p.Bits()) {
				v.bits[f] = append(v.bits[f], p.Bits())
			}
		}
	}
	slices.SortFunc(v.agents, func(a, b *agent) int { return strings.Compare(a.endpoint, b.endpoint) })
	for _, b := range v.bits {
		slices.Sort(b)
		slices.Reverse(b)
	}
	c.view.Store(v)
}

// route is the agent whose pod an address is; nil when it is nobody's.
func (v *view) route(addr netip.Addr) *agent {
	addr = addr.Unmap()
	if !addr.IsValid() {
		return nil
	}
	for _, bits := range v.bits[familyOf(addr)] {
		if p, err := addr.Prefix(bits); err == nil {
			if a := v.routes[p]; a != nil {
				return a
			}
		}
	}
	return nil
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
func (c *Client) Serves(addr netip.Addr) bool { return c.view.Load().route(addr) != nil }

// Hold returns when the agent of the asker's node has programmed what was learned, and with nil in that case; or when that took
// too long. All other agents are told without waiting for them. An asker that is nobody's pod waits for all agents.
func (c *Client) Hold(ctx context.Context, asker netip.Addr, what []Learned) error {
	v := c.view.Load()
	if len(v.agents) == 0 {
		return nil
	}
	target := v.route(asker)
	var waits []wait
	broken := 0
	for _, a := range v.agents {
		flights, open := a.program(what)
		switch {
		case target != nil && a != target, len(flights) == 0:
		case open:
			broken++
		default:
			waits = append(waits, wait{a, flights})
		}
	}
	if len(waits) == 0 && broken > 0 {
		return ErrBroken
	}
	return c.wait(ctx, waits)
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
	Endpoint          string
	Connected, Broken bool
	Flights, Leases   int
	Prefixes          []netip.Prefix
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
func (o Options) Explain(ctx context.Context, endpoint, pattern string, addr netip.Addr) (Explanation, error) {
	if o.Dial == nil {
		o.Dial = o.dial
	}
	conn, err := o.Dial(ctx, endpoint)
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
