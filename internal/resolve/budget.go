package resolve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// ErrBudget reports that a query was not sent because its budget is used up. It says nothing about the server.
var ErrBudget = errors.New("the budget is used up")

// Budget limits the queries of one run: in total, in flight at the same time, and per second to one server.
type Budget struct {
	max    int
	whole  *Budget // the budget that this one is a part of; nil if it is not a part
	own    *Pace
	shared *Pace // the pace shared with other runs; may be nil
	slots  chan struct{}

	mu   sync.Mutex // guards left
	left int
}

// inFlight is the number of queries of a run that may wait for their replies at the same time.
const inFlight = 64

// NewBudget returns a budget of queries in total and rate queries per second to one server. Runs that share a Pace
// are one client to a server. shared may be nil.
func NewBudget(queries, rate int, shared *Pace) *Budget {
	return &Budget{max: queries, left: queries, own: &Pace{Rate: rate},
		shared: shared, slots: make(chan struct{}, inFlight)}
}

// Part returns a budget of at most queries. Its queries also count against b, and it has the same pace as b.
func (b *Budget) Part(queries int) *Budget {
	return &Budget{max: queries, left: queries, whole: b, own: b.own, shared: b.shared, slots: b.slots}
}

// Separate returns a budget of queries that do not count against b. It has the same pace as b.
func (b *Budget) Separate(queries int) *Budget {
	return &Budget{max: queries, left: queries, own: b.own, shared: b.shared, slots: b.slots}
}

// Wait takes one query from the budget and blocks until it may be sent to the server. The error is ErrBudget or that
// of ctx.
func (b *Budget) Wait(ctx context.Context, server netip.Addr) error {
	if !b.take() {
		return ErrBudget
	}
	if err := b.own.wait(ctx, server); err != nil {
		return err
	}
	if b.shared == nil {
		return nil
	}
	// The run waits for its own pace first. If it queued all its queries in the shared pace at once, other runs would
	// wait for all of them.
	return b.shared.wait(ctx, server)
}

// Acquire calls Wait, and then blocks until fewer than inFlight queries wait for a reply. The caller must call
// Release if the error is nil.
func (b *Budget) Acquire(ctx context.Context, server netip.Addr) error {
	// Take the slot last: a query that waits for the pace of one server must not block queries to other servers.
	if err := b.Wait(ctx, server); err != nil {
		return err
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		b.Release()
		return err
	}
	return nil
}

// Release frees the slot that Acquire took.
func (b *Budget) Release() { <-b.slots }

// take counts one query against b and the budgets that b is a part of. It reports whether all had one left.
func (b *Budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left <= 0 || b.whole != nil && !b.whole.take() {
		return false
	}
	b.left--
	return true
}

// Left returns the number of queries that may still be sent.
func (b *Budget) Left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole != nil {
		return min(b.left, b.whole.Left())
	}
	return b.left
}

func (b *Budget) String() string { return fmt.Sprintf("%d queries", b.max) }
