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

// fakeAgent is an agent whose switch takes as long as the test says.
type fakeAgent struct {
	mu       sync.Mutex
	prefixes []netip.Prefix
	changed  chan struct{}
	took     time.Duration // duration of a Program; negative means forever
	err      error
	got      []Learned
	frozen   chan struct{} // not nil: nothing is answered, like a stopped process
}

func newFakeAgent(prefixes ...string) *fakeAgent {
	s := &fakeAgent{changed: make(chan struct{})}
	for _, p := range prefixes {
		s.prefixes = append(s.prefixes, netip.MustParsePrefix(p))
	}
	return s
}

func (s *fakeAgent) Prefixes() ([]netip.Prefix, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prefixes, s.changed
}

func (s *fakeAgent) move(prefixes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefixes = newFakeAgent(prefixes...).prefixes
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *fakeAgent) Program(ctx context.Context, l Learned) error {
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

func (s *fakeAgent) Explain(_ context.Context, pattern string, addr netip.Addr) (Explanation, error) {
	if pattern != "*.example.com." {
		return Explanation{}, errors.New("no such pattern")
	}
	return Explanation{Node: "n1", Programmed: addr == netip.MustParseAddr("192.0.2.1"), Age: time.Minute,
		Lease: 3 * time.Second}, nil
}

func (s *fakeAgent) set(took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.err = took, err
}

func (s *fakeAgent) programs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// rig is a client with agents on pipes.
type rig struct {
	t      *testing.T
	ctx    context.Context
	client *Client
	mu     sync.Mutex
	agents map[string]*fakeAgent
	conns  map[string]net.Conn // the agents' ends
	dials  int
	wg     sync.WaitGroup
}

// run calls f with a rig whose agents have the given names, in a synctest bubble. It returns after all goroutines of
// both sides have ended.
func run(t *testing.T, agents map[string]*fakeAgent, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{t: t, ctx: ctx, agents: agents, conns: map[string]net.Conn{}}
		for _, a := range agents {
			a.changed = make(chan struct{}) // belongs to this bubble
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

// kill breaks the connection to an agent. If back is nil, nothing listens there afterwards.
func (r *rig) kill(name string, back *fakeAgent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[name] = back
	r.conns[name].Close()
}

// learned returns one address of a pattern.
func learned(addr string, lease time.Duration) []Learned {
	return []Learned{{Pattern: "*.example.com.", Name: "a.example.com.", Addrs: []netip.Addr{netip.MustParseAddr(addr)},
		Lease: lease}}
}

// hold calls Hold and returns its duration.
func (r *rig) hold(client, addr string, lease time.Duration) (time.Duration, error) {
	began := time.Now()
	err := r.client.Hold(r.ctx, netip.MustParseAddr(client), learned(addr, lease))
	return time.Since(began), err
}

func (r *rig) want(client, addr string, lease, took time.Duration, want error) {
	r.t.Helper()
	if got, err := r.hold(client, addr, lease); got != took || !errors.Is(err, want) {
		r.t.Errorf("Hold(%s, %s) = %v after %v, want %v after %v", client, addr, err, got, want, took)
	}
}

// flights returns the number of messages in flight to the only agent.
func (r *rig) flights() int {
	a := r.client.view.Load().agents[0]
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byID)
}
