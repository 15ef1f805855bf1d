// Package mechttp holds the code that the HTTP APIs for edge platforms share: routes, JSON bodies and problem
// documents.
//
// Start with Register in route.go: it routes a request to a handler. Handlers read bodies with Read and Decode
// (body.go) and return errors, which Fail in this file turns into problem documents (RFC 9457).
package mechttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

// Fault is an error in the form that the client sees.
type Fault struct {
	Status int
	Detail string
	Allow  []string      // the allowed methods, for 405
	Wait   time.Duration // the time until a new attempt, for 429
}

func (f *Fault) Error() string { return f.Detail }

// Fail writes the problem document of an error.
func Fail(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	f := faultOf(r, log, err)
	h := w.Header()
	if len(f.Allow) > 0 {
		h.Set("Allow", strings.Join(f.Allow, ", "))
	}
	if f.Status == http.StatusServiceUnavailable || f.Status == http.StatusTooManyRequests {
		h.Set("Retry-After", strconv.Itoa(int(cmp.Or(f.Wait, 4*time.Second).Seconds())+1))
	}
	httpapi.Problem(w, r, f.Status, f.Detail)
}

// faultOf maps errors of other packages to statuses. An API returns a Fault itself where it has a status or text of its
// own. The details of an unknown error go only to the log.
func faultOf(r *http.Request, log *slog.Logger, err error) *Fault {
	var f *Fault
	var field *mec.FieldError
	var limit *mec.LimitError
	var large *http.MaxBytesError
	var memory *budget.TooLargeError
	id := httpapi.RequestID(r.Context())
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &field):
		return &Fault{Status: http.StatusBadRequest, Detail: err.Error()}
	case errors.As(err, &limit):
		return &Fault{Status: http.StatusForbidden, Detail: err.Error()}
	case errors.As(err, &large):
		return &Fault{Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("the body is larger than %d bytes", large.Limit)}
	case errors.As(err, &memory):
		return &Fault{Status: http.StatusRequestEntityTooLarge, Detail: err.Error()}
	case errors.Is(err, httpapi.ErrNoMemory):
		return &Fault{Status: http.StatusServiceUnavailable, Detail: err.Error()}
	case errors.Is(err, store.ErrUnavailable):
		log.Warn("change refused", "request_id", id, "error", err)
		return &Fault{Status: http.StatusServiceUnavailable, Detail: "the store cannot take changes now" +
			httpapi.StoreReason(err) + ". Nothing was changed, and queries are answered as before"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Fault{Status: http.StatusServiceUnavailable, Detail: "the request ended before it was done"}
	}
	log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id", id, "error", err)
	return &Fault{Status: http.StatusInternalServerError, Detail: "internal error; the log has more under this request id"}
}
