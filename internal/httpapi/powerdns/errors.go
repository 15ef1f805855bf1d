package powerdns

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// fault is an error of the API. PowerDNS has 422 for everything that is wrong with the content of a request.
type fault struct {
	status  int
	message string
}

func (f *fault) Error() string { return f.message }

// refuse returns 422.
func refuse(format string, a ...any) *fault {
	return &fault{http.StatusUnprocessableEntity, fmt.Sprintf(format, a...)}
}

// status returns an error whose message is the text of its status, as PowerDNS has it for errors without a reason.
func status(code int) *fault { return &fault{code, http.StatusText(code)} }

// known maps errors of other packages to statuses.
var known = []struct {
	err    error
	status int
}{
	{store.ErrNotFound, http.StatusNotFound},
	{store.ErrExists, http.StatusConflict},
	{store.ErrChanged, http.StatusPreconditionFailed},
	{httpapi.ErrNoMemory, http.StatusServiceUnavailable},
	{httpapi.ErrNoTurn, http.StatusServiceUnavailable},
	{publish.ErrMemory, http.StatusServiceUnavailable},
	{context.Canceled, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
}

// asFault returns the fault for any error. An error that is not in the table is logged; the client does not see its
// details, which may name files or addresses of the server. The rules of package designate that refuse a request with
// 400 or 413 refuse it with 422 here, because clients of PowerDNS show the message of 422 to users.
func (c *call) asFault(err error) *fault {
	var f *fault
	var placement *zone.PlacementError
	var bad *zone.InvalidError
	var quota *publish.QuotaError
	var large *http.MaxBytesError
	var memory *budget.TooLargeError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &placement), errors.As(err, &bad), errors.As(err, &quota):
		return refuse("%s", err)
	case errors.As(err, &large):
		return &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes.", large.Limit)}
	case errors.As(err, &memory):
		return &fault{http.StatusRequestEntityTooLarge, memory.Error()}
	case errors.Is(err, store.ErrUnavailable):
		c.api.Log.Warn("change refused", "request_id", httpapi.RequestID(c.r.Context()), "error", err)
		return &fault{http.StatusServiceUnavailable, "The store cannot take changes now" + httpapi.StoreReason(err) +
			". Nothing was changed, and queries are answered as before; the server's log says more."}
	}
	if code, message, ok := designate.RuleError(err); ok {
		if code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge {
			code = http.StatusUnprocessableEntity
		}
		return &fault{code, message}
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return &fault{k.status, err.Error()}
		}
	}
	c.api.Log.Error("request failed", "method", c.r.Method, "path", c.r.URL.Path,
		"request_id", httpapi.RequestID(c.r.Context()), "err", err)
	return &fault{http.StatusInternalServerError, "Internal error; the log has the details."}
}

func (c *call) fail(err error) {
	f := c.asFault(err)
	if f.status == http.StatusServiceUnavailable {
		c.w.Header().Set("Retry-After", "60")
	}
	httpapi.PowerDNSError(c.w, c.r, f.status, f.message)
}
