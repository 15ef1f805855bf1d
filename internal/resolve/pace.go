package resolve

import (
	"cmp"
	"context"
	"net/netip"
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
	sent  []time.Time     // the last leaves, at most Rate, the oldest first
	queue []chan struct{} // those who wait; the first has been sent a value
}

// maxLanes is more servers than many scans ask in a second: a lane whose last leave is a second ago says nothing and is dropped.
const maxLanes = 4096

// crowded is how long to wait where there are as many lanes as may be, all in use.
const crowded = 100 * time.Millisecond

// Wait waits for leave to send one query to a server. Its error is that of ctx, and then nothing may be sent.
func (p *Pace) Wait(ctx context.Context, server netip.Addr) error {
	server = server.Unmap()
	turn, err := p.enter(ctx, server)
	if err != nil {
		return err
	}
	select {
	case <-turn:
	case <-ctx.Done():
		p.leave(server, turn, time.Time{})
		return ctx.Err()
	}
	for {
		wait := p.until(server, time.Now())
		if wait <= 0 {
			break
		}
		if err := sleep(ctx, wait); err != nil {
			p.leave(server, turn, time.Time{})
			return err
		}
	}
	p.leave(server, turn, time.Now())
	return nil
}

// enter takes a place in the lane of a server. The channel has a value when it is the first.
func (p *Pace) enter(ctx context.Context, server netip.Addr) (chan struct{}, error) {
	for ctx.Err() == nil {
		if turn := p.tryEnter(server); turn != nil {
			return turn, nil
		}
		_ = sleep(ctx, crowded) // the loop sees why
	}
	return nil, ctx.Err()
}

func (p *Pace) tryEnter(server netip.Addr) chan struct{} {
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
		l = new(lane)
		p.lanes[server] = l
	}
	turn := make(chan struct{}, 1)
	l.queue = append(l.queue, turn)
	if len(l.queue) == 1 {
		turn <- struct{}{}
	}
	return turn
}

// sweepLocked drops the lanes that say nothing any more.
func (p *Pace) sweepLocked(now time.Time) {
	for server, l := range p.lanes {
		if n := len(l.sent); len(l.queue) == 0 && (n == 0 || now.Sub(l.sent[n-1]) >= time.Second) {
			delete(p.lanes, server)
		}
	}
}

// until is how long the first in a lane has to wait.
func (p *Pace) until(server netip.Addr, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.lanes[server]; len(l.sent) >= p.rate() {
		return l.sent[0].Add(time.Second).Sub(now)
	}
	return 0
}

// leave gives up a place in a lane; sent says when leave was used, if it was.
func (p *Pace) leave(server netip.Addr, turn chan struct{}, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[server]
	for i, t := range l.queue {
		if t != turn {
			continue
		}
		l.queue = append(l.queue[:i], l.queue[i+1:]...)
		if i == 0 && len(l.queue) > 0 {
			l.queue[0] <- struct{}{}
		}
		break
	}
	if sent.IsZero() {
		return
	}
	if len(l.sent) >= p.rate() {
		l.sent = append(l.sent[:0], l.sent[1:]...)
	}
	l.sent = append(l.sent, sent)
}

func (p *Pace) rate() int { return cmp.Or(p.Rate, 10) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
