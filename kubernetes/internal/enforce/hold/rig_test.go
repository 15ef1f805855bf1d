package hold

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// switchboard is an agent whose switch takes as long as a test says.
type switchboard struct {
	mu       sync.Mutex
	prefixes []netip.Prefix
	changed  chan struct{}
	took     time.Duration // for a Program; negative: for ever
	err      error
	got      []Learned
	frozen   chan struct{} // not nil: nothing is answered, as by a process that is stopped
}

func newSwitchboard(prefixes ...string) *switchboard {
	s := &switchboard{changed: make(chan struct{})}
	for _, p := range prefixes {
		s.prefixes = append(s.prefixes, netip.MustParsePrefix(p))
	}
	return s
}

func (s *switchboard) Prefixes() ([]netip.Prefix, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prefixes, s.changed
}

func (s *switchboard) move(prefixes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefixes = newSwitchboard(prefixes...).prefixes
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *switchboard) Program(ctx context.Context, l Learned) error {
	s.mu.Lock()
	s.got = append(s.got, l)
	took, err := s.took, s.err
	s.mu.Unlock()
	if took < 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(took)
	return err
}

func (s *switchboard) Explain(_ context.Context, pattern string, addr netip.Addr) (Explanation, error) {
	if pattern != "*.example.com." {
		return Explanation{}, errors.New("no such pattern")
	}
	return Explanation{Node: "n1", Programmed: addr == netip.MustParseAddr("192.0.2.1"), Age: time.Minute, Lease: 3 * time.Second}, nil
}

func (s *switchboard) set(took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.err = took, err
}

func (s *switchboard) programs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// rig is a client, and agents on pipes.
type rig struct {
	t      *testing.T
	ctx    context.Context
	client *Client
	mu     sync.Mutex
	agents map[string]*switchboard
	conns  map[string]net.Conn // the agents' ends
	dials  int
	wg     sync.WaitGroup
}

// run gives f a rig whose agents are called by their names, in a bubble. It ends when all goroutines of both sides have.
func run(t *testing.T, agents map[string]*switchboard, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{t: t, ctx: ctx, agents: agents, conns: map[string]net.Conn{}}
		for _, a := range agents {
			a.changed = make(chan struct{}) // of this bubble
		}
		r.client = NewClient(Options{Dial: r.dial, Timeout: 250 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		var names []string
		for n := range agents {
			names = append(names, n)
		}
		r.client.SetAgents(names)
		r.wg.Go(func() { _ = r.client.Run(ctx) })
		synctest.Wait()
		f(r)
		cancel()
		r.wg.Wait()
	})
}

func (r *rig) dial(ctx context.Context, endpoint string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials++
	a := r.agents[endpoint]
	if a == nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	r.conns[endpoint] = far
	if a.frozen != nil {
		return near, nil
	}
	r.wg.Go(func() { _ = serve(r.ctx, far, a) })
	return near, nil
}

// kill breaks the connection to an agent; with false nobody listens there any more.
func (r *rig) kill(name string, back *switchboard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[name] = back
	r.conns[name].Close()
}

// learned is one address of a pattern.
func learned(addr string, lease time.Duration) []Learned {
	return []Learned{{Pattern: "*.example.com.", Name: "a.example.com.", Addrs: []netip.Addr{netip.MustParseAddr(addr)}, Lease: lease}}
}

// hold is Hold, and how long it took.
func (r *rig) hold(asker, addr string, lease time.Duration) (time.Duration, error) {
	began := time.Now()
	err := r.client.Hold(r.ctx, netip.MustParseAddr(asker), learned(addr, lease))
	return time.Since(began), err
}

func (r *rig) want(asker, addr string, lease, took time.Duration, want error) {
	r.t.Helper()
	if got, err := r.hold(asker, addr, lease); got != took || !errors.Is(err, want) {
		r.t.Errorf("Hold(%s, %s) = %v after %v, want %v after %v", asker, addr, err, got, want, took)
	}
}

// flights are the messages to the only agent that wait for their acknowledgement.
func (r *rig) flights() int {
	a := r.client.view.Load().agents[0]
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byID)
}
