package designate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// fault is an error of the API. Clients of Designate decide by the status and by the type ("kind" here), and show the
// message to users. Types that Designate has are used for the same failures; others are ours.
type fault struct {
	status   int
	kind     string // "type" in the body
	message  string
	problems []problem // one for each bad field

	retryAfter int // seconds; 0: no Retry-After header
}

func (f *fault) Error() string { return f.kind + ": " + f.text() }

// text returns the message, or the messages of the problems.
func (f *fault) text() string {
	if f.message != "" {
		return f.message
	}
	var parts []string
	for _, p := range f.problems {
		parts = append(parts, p.Message)
	}
	return strings.Join(parts, ". ")
}

// problem is an error in one field, in the form of the validator of Designate (Python's jsonschema).
type problem struct {
	Path      []any  `json:"path"`
	Message   string `json:"message"`
	Validator string `json:"validator"`
	Value     any    `json:"validator_value"`
}

// badRequest returns Designate's plain 400, for failures without a type of their own.
func badRequest(format string, a ...any) *fault {
	return &fault{status: http.StatusBadRequest, kind: "bad_request", message: fmt.Sprintf(format, a...)}
}

// refuse returns 400 with a type of its own.
func refuse(kind, format string, a ...any) *fault {
	return &fault{status: http.StatusBadRequest, kind: kind, message: fmt.Sprintf(format, a...)}
}

func forbidden(format string, a ...any) *fault {
	return &fault{status: http.StatusForbidden, kind: "forbidden", message: fmt.Sprintf(format, a...)}
}

// notFound returns 404. A resource of another project gets the same error as one that does not exist, so that a tenant
// cannot find out which ids exist.
func notFound(kind, what string) *fault {
	return &fault{status: http.StatusNotFound, kind: kind + "_not_found", message: "Could not find " + what}
}

func duplicate(kind, what string) *fault {
	return &fault{status: http.StatusConflict, kind: "duplicate_" + kind, message: "Duplicate " + what}
}

// invalid returns the error for an object whose fields are wrong. As in Designate it has no message of its own: clients
// then show the messages of the problems.
func invalid(problems ...problem) *fault {
	return &fault{status: http.StatusBadRequest, kind: "invalid_object", problems: problems}
}

// known maps errors of other packages to errors of the API. A handler that knows more, such as which resource was not
// found, returns a fault itself.
var known = []struct {
	err    error
	status int
	kind   string
}{
	{store.ErrNotFound, http.StatusNotFound, "not_found"},
	{store.ErrExists, http.StatusConflict, "duplicate"},
	{store.ErrChanged, http.StatusPreconditionFailed, "precondition_failed"},
	{httpapi.ErrNoMemory, http.StatusServiceUnavailable, "service_unavailable"},
	{httpapi.ErrNoTurn, http.StatusServiceUnavailable, "service_unavailable"},
	{publish.ErrMemory, http.StatusServiceUnavailable, "service_unavailable"},
	{context.Canceled, http.StatusServiceUnavailable, "request_cancelled"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "request_timed_out"},
}

// asFault returns the fault for any error. An error that is not in the table is logged; the client does not see its
// details, which may name files or addresses of the server.
//
// Quotas are 413 with the type over_quota, as in Designate. A body above the limit is 413 too.
func (c *call) asFault(err error) *fault {
	var f *fault
	var placement *zone.PlacementError
	var bad *zone.InvalidError
	var large *http.MaxBytesError
	var quota *publish.QuotaError
	var memory *budget.TooLargeError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &placement):
		return refuse("invalid_recordset_location", "%s", placement.Reason)
	case errors.As(err, &bad):
		return invalid(problem{[]any{bad.Field}, bad.Reason, "format", nil})
	case errors.As(err, &large):
		return &fault{status: http.StatusRequestEntityTooLarge, kind: "request_too_large",
			message: fmt.Sprintf("The body is larger than %d bytes.", large.Limit)}
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

// unavailable returns the fault for a store that accepts no changes: 503, because the client may try again.
func (c *call) unavailable(err error) *fault {
	c.api.Log.Warn("change refused", "request_id", httpapi.RequestID(c.r.Context()), "error", err)
	return &fault{status: http.StatusServiceUnavailable, kind: "service_unavailable", message: "The store cannot take " +
		"changes now" + httpapi.StoreReason(err) + ". Nothing was changed, and queries are answered as before; the " +
		"server's log says more."}
}

// errorBody is the body of an error. The list of problems is nested twice ("errors" in "errors"), as in Designate.
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
