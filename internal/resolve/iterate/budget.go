package iterate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// errBudget is why a query was not sent, or not waited for. It says nothing about the server.
var errBudget = errors.New("the budget is used up")

// budget bounds a walk as a whole: a bound per step lets one domain take minutes.
type budget struct {
	opts  Options
	slots chan struct{} // one for each query in flight

	mu     sync.Mutex // guards the following
	sent   int
	times  map[netip.Addr][]time.Time   // when a server was sent its last queries
	wasted map[netip.Addr]time.Duration // how long a server was waited for in vain
	ended  map[string]bool              // the limits that were reached
}

func newBudget(opts Options) *budget {
	return &budget{opts: opts, slots: make(chan struct{}, opts.InFlight), times: map[netip.Addr][]time.Time{},
		wasted: map[netip.Addr]time.Duration{}, ended: map[string]bool{}}
}

// acquire waits until a server may be sent a query. Release must follow if there is no error.
func (b *budget) acquire(ctx context.Context, server netip.Addr) error {
	at, err := b.reserve(server, time.Now())
	if err != nil {
		return err
	}
	// A slot is taken only when the server's turn has come: those who wait for one server must not hold up the others.
	if wait := time.Until(at); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return b.timeUp()
		}
	}
	if p := b.opts.Pace; p != nil && p.Wait(ctx, server) != nil {
		return b.timeUp()
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return b.timeUp()
	}
	if ctx.Err() != nil {
		b.release()
		return b.timeUp()
	}
	return nil
}

func (b *budget) release() { <-b.slots }

// reserve takes one query from the budget and is when it may be sent: not more than Rate in any second.
func (b *budget) reserve(server netip.Addr, now time.Time) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent >= b.opts.MaxQueries {
		b.ended[fmt.Sprintf("%d queries", b.opts.MaxQueries)] = true
		return time.Time{}, errBudget
	}
	b.sent++
	last := b.times[server]
	at := now
	if n := len(last); n >= b.opts.Rate {
		if free := last[n-b.opts.Rate].Add(time.Second); free.After(at) {
			at = free
		}
		last = last[n-b.opts.Rate+1:]
	}
	b.times[server] = append(last, at)
	return at, nil
}

func (b *budget) timeUp() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended[b.opts.MaxTime.String()] = true
	return errBudget
}

// waste notes that a server was waited for in vain; a reply makes good for it.
func (b *budget) waste(server netip.Addr, c Class, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Transport() {
		b.wasted[server] += d
		return
	}
	delete(b.wasted, server)
}

// hopeless reports whether a server was waited for as long as all tries of a question take, without any reply.
func (b *budget) hopeless(server netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := time.Duration(0)
	for _, d := range b.opts.Timeouts {
		all += d
	}
	return b.wasted[server] >= all
}

// limits are the limits that were reached.
func (b *budget) limits() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sortedKeys(b.ended)
}
