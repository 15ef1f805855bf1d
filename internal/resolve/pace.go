package resolve

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Pace keeps all who share it from asking one server more than so often in any second. They get their turns in the order in which
// they came; who gives up gives the turn to the next. The zero Pace works.
type Pace struct {
	Rate int // queries a second to one server; default 10

	mu    sync.Mutex // guards the following
	lanes map[netip.Addr]*lane
}

// lane is the queue before one server.
type lane struct {
	users int           // those who wait; guarded by the mu of Pace
	turn  chan struct{} // has a value while somebody has the turn; the others get it in the order in which they came
	sent  []time.Time   // the last leaves, at most Rate, the oldest first; for the one who has the turn
}

// maxLanes is more servers than many scans ask in a second: a lane whose last leave is a second ago says nothing and is dropped.
const maxLanes = 4096

// crowded is how long to wait where there are as many lanes as may be, all in use.
const crowded = 100 * time.Millisecond

// wait waits for leave to send one query to a server. Its error is that of ctx, and then nothing may be sent.
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

// enter waits for a place in the lane of a server.
func (p *Pace) enter(ctx context.Context, server netip.Addr) (*lane, error) {
	for ctx.Err() == nil {
		if l := p.tryEnter(server); l != nil {
			return l, nil
		}
		_ = Sleep(ctx, crowded) // the loop sees why
	}
	return nil, ctx.Err()
}

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

// sweepLocked drops the lanes that say nothing any more.
func (p *Pace) sweepLocked(now time.Time) {
	for server, l := range p.lanes {
		if n := len(l.sent); l.users == 0 && (n == 0 || now.Sub(l.sent[n-1]) >= time.Second) {
			delete(p.lanes, server)
		}
	}
}

// Sleep waits for d, or for the end of ctx, whose error it returns then.
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
