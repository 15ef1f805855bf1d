package httpapi

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// turnPatience is how long a request waits for its turn.
const turnPatience = 10 * time.Second

// Turns bounds how many reads of one owner use a processor at a time, so that the lists of one project cannot use all
// processors: a change of another project would wait behind each of them, for up to ten milliseconds at every step. A
// read has its turn from the beginning of its handler to the beginning of its reply, but not while it waits for memory.
//
// Changes have no turns, except for work before the commit that takes long, which calls TakeTurn. They wait for the
// disk together, and package publish paces those that take long.
type Turns struct {
	each int // reads of one owner at a time

	mu    sync.Mutex // guards lines
	lines map[string]*line
}

// line is the line of one owner. It exists while a request of the owner has a turn or waits for one.
type line struct {
	slots    chan struct{}
	requests int
}

// NewTurns returns Turns for all listeners of a server.
func NewTurns() *Turns {
	return &Turns{each: max(1, runtime.GOMAXPROCS(0)/2), lines: map[string]*line{}}
}

// take waits for a turn of an owner, in the order of arrival. The caller must call end.
func (t *Turns) take(ctx context.Context, owner string) (end func(), err error) {
	l := t.enter(owner)
	select {
	case l.slots <- struct{}{}:
		return func() {
			<-l.slots
			t.leave(owner, l)
		}, nil
	case <-ctx.Done():
		t.leave(owner, l)
		return nil, ctx.Err()
	}
}

func (t *Turns) enter(owner string) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[owner]
	if l == nil {
		l = &line{slots: make(chan struct{}, t.each)}
		t.lines[owner] = l
	}
	l.requests++
	return l
}

func (t *Turns) leave(owner string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.requests--; l.requests == 0 {
		delete(t.lines, owner)
	}
}

// takeTurn makes a read wait for its turn. It returns false when that takes too long, or the client has gone.
func (x *exchange) takeTurn() bool {
	ctx, cancel := context.WithTimeout(x.req.Context(), turnPatience)
	defer cancel()
	var err error
	x.turn, err = x.turns.take(ctx, x.owner())
	return err == nil
}

// TakeTurn makes the request of ctx wait for a turn like those of reads, for work of a change that takes long before
// its commit. It returns ErrNoTurn when that takes too long. Call EndTurn before the commit.
func TakeTurn(ctx context.Context) error {
	if x := exchangeOf(ctx); x.turns != nil && x.turn == nil && !x.takeTurn() {
		return ErrNoTurn
	}
	return nil
}

// largeBody is the size of bodies that take long to parse. Ordinary changes are smaller, and do not wait for the lists
// of their project.
const largeBody = 64 << 10

// TakeTurnFor is TakeTurn for parsing a body of n bytes. Small bodies need no turn.
func TakeTurnFor(ctx context.Context, n int) error {
	if n <= largeBody {
		return nil
	}
	return TakeTurn(ctx)
}

// EndTurn ends the turn of the request of ctx, if it has one.
func EndTurn(ctx context.Context) { exchangeOf(ctx).endTurn() }

// endTurn ends the turn of a read, and reports whether it had one.
func (x *exchange) endTurn() bool {
	end := x.turn
	if x.turn = nil; end == nil {
		return false
	}
	end()
	return true
}

// ErrNoTurn reports that a request did not get its turn.
var ErrNoTurn = errors.New("too many requests of this project are being answered; try again later, with fewer at a " +
	"time")

// inTurn reports whether a request may run its handler now. If not, inTurn has written the error.
func (f *frame) inTurn(x *exchange) bool {
	if changes(x.req.Method) || f.isPublic(x.req) || x.takeTurn() {
		return true
	}
	x.Header().Set("Retry-After", "10")
	x.area.Error(x, x.req, http.StatusServiceUnavailable, ErrNoTurn.Error())
	return false
}
