package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// errorBody is an error in the forms of both Keystone (the member error) and Designate (the other members). The Frame
// does not know which of them the client expects, and each client reads its own part.
type errorBody struct {
	Error     keystoneError `json:"error"`
	Code      int           `json:"code"`
	Type      string        `json:"type"`
	Message   string        `json:"message"`
	RequestID string        `json:"request_id"`
}

type keystoneError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Title   string `json:"title"`
}

var errorTypes = map[int]string{
	http.StatusBadRequest:            "bad_request",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not_found",
	http.StatusConflict:              "conflict",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "too_many_requests",
	http.StatusMisdirectedRequest:    "misdirected_request",
	http.StatusServiceUnavailable:    "service_unavailable",
}

// Error writes an error in the form of the OpenStack APIs.
func Error(w http.ResponseWriter, r *http.Request, status int, message string) {
	typ := cmp.Or(errorTypes[status], "unknown")
	JSON(w, status, errorBody{keystoneError{status, message, http.StatusText(status)}, status, typ, message,
		RequestID(r.Context())})
}

// problemBody is an error in the form of ETSI MEC 009 §6.15, which follows RFC 7807.
type problemBody struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
}

// Problem writes an error in the form of the MEC APIs.
func Problem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	// about:blank means that the status describes the type of the problem completely (RFC 7807 §4.2).
	write(w, "application/problem+json", status,
		problemBody{"about:blank", http.StatusText(status), status, detail, r.URL.EscapedPath()})
}

// PowerDNSError writes an error in the form of the PowerDNS API. The word for 401 is the one of PowerDNS.
func PowerDNSError(w http.ResponseWriter, _ *http.Request, status int, message string) {
	if status == http.StatusUnauthorized {
		message = http.StatusText(status)
	}
	JSON(w, status, map[string]string{"error": message})
}

// JSON writes a value as JSON.
func JSON(w http.ResponseWriter, status int, v any) { write(w, "application/json", status, v) }

func write(w http.ResponseWriter, mediaType string, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a bug: the types of replies can always be encoded
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may have closed the connection; ignore the error
}

// Fail maps an error of other packages to a status and writes it. It reports whether it knows the error; it answers
// others with 500, and the caller must log them.
func Fail(w http.ResponseWriter, r *http.Request, err error) bool {
	var bad *zone.InvalidError
	var large *http.MaxBytesError
	var memory *budget.TooLargeError
	status, message := http.StatusInternalServerError, "internal error; the log has more under this request id"
	switch {
	case errors.As(err, &large):
		status, message = http.StatusRequestEntityTooLarge, tooLarge(large.Limit)
	case errors.As(err, &bad):
		status, message = http.StatusBadRequest, err.Error()
	case errors.Is(err, store.ErrNotFound):
		status, message = http.StatusNotFound, err.Error()
	case errors.Is(err, store.ErrExists), errors.Is(err, access.ErrInUse), errors.Is(err, access.ErrLastAdmin):
		status, message = http.StatusConflict, err.Error()
	case errors.As(err, &memory):
		status, message = http.StatusRequestEntityTooLarge, err.Error()
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, access.ErrBusy), errors.Is(err, ErrNoMemory):
		w.Header().Set("Retry-After", "5")
		status, message = http.StatusServiceUnavailable, err.Error()
	}
	Error(w, r, status, message)
	return status != http.StatusInternalServerError
}

func tooLarge(limit int64) string { return fmt.Sprintf("the body is larger than %d bytes", limit) }

// StoreReason returns why the store accepts no changes: a colon and the text of the system error, or "". The whole
// error contains the path of the file and belongs only into the log.
func StoreReason(err error) string {
	if no := syscall.Errno(0); errors.As(err, &no) {
		return ": " + no.Error()
	}
	return ""
}
