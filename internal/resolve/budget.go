package resolve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// ErrBudget is why a query was not sent. It says nothing about the server.
var ErrBudget = errors.New("the budget is used up")

// Budget bounds what one run asks: in all, at a time, and of one server in a second.
type Budget struct {
	max    int
	whole  *Budget // of which this is a part; nil: this is the whole
	own    *Pace
	shared *Pace // with other runs; may be nil
	slots  chan struct{}

	mu   sync.Mutex // guards left
	left int
}

// inFlight is how many queries of a run are on their way at a time.
const inFlight = 64

// NewBudget returns a budget of so many queries in all, and so many a second to one server. Runs that share a Pace are one client
// to a server; shared may be nil.
func NewBudget(queries, rate int, shared *Pace) *Budget {
	return &Budget{max: queries, left: queries, own: &Pace{Rate: rate}, shared: shared, slots: make(chan struct{}, inFlight)}
}

// Part returns a budget of so many queries at most that counts for b, too, and keeps its pace.
func (b *Budget) Part(queries int) *Budget {
	return &Budget{max: queries, left: queries, whole: b, own: b.own, shared: b.shared, slots: b.slots}
}

// Beside returns a budget of so many queries that does not count for b, and keeps its pace.
func (b *Budget) Beside(queries int) *Budget {
	return &Budget{max: queries, left: queries, own: b.own, shared: b.shared, slots: b.slots}
}

// Turn takes one query from the budget, and waits until the server may be sent it. Its error is ErrBudget, or that of ctx.
func (b *Budget) Turn(ctx context.Context, server netip.Addr) error {
	if !b.take() {
		return ErrBudget
	}
	if err := b.own.wait(ctx, server); err != nil {
		return err
	}
	if b.shared == nil {
		return nil
	}
	// The run asks for a turn among all at its own pace: if it asked for all turns at once, other runs would wait for them.
	return b.shared.wait(ctx, server)
}

// Acquire is Turn, and then waits until less than the most queries are on their way. Release must follow if there is no error.
func (b *Budget) Acquire(ctx context.Context, server netip.Addr) error {
	// The slot comes last: queries that wait for one server must not hold up those to others.
	if err := b.Turn(ctx, server); err != nil {
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

// Release ends what Acquire began.
func (b *Budget) Release() { <-b.slots }

func (b *Budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left <= 0 || b.whole != nil && !b.whole.take() {
		return false
	}
	b.left--
	return true
}

// Left is how many queries may still be sent.
func (b *Budget) Left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole != nil {
		return min(b.left, b.whole.Left())
	}
	return b.left
}

func (b *Budget) String() string { return fmt.Sprintf("%d queries", b.max) }
