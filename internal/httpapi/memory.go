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

// take waits for n bytes in the name of the caller's project. An administrator without a project counts by address.
func (x *exchange) take(n int64) (grant, error) {
	owner := x.caller.Project
	if owner == "" {
		owner = ClientAddr(x.req).String()
	}
	ctx, cancel := context.WithTimeout(x.req.Context(), bodyPatience)
	defer cancel()
	release, err := x.memory.budget.Take(ctx, owner, n)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return grant{}, ErrNoMemory
	case err != nil:
		return grant{}, err
	}
	return grant{n, release}, nil
}

// Holds reports whether the request of ctx may use n bytes of memory for its reply.
func Holds(ctx context.Context, n int64) bool {
	m := &exchangeOf(ctx).memory
	return m.budget == nil || n <= freeReply || n <= m.body.n+m.reply.n
}

// Reserve makes the request of ctx hold n bytes of the memory budget until its reply is written. It blocks until they
// are free, and returns ErrNoMemory when that takes too long. Call it before the reply is built, and hold no data of
// the reply and no transaction meanwhile.
//
// A second call takes at least twice the bytes of the first, so that a handler which finds out the size while it reads
// starts again only a few times. It returns the bytes of the first before it waits: two requests that wait for each
// other would both fail.
func Reserve(ctx context.Context, n int64) (err error) {
	if Holds(ctx, n) {
		return nil
	}
	x := exchangeOf(ctx)
	n = max(n-x.memory.body.n, 2*x.memory.reply.n)
	x.memory.reply.end()
	x.memory.reply, err = x.take(n)
	return err
}

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
