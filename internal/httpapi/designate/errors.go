package designate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// fault is an error of the API.
type fault struct {
	status   int
	kind     string // "type" in the body
	message  string
	problems []problem // of the fields of an object

	retryAfter int // seconds; 0: no Retry-After header
}

func (f *fault) Error() string { return f.kind + ": " + f.message }

// problem is an error in one field.
type problem struct {
	Path      []any  `json:"path"`
	Message   string `json:"message"`
	Validator string `json:"validator"`
	Value     any    `json:"validator_value"`
}

func badRequest(format string, a ...any) *fault {
	return &fault{status: http.StatusBadRequest, kind: "bad_request", message: fmt.Sprintf(format, a...)}
}

func refuse(kind, format string, a ...any) *fault {
	return &fault{status: http.StatusBadRequest, kind: kind, message: fmt.Sprintf(format, a...)}
}

func forbidden(format string, a ...any) *fault {
	return &fault{status: http.StatusForbidden, kind: "forbidden", message: fmt.Sprintf(format, a...)}
}

func notFound(kind, what string) *fault {
	return &fault{status: http.StatusNotFound, kind: kind + "_not_found", message: "Could not find " + what}
}

func duplicate(kind string, format string, a ...any) *fault {
	return &fault{status: http.StatusConflict, kind: "duplicate_" + kind, message: fmt.Sprintf(format, a...)}
}

func invalid(problems ...problem) *fault {
	return &fault{status: http.StatusBadRequest, kind: "invalid_object",
		message: "Provided object does not match schema", problems: problems}
}

// known maps errors of the domain to errors of the API. Handlers that know more, such as which resource was not found,
// return a fault themselves.
var known = []struct {
	err    error
	status int
	kind   string
}{
	{store.ErrNotFound, http.StatusNotFound, "not_found"},
	{store.ErrExists, http.StatusConflict, "duplicate"},
	{store.ErrChanged, http.StatusPreconditionFailed, "precondition_failed"},
	{publish.ErrMemory, http.StatusServiceUnavailable, "service_unavailable"},
	{context.Canceled, http.StatusServiceUnavailable, "request_cancelled"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "request_timed_out"},
}

// asFault returns the fault for any error. The client sees no details of an error that is not in the table; the log
// does.
func (c *call) asFault(err error) *fault {
	var f *fault
	var place *zone.PlacementError
	var bad *zone.InvalidError
	var large *http.MaxBytesError
	var quota *publish.QuotaError
	var memory *budget.TooLargeError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &place):
		return refuse("invalid_recordset_location", "%s", place.Reason)
	case errors.As(err, &bad):
		return invalid(problem{[]any{bad.Field}, bad.Reason, "format", nil})
	case errors.As(err, &large):
		return &fault{status: http.StatusRequestEntityTooLarge, kind: "request_too_large",
			message: fmt.Sprintf("The body is larger than %d octets.", large.Limit)}
	}
	switch {
	case errors.As(err, &quota):
		return &fault{status: http.StatusRequestEntityTooLarge, kind: "over_quota", message: quota.Error()}
	case errors.As(err, &memory):
		return &fault{status: http.StatusRequestEntityTooLarge, kind: "request_too_large", message: memory.Error()}
	case errors.Is(err, store.ErrUnavailable):
		return c.unavailable(err)
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return &fault{status: k.status, kind: k.kind, message: err.Error()}
		}
	}
	c.api.Log.Error("request failed", "method", c.r.Method, "path", c.r.URL.Path,
		"request_id", httpapi.RequestID(c.r.Context()), "err", err)
	return &fault{status: http.StatusInternalServerError, kind: "unknown_failure",
		message: "Internal error; the log has the details."}
}

// unavailable returns the fault for a store that takes no changes.
func (c *call) unavailable(err error) *fault {
	c.api.Log.Warn("change refused", "request_id", httpapi.RequestID(c.r.Context()), "error", err)
	return &fault{status: http.StatusServiceUnavailable, kind: "service_unavailable", message: "The store cannot take " +
		"changes now" + httpapi.StoreReason(err) + ". Nothing was changed, and queries are answered as before; the " +
		"server's log says more."}
}

// errorBody is the body of an error. Designate nests errors twice.
type errorBody struct {
	Code      int       `json:"code"`
	Type      string    `json:"type"`
	Message   string    `json:"message,omitempty"`
	Errors    *problems `json:"errors,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
}

type problems struct {
	Errors []problem `json:"errors"`
}

func (c *call) fail(err error) {
	f := c.asFault(err)
	h := c.w.Header()
	if f.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "60")
	}
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	body := errorBody{Code: f.status, Type: f.kind, Message: f.message, RequestID: httpapi.RequestID(c.r.Context())}
	if len(f.problems) > 0 {
		body.Errors = &problems{f.problems}
	}
	c.write(reply{status: f.status, body: body})
}
