package hold

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// connect runs one connection to an agent.
func (a *agent) connect(ctx context.Context) error {
	dctx, cancelDial := context.WithTimeout(ctx, handshakeTimeout)
	conn, err := a.client.opts.Dial(dctx, a.endpoint)
	cancelDial()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, drop := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer drop(nil)
	s := newStream(conn)
	wg.Go(func() { drop(s.write(ctx)) })
	hello, err := s.read(handshakeTimeout)
	if err != nil {
		return fmt.Errorf("no hello: %w", err)
	}
	if hello.Op != opHello || hello.Version != version {
		return fmt.Errorf("first message is %q with version %d, not hello with version %d", hello.Op, hello.Version, version)
	}
	a.attach(s, drop, hello)
	defer a.detach()
	wg.Go(func() { a.pingLoop(ctx) })
	for {
		m, err := s.read(clientIdle)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return err
		}
		a.handle(m)
	}
}

// attach starts a new connection and sends all flights again. It deletes the leases, because the agent may have
// restarted.
func (a *agent) attach(s *stream, drop context.CancelCauseFunc, hello message) {
	a.mu.Lock()
	a.stream, a.drop = s, drop
	a.prefixes = plausible(hello.Prefixes)
	clear(a.leases)
	a.closeBreakerLocked()
	now := time.Now()
	for _, f := range a.flightsLocked() {
		a.sendLocked(f, now)
	}
	a.mu.Unlock()
	a.client.opts.Log.Info("connected to agent", "agent", a.endpoint, "prefixes", len(hello.Prefixes))
	a.client.buildView()
}

// flightsLocked returns all flights, oldest first.
func (a *agent) flightsLocked() []*flight {
	return slices.SortedFunc(maps.Values(a.byID), func(x, y *flight) int { return cmp.Compare(x.id, y.id) })
}

func (a *agent) detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream, a.drop = nil, nil
	clear(a.leases)
}

// plausible returns the prefixes that can belong to a node's pods. A very short prefix would make most addresses pod
// addresses, which answers must not contain.
func plausible(prefixes []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range prefixes {
		if p = p.Masked(); p.IsValid() && p.Bits() >= minBits[familyOf(p.Addr())] {
			out = append(out, p)
		}
	}
	return out
}

// minBits are the shortest accepted prefix lengths of IPv4 and IPv6. A whole cluster has at most 10.0.0.0/8.
var minBits = [2]int{8, 16}

// handle processes one message of the agent.
func (a *agent) handle(m message) {
	switch m.Op {
	case opPrefixes:
		a.mu.Lock()
		a.prefixes = plausible(m.Prefixes)
		a.mu.Unlock()
		a.client.buildView()
	case opPong:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.open && m.ID >= a.trial {
			a.closeBreakerLocked()
		}
	case opDone:
		a.mu.Lock()
		defer a.mu.Unlock()
		f := a.byID[m.ID]
		if f == nil {
			return // given up before
		}
		if m.Error != "" {
			a.endLocked(f, fmt.Errorf("%w: %s", ErrRefused, m.Error))
			return
		}
		a.closeBreakerLocked()
		a.endLocked(f, nil)
	}
}

// pingLoop pings the agent, more often while the breaker is open. It also ends old flights and deletes ended leases.
func (a *agent) pingLoop(ctx context.Context) {
	tick := time.NewTicker(pingBroken)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.abandon(ErrTimeout, func(f *flight) bool { return time.Since(f.born) > flightTimeout })
		a.mu.Lock()
		if a.open || n%int(pingEvery/pingBroken) == 0 {
			a.lastID++
			a.queueLocked(message{Op: opPing, ID: a.lastID})
		}
		if n%30 == 0 {
			now := time.Now()
			maps.DeleteFunc(a.leases, func(_ key, until time.Time) bool { return !until.After(now) })
		}
		a.mu.Unlock()
	}
}
