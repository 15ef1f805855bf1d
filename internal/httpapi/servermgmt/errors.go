package servermgmt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mecbody"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

// fault is an error as a client gets to see it.
type fault struct {
	status int
	detail string
	allow  []string // methods, with 405
}

func (f *fault) Error() string { return f.detail }

func (c *call) fail(err error) {
	f := c.asFault(err)
	h := c.w.Header()
	if len(f.allow) > 0 {
		h.Set("Allow", strings.Join(f.allow, ", "))
	}
	if f.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "5")
	}
	httpapi.Problem(c.w, c.r, f.status, f.detail)
}

// asFault is the one table from errors of the domain to statuses. What nobody foresaw is told in the log only.
func (c *call) asFault(err error) *fault {
	var f *fault
	var body *mecbody.Error
	var field *mec.FieldError
	var limit *mec.LimitError
	var conflict *mec.ConflictError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &body):
		return &fault{status: body.Status, detail: body.Detail}
	case errors.As(err, &field):
		return &fault{status: http.StatusBadRequest, detail: err.Error()}
	case errors.As(err, &conflict):
		return &fault{status: c.exists(), detail: conflict.Detail()}
	case errors.As(err, &limit):
		return &fault{status: http.StatusForbidden, detail: err.Error()}
	case errors.As(err, &large):
		return &fault{status: http.StatusRequestEntityTooLarge, detail: fmt.Sprintf("the body is larger than %d octets", large.Limit)}
	case errors.Is(err, store.ErrNotFound):
		return &fault{status: c.missing(), detail: "there is no such record"}
	case errors.Is(err, store.ErrExists):
		return &fault{status: c.exists(), detail: "record already exists! " + err.Error()}
	case errors.Is(err, store.ErrUnavailable):
		return c.unavailable(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &fault{status: http.StatusServiceUnavailable, detail: "the request ended before it was done"}
	}
	c.Log.Error("request failed", "method", c.r.Method, "path", c.r.URL.Path, "request_id", httpapi.RequestID(c.r.Context()), "error", err)
	return &fault{status: http.StatusInternalServerError, detail: "internal error; the log has more under this request id"}
}

func (c *call) exists() int {
	if c.EdgeGalleryStatus {
		return http.StatusBadRequest
	}
	return http.StatusConflict
}

func (c *call) missing() int {
	switch {
	case c.EdgeGalleryStatus && c.r.Method == http.MethodPut:
		return http.StatusBadRequest
	case c.EdgeGalleryStatus && c.r.Method == http.MethodDelete:
		return http.StatusInternalServerError
	}
	return http.StatusNotFound
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
