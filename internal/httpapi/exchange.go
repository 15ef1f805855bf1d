package httpapi

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/budget"
)

// exchange is one request and its reply. It is the ResponseWriter that doors get.
type exchange struct {
	http.ResponseWriter
	req     *http.Request
	caller  Caller
	area    Area
	id      string
	start   time.Time
	status  int // of the reply; 0 until it begins
	octets  int64
	control *http.ResponseController
	until   time.Time // the deadline of writes
	release func()    // gives back the memory for the body; nil: there is none
}

// exchangeKey is the key of the exchange in the context of its request.
type exchangeKey struct{}

// exchangeOf returns the exchange of the request of ctx. Outside the frame it is an empty one.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// NoteCaller puts who was found to call into the audit line of a request that came without a token: a login.
func NoteCaller(ctx context.Context, c Caller) { exchangeOf(ctx).caller = c }

// Unwrap lets http.ResponseController find the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
	}
	x.extendWrite()
	x.ResponseWriter.WriteHeader(status)
}

// writePiece is how much may be written under one deadline.
const writePiece = 256 << 10

// Write sends b. Each piece has its own time, so that a reply may be as long as it likes, but a reader that takes nothing
// is dropped.
func (x *exchange) Write(b []byte) (n int, err error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	for first := true; first || len(b) > 0; first = false {
		piece := b[:min(len(b), writePiece)]
		x.extendWrite()
		m, err := x.ResponseWriter.Write(piece)
		n += m
		x.octets += int64(m)
		if err != nil {
			return n, err
		}
		b = b[len(piece):]
	}
	return n, nil
}

// extendWrite gives the peer another while to take what we send, unless it has nearly all of one. Recorders in tests have no
// deadlines, which is well.
func (x *exchange) extendWrite() {
	until := time.Now().Add(stall)
	if until.Sub(x.until) < stall/16 {
		return
	}
	x.until = until
	_ = x.control.SetWriteDeadline(until)
}

// finish covers what the server sends after the handler: headers of an empty reply, the last buffer.
func (x *exchange) finish() {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	x.extendWrite()
	if x.release != nil {
		x.release()
	}
}

// Limits bound what a request may take; zero values are the defaults.
type Limits struct {
	Body   int64            // octets of a body; default 1 MiB
	Bodies map[string]int64 // other bounds, by the path before which they hold: zone files are long

	// Budget is the memory that bodies take. Bodies of the path Streamed take their share of it in their handler.
	Budget   *budget.Budget
	Streamed string
}

// loginBody bounds a body of somebody unknown, in bytes. Such bodies take nothing of the budget, which slow ones of a few
// addresses could use up otherwise: all connections together have 16 MiB of them.
const loginBody = 16 << 10

// stall is how long a body may take to begin or go on, and a reply may wait for its reader. A body must also come with
// at least bodyRate bytes a second, what a bad mobile line still does. A fixed time for the whole body would be too
// long for small ones or too short for large ones.
const (
	stall    = 30 * time.Second
	bodyRate = 16 << 10
)

// bodyLimit is the bound of the longest path that matches.
func (l Limits) bodyLimit(path string) int64 {
	limit, longest := cmp.Or(l.Body, 1<<20), 0
	for prefix, n := range l.Bodies {
		if len(prefix) > longest && strings.HasPrefix(path, prefix) {
			limit, longest = n, len(prefix)
		}
	}
	return limit
}

// limitBody bounds the body in size and time, and refuses at once one that says it is too long.
func (f *frame) limitBody(x *exchange, authenticated bool) bool {
	x.extendWrite() // for a 100 Continue, which would meet the deadline of the connection's last request
	if x.req.ContentLength == 0 || x.req.Body == nil {
		return true
	}
	limit := int64(loginBody)
	if authenticated {
		limit = f.Limits.bodyLimit(x.req.URL.Path)
	}
	if x.req.ContentLength > limit {
		x.area.Error(x, x.req, http.StatusRequestEntityTooLarge, tooLarge(limit))
		return false
	}
	if authenticated && !f.takeBody(x, limit) {
		return false
	}
	b := &body{from: http.MaxBytesReader(x, x.req.Body, limit), control: x.control, start: time.Now()}
	b.extend()
	x.req.Body = b
	return true
}

// Memory for a body: bodyMemory bytes for each of its own. A batch of 9,900 record sets, 0.94 MB, took 31 MB from its JSON
// to the commit and the reply.
// A request waits for it no longer than bodyPatience.
const (
	bodyMemory   = 32
	bodyPatience = 10 * time.Second
)

// takeBody waits for the memory that a body and its handling take.
func (f *frame) takeBody(x *exchange, limit int64) bool {
	if f.Limits.Streamed != "" && strings.HasPrefix(x.req.URL.Path, f.Limits.Streamed) {
		return true
	}
	if n := x.req.ContentLength; n >= 0 {
		limit = n
	}
	owner := x.caller.Project
	if owner == "" {
		owner = ClientAddr(x.req).String()
	}
	ctx, cancel := context.WithTimeout(x.req.Context(), bodyPatience)
	defer cancel()
	var err error
	if x.release, err = f.Limits.Budget.Take(ctx, owner, limit*bodyMemory); err != nil {
		x.Header().Set("Retry-After", "10")
		x.area.Error(x, x.req, http.StatusServiceUnavailable, "the server has no memory for this request now: "+
			"too many large ones are being handled; try again later, or send a smaller one")
		return false
	}
	return true
}

// body is a request's body that must keep coming.
type body struct {
	from    io.ReadCloser
	control *http.ResponseController
	start   time.Time
	octets  int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.octets += int64(n)
	if err == nil {
		// Not at the end: net/http has lifted the deadline then, and reads on to see whether the client leaves.
		b.extend()
	}
	return n, err
}

func (b *body) extend() {
	earned := time.Duration(float64(b.octets) / bodyRate * float64(time.Second))
	until := b.start.Add(stall + earned)
	if pause := time.Now().Add(stall); pause.Before(until) {
		until = pause // what came fast does not buy hours of silence
	}
	_ = b.control.SetReadDeadline(until)
}

func (b *body) Close() error { return b.from.Close() }
