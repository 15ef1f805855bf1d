package gather

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/resolve"
)

// errBudget is why a query was not sent.
var errBudget = errors.New("the budget is used up")

// budget bounds what is asked: in all, at a time, and of one server in a second.
type budget struct {
	rate  int
	max   int
	all   *resolve.Pace // that of everybody; may be nil
	slots chan struct{}

	mu    sync.Mutex // guards the following
	left  int
	times map[netip.Addr][]time.Time // when a server was sent queries, the last ones
}

func newBudget(o Options) *budget {
	return &budget{rate: o.Rate, all: o.Pace, max: o.MaxQueries, left: o.MaxQueries, slots: make(chan struct{}, o.InFlight), times: map[netip.Addr][]time.Time{}}
}

// acquire waits until a server may be sent a query. Release must follow if there is no error. Free ones count elsewhere, and
// not here.
func (b *budget) acquire(ctx context.Context, server netip.Addr, free bool) error {
	if err := b.wait(ctx, server, free); err != nil {
		return err
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return errBudget
	}
	if ctx.Err() != nil {
		b.release()
		return errBudget
	}
	return nil
}

// pace is acquire for those who send one query at a time.
func (b *budget) pace(ctx context.Context, server netip.Addr) error {
	return b.wait(ctx, server, false)
}

// wait waits for the turn of a server.
func (b *budget) wait(ctx context.Context, server netip.Addr, free bool) error {
	at, err := b.reserve(server, free, time.Now())
	if err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return errBudget
	}
	// Only then a turn among all is asked for: who asked for many at once would keep the others waiting.
	if b.all != nil && b.all.Wait(ctx, server) != nil {
		return errBudget
	}
	return nil
}

func (b *budget) release() { <-b.slots }

func (b *budget) reserve(server netip.Addr, free bool, now time.Time) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !free && b.left <= 0 {
		return time.Time{}, errBudget
	}
	if !free {
		b.left--
	}
	last := b.times[server]
	at := now
	if n := len(last); n >= b.rate {
		if next := last[n-b.rate].Add(time.Second); next.After(at) {
			at = next
		}
	}
	b.times[server] = append(last, at)
	return at, nil
}

// spent notes a query that somebody else sent.
func (b *budget) spent(server netip.Addr, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left--
	b.times[server] = append(b.times[server], at)
}

// remaining is how many queries are left.
func (b *budget) remaining() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.left, 0)
}

func (b *budget) String() string { return fmt.Sprintf("%d queries", b.max) }
