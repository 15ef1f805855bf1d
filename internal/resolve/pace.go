package resolve

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Pace limits the queries per second to each server, for all runs that share it. Callers wait in the order of their
// arrival. A caller that gives up does not use up a query. The zero Pace is ready to use.
//
// A rate.Limiter of golang.org/x/time breaks these rules: measured with a limit of 10, one with a burst of 10 allowed
// 19 queries in a second, one with a burst of 1 spread the first 10 over 0.9 s, and a caller behind 50 that gave up
// waited 5.1 s, which is 1 s here.
type Pace struct {
	Rate int // queries per second to one server; default 10

	mu    sync.Mutex // guards the following
	lanes map[netip.Addr]*lane
}

// lane is the queue of callers that want to send a query to one server.
type lane struct {
	users int // number of callers in the queue; guarded by the mu of Pace
	// turn holds a value while a caller is at the head of the queue. Channels serve waiting senders in order of arrival.
	turn chan struct{}
	// sent has the times of the last queries: at most Rate, the oldest first. Only the caller at the head uses it.
	sent []time.Time
}

// maxLanes is more than the number of servers that many scans query in a second. A lane whose last query is a second
// ago limits nothing and is dropped.
const maxLanes = 4096

// lanesFullWait is the pause before the next attempt when there are maxLanes lanes and all are in use.
const lanesFullWait = 100 * time.Millisecond

// wait blocks until one query may be sent to a server. If ctx ends first, wait returns its error and nothing may be
// sent.
func (p *Pace) wait(ctx context.Context, server netip.Addr) error {
	l, err := p.enter(ctx, server.Unmap())
	if err != nil {
		return err
	}
	defer p.leave(l)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if len(l.sent) >= cmp.Or(p.Rate, 10) {
		if err := Sleep(ctx, time.Until(l.sent[0].Add(time.Second))); err != nil {
			return err
		}
		l.sent = slices.Delete(l.sent, 0, 1)
	}
	l.sent = append(l.sent, time.Now())
	return nil
}

// enter joins the queue of a server. It blocks while there are too many lanes.
func (p *Pace) enter(ctx context.Context, server netip.Addr) (*lane, error) {
	for ctx.Err() == nil {
		if l := p.tryEnter(server); l != nil {
			return l, nil
		}
		_ = Sleep(ctx, lanesFullWait) // the loop condition checks the context
	}
	return nil, ctx.Err()
}

// tryEnter returns nil if there is no lane for the server and no room for a new one.
func (p *Pace) tryEnter(server netip.Addr) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[server]
	if l == nil {
		if len(p.lanes) >= maxLanes {
			p.sweepLocked(time.Now())
		}
		if len(p.lanes) >= maxLanes {
			return nil
		}
		if p.lanes == nil {
			p.lanes = map[netip.Addr]*lane{}
		}
		l = &lane{turn: make(chan struct{}, 1)}
		p.lanes[server] = l
	}
	l.users++
	return l
}

func (p *Pace) leave(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
}

// sweepLocked drops the lanes that limit nothing any longer: no caller waits, and the last query is a second ago. The
// caller holds mu.
func (p *Pace) sweepLocked(now time.Time) {
	for server, l := range p.lanes {
		if n := len(l.sent); l.users == 0 && (n == 0 || now.Sub(l.sent[n-1]) >= time.Second) {
			delete(p.lanes, server)
		}
	}
}

// Sleep blocks for d or until ctx ends. In the second case it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
