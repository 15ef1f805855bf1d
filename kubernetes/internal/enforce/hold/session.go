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

// connect is one connection to an agent, from its beginning to its end.
func (a *agent) connect(ctx context.Context) error {
	dctx, cancelDial := context.WithTimeout(ctx, handshakeTime)
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
	hello, err := s.read(handshakeTime)
	if err != nil {
		return fmt.Errorf("no hello: %w", err)
	}
	if hello.Op != opHello || hello.Version != version {
		return fmt.Errorf("it says %q of version %d, not hello of version %d", hello.Op, hello.Version, version)
	}
	a.attach(s, drop, hello)
	defer a.detach()
	wg.Go(func() { a.pings(ctx) })
	for {
		m, err := s.read(clientIdle)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return err
		}
		a.take(m)
	}
}

// attach begins with a new connection: all that waits is sent again. Leases are gone with the old one, since the agent may
// have started anew.
func (a *agent) attach(s *stream, drop context.CancelCauseFunc, hello message) {
	a.mu.Lock()
	a.stream, a.drop = s, drop
	a.prefixes = sane(hello.Prefixes)
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

// flightsLocked are all flights, oldest first.
func (a *agent) flightsLocked() []*flight {
	return slices.SortedFunc(maps.Values(a.byID), func(x, y *flight) int { return cmp.Compare(x.id, y.id) })
}

func (a *agent) detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream, a.drop = nil, nil
	clear(a.leases)
}

// sane are the prefixes that can be those of a node's pods. One that has half the world in it would make all addresses ones
// of pods, which no answer may lead to.
func sane(prefixes []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range prefixes {
		if p = p.Masked(); p.IsValid() && p.Bits() >= minBits[familyOf(p.Addr())] {
			out = append(out, p)
		}
	}
	return out
}

// minBits are the shortest prefixes that are believed, of IPv4 and IPv6. A whole cluster has 10.0.0.0/8 at most.
var minBits = [2]int{8, 16}

// take is one message of the agent.
func (a *agent) take(m message) {
	switch m.Op {
	case opPrefixes:
		a.mu.Lock()
		a.prefixes = sane(m.Prefixes)
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
			return // given up long ago
		}
		if m.Error != "" {
			a.endLocked(f, fmt.Errorf("%w: %s", ErrRefused, m.Error))
			return
		}
		a.closeBreakerLocked()
		a.endLocked(f, nil)
	}
}

// pings asks for a sign of life, more often while the breaker is open, and clears away what is over.
func (a *agent) pings(ctx context.Context) {
	tick := time.NewTicker(pingBroken)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.abandon(ErrTimeout, func(f *flight) bool { return time.Since(f.born) > flightLife })
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
