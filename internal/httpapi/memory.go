package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/budget"
)

// ErrNoMemory reports that the memory budget had no space for a request within bodyPatience.
var ErrNoMemory = errors.New("the server has no memory for this request now: it is handling too many large requests; " +
	"try again later, or send a smaller request")

// bodyMemory is the number of bytes of memory for each byte of a body. A batch of 9,900 record sets, 0.94 MB, took 31
// MB from its JSON to the commit and the reply. A request waits for memory no longer than bodyPatience.
const (
	bodyMemory   = 32
	bodyPatience = 10 * time.Second
)

// freeReply is the memory that a request may use for its reply without a reservation: a page of twenty usual record
// sets. All connections together use at most 64 MiB without one.
const freeReply = 64 << 10

// memory is the part of the budget that a request holds.
type memory struct {
	budget      *budget.Budget
	body, reply grant
}

// grant is memory that was taken from the budget. The zero grant is empty.
type grant struct {
	n       int64
	release func()
}

func (g *grant) end() {
	if g.release != nil {
		g.release()
	}
	*g = grant{}
}

// owner returns the project of the caller. A caller without a project, such as a platform, counts by its address.
func (x *exchange) owner() string {
	if x.caller.Project != "" {
		return x.caller.Project
	}
	return ClientAddr(x.req).String()
}

// take waits for n bytes in the name of the owner.
func (x *exchange) take(n int64) (grant, error) {
	ctx, cancel := context.WithTimeout(x.req.Context(), bodyPatience)
	defer cancel()
	release, err := x.memory.budget.Take(ctx, x.owner(), n)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return grant{}, ErrNoMemory
	case err != nil:
		return grant{}, err
	}
	return grant{n, release}, nil
}

// holds reports whether the request of ctx may use n bytes of memory for its reply.
func holds(ctx context.Context, n int64) bool {
	m := &exchangeOf(ctx).memory
	return m.budget == nil || n <= freeReply || n <= m.body.n+m.reply.n
}

// Reserve makes the request of ctx hold n bytes of the memory budget until its reply is written. It blocks until they
// are free. It returns ErrNoMemory when that takes too long, and a *budget.TooLargeError when they never will be free.
// Call it before the reply is built, and hold no data of the reply and no transaction meanwhile.
//
// A second call takes at least twice the bytes of the first, so that a handler which finds out the size while it reads
// starts again only a few times. It returns the bytes of the first before it waits: two requests that wait for each
// other would both fail.
func Reserve(ctx context.Context, n int64) (err error) {
	if holds(ctx, n) {
		return nil
	}
	x := exchangeOf(ctx)
	n = max(n-x.memory.body.n, 2*x.memory.reply.n)
	x.memory.reply.end()
	if err := x.memory.budget.FitsBeside(x.memory.body.n, n); err != nil {
		return err
	}
	inTurn := x.endTurn()
	if x.memory.reply, err = x.take(n); err == nil && inTurn && !x.takeTurn() {
		return ErrNoMemory
	}
	return err
}

// moreMemory is the error of Need.
type moreMemory struct{ n int64 }

func (e *moreMemory) Error() string { return "the request needs more memory" }

// Need returns nil when the request of ctx holds n bytes of the memory budget for its reply. A function that does not
// know the size of its reply before it has read the data calls it with the bytes that it uses so far. When Need returns
// an error, the function must drop its data and return that error: WithMemory then reserves the bytes and calls it
// again. So a request that waits for memory holds no data and no transaction.
func Need(ctx context.Context, n int64) error {
	if holds(ctx, n) {
		return nil
	}
	return &moreMemory{n}
}

// WithMemory calls run until it does not need more memory.
func WithMemory(ctx context.Context, run func() error) error {
	for {
		err := run()
		var more *moreMemory
		if !errors.As(err, &more) {
			return err
		}
		if err := Reserve(ctx, more.n); err != nil {
			return err
		}
	}
}

// A record set or a change weighs EachWeight for its name, times and links, plus the bytes of its records. A reply
// takes up to ReplyMemory bytes for each byte of weight, from the store to its JSON: JSON has five bytes for a byte of
// a TXT record that is written as a decimal escape, and the encoder has two copies.
const (
	EachWeight  = 128
	ReplyMemory = 20
)

// SetMemory returns the memory of a reply with a number of record sets and the bytes of their records.
func SetMemory(sets, bytes int) int64 { return int64(sets*EachWeight+bytes) * ReplyMemory }

// reserveBody waits for the memory that a body and its handler need. It writes the error if there is none in time.
func (f *frame) reserveBody(x *exchange, limit int64) bool {
	if f.Limits.Streamed != "" && strings.HasPrefix(x.req.URL.Path, f.Limits.Streamed) {
		return true
	}
	if n := x.req.ContentLength; n >= 0 {
		limit = n
	}
	var err error
	if x.memory.body, err = x.take(limit * bodyMemory); err != nil {
		x.Header().Set("Retry-After", "10")
		x.area.Error(x, x.req, http.StatusServiceUnavailable, ErrNoMemory.Error())
		return false
	}
	return true
}
