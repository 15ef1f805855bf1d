package mec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mecbody"
	rules "github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

// fault is an error as a client gets to see it.
type fault struct {
	status int
	detail string
	allow  []string      // methods, with 405
	wait   time.Duration // with 429
}

func (f *fault) Error() string { return f.detail }

func (c *call) fail(err error) {
	f := c.asFault(err)
	h := c.w.Header()
	if len(f.allow) > 0 {
		h.Set("Allow", strings.Join(f.allow, ", "))
	}
	if f.status == http.StatusServiceUnavailable || f.status == http.StatusTooManyRequests {
		h.Set("Retry-After", strconv.Itoa(int(cmp.Or(f.wait, 4*time.Second).Seconds())+1))
	}
	httpapi.Problem(c.w, c.r, f.status, f.detail)
}

// asFault is the one table from errors of the domain to statuses. What nobody foresaw is told in the log only.
func (c *call) asFault(err error) *fault {
	var f *fault
	var body *mecbody.Error
	var field *rules.FieldError
	var limit *rules.LimitError
	var conflict *rules.ConflictError
	var large *http.MaxBytesError
	there := cmp.Or(c.route.conflict, http.StatusConflict)
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &body):
		return &fault{status: body.Status, detail: body.Detail}
	case errors.As(err, &field):
		return &fault{status: http.StatusBadRequest, detail: err.Error()}
	case errors.As(err, &conflict):
		return &fault{status: there, detail: c.conflictText(conflict)}
	case errors.As(err, &limit), errors.Is(err, rules.ErrTaskRunning), errors.Is(err, rules.ErrNoDelivery):
		return &fault{status: http.StatusForbidden, detail: err.Error()}
	case errors.As(err, &large):
		return &fault{status: http.StatusRequestEntityTooLarge, detail: fmt.Sprintf("the body is larger than %d octets", large.Limit)}
	case errors.Is(err, store.ErrNotFound):
		return &fault{status: http.StatusNotFound, detail: c.notFound()}
	case errors.Is(err, store.ErrExists):
		return &fault{status: there, detail: "Resource already exists: " + err.Error()}
	case errors.Is(err, store.ErrUnavailable):
		return c.unavailable(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &fault{status: http.StatusServiceUnavailable, detail: "the request ended before it was done"}
	}
	c.Log.Error("request failed", "method", c.r.Method, "path", c.r.URL.Path, "request_id", httpapi.RequestID(c.r.Context()), "error", err)
	return &fault{status: http.StatusInternalServerError, detail: "internal error; the log has more under this request id"}
}

// conflictText names the other owner to the platform only: an application need not know who else is here.
func (c *call) conflictText(e *rules.ConflictError) string {
	if c.name == "mp1" {
		return e.Error()
	}
	return e.Detail()
}

// notFound names what the path asks for.
func (c *call) notFound() string {
	for _, part := range []struct{ param, what string }{
		{"rule", "DNS rule"}, {"subscription", "subscription"}, {"task", "task"}, {"app", "application"},
	} {
		if id := c.r.PathValue(part.param); id != "" {
			return fmt.Sprintf("there is no %s %.140q here", part.what, id)
		}
	}
	return "there is nothing here"
}

// unavailable words that the store takes no changes. The whole error, with the path of the file, is for the log.
func (c *call) unavailable(err error) *fault {
	c.Log.Warn("change refused", "request_id", httpapi.RequestID(c.r.Context()), "error", err)
	why := ""
	if no := syscall.Errno(0); errors.As(err, &no) {
		why = ": " + no.Error()
	}
	return &fault{status: http.StatusServiceUnavailable, detail: "the store cannot take changes now" + why +
		". Nothing was changed, and queries are answered as before"}
}
