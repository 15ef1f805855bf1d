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

// exchange is one request and its reply. It is the ResponseWriter that handlers get.
type exchange struct {
	http.ResponseWriter
	req     *http.Request
	caller  Caller
	area    Area
	id      string
	start   time.Time
	status  int // the status of the reply; 0 before it begins
	bytes   int64
	control *http.ResponseController
	until   time.Time // the deadline for writes
	rate    int64     // the bytes per second that the client must read; 0: see stall
	memory  memory
	turns   *Turns
	turn    func() // ends the turn of a read; nil: it has none
}

// exchangeKey is the key of the exchange in the context of its request.
type exchangeKey struct{}

// exchangeOf returns the exchange of the request of ctx, or an empty one outside a Frame.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// NoteCaller sets the caller in the audit line of a request without a token. A login calls it when it knows the user.
func NoteCaller(ctx context.Context, c Caller) { exchangeOf(ctx).caller = c }

// Unwrap lets http.ResponseController find the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader records the status and sends it.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
	}
	x.endTurn()
	x.extendWrite()
	x.ResponseWriter.WriteHeader(status)
}

// writePiece is the number of bytes that are written under one deadline.
const writePiece = 256 << 10

// Write sends b in pieces. Each piece has its own deadline: a reply may have any length, but a client that stops
// reading is disconnected.
func (x *exchange) Write(b []byte) (n int, err error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	for first := true; first || len(b) > 0; first = false {
		piece := b[:min(len(b), writePiece)]
		x.extendWrite()
		m, err := x.ResponseWriter.Write(piece)
		n += m
		x.bytes += int64(m)
		if err != nil {
			return n, err
		}
		b = b[len(piece):]
	}
	return n, nil
}

// extendWrite sets the deadline for writes to stall from now, unless the current one is nearly as late.
// httptest.ResponseRecorder does not support deadlines; the error is ignored.
func (x *exchange) extendWrite() {
	until := time.Now().Add(stall)
	if x.rate > 0 {
		until = earlier(until, x.start.Add(stall+timeFor(x.bytes, x.rate)))
	}
	if until.Sub(x.until) < stall/16 {
		return
	}
	x.until = until
	_ = x.control.SetWriteDeadline(until)
}

// ReadAtLeast disconnects the client of the request of ctx when it reads the reply with less than rate bytes a second,
// on average from the start of the request. The first seconds, stall, do not count. It is for replies that hold a
// resource while they are sent.
func ReadAtLeast(ctx context.Context, rate int64) { exchangeOf(ctx).rate = rate }

// timeFor returns how long n bytes take at a rate in bytes per second.
func timeFor(n, rate int64) time.Duration {
	return time.Duration(float64(n) / float64(rate) * float64(time.Second))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// finish extends the deadline for what net/http sends after the handler: the header of an empty reply, or the last
// buffer. It returns the memory of the request.
func (x *exchange) finish() {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	x.endTurn()
	x.extendWrite()
	x.memory.body.end()
	x.memory.reply.end()
}

// Limits bounds the resources of a request. Zero values are the defaults.
type Limits struct {
	Body   int64            // the largest body in bytes; default 1 MiB
	Bodies map[string]int64 // other limits by prefix of the path: zone files are large

	// Budget is the memory for bodies, and for the replies of handlers that call Reserve. The handler of the path
	// Streamed reserves the memory for its body itself.
	Budget   *budget.Budget
	Streamed string

	// Turns are shared by the listeners of a server: a project that uses two of them has as many as others.
	Turns *Turns
}

// loginBody bounds the body of an unauthenticated request in bytes. Such bodies use no memory of the budget: otherwise
// slow requests from a few addresses could use it up. All connections together hold at most 16 MiB of them.
const loginBody = 16 << 10

// stall is the longest pause in a body, and the longest time that a reply waits for its reader. A body must also arrive
// with at least bodyRate bytes per second, which a bad mobile connection still reaches. A fixed time for the whole body
// would be too long for small ones or too short for large ones.
const (
	stall    = 30 * time.Second
	bodyRate = 16 << 10
)

// bodyLimit returns the limit of the longest prefix that matches.
func (l Limits) bodyLimit(path string) int64 {
	limit, longest := cmp.Or(l.Body, 1<<20), 0
	for prefix, n := range l.Bodies {
		if len(prefix) > longest && strings.HasPrefix(path, prefix) {
			limit, longest = n, len(prefix)
		}
	}
	return limit
}

// limitBody bounds the body in size and time. It refuses a body at once when its Content-Length is too large.
func (f *frame) limitBody(x *exchange, authenticated bool) bool {
	x.extendWrite() // a 100 Continue would fail at the deadline of the previous request on the connection
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
	if authenticated && !f.reserveBody(x, limit) {
		return false
	}
	b := &body{from: http.MaxBytesReader(x, x.req.Body, limit), control: x.control, start: time.Now()}
	b.extend()
	x.req.Body = b
	return true
}

// body is the body of a request that must arrive without long pauses.
type body struct {
	from    io.ReadCloser
	control *http.ResponseController
	start   time.Time
	bytes   int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.bytes += int64(n)
	if err == nil {
		// Not after the end of the body: net/http has removed the deadline then, and reads to notice a disconnect.
		b.extend()
	}
	return n, err
}

func (b *body) extend() {
	// A fast beginning does not allow a long pause later.
	until := earlier(time.Now().Add(stall), b.start.Add(stall+timeFor(b.bytes, bodyRate)))
	_ = b.control.SetReadDeadline(until)
}

func (b *body) Close() error { return b.from.Close() }
