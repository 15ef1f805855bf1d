package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// errorBody is an error in the words of Keystone (error) and of Designate (the rest) at once: the frame answers before it
// is known which of them a client speaks, and each reads its own part.
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

// Error answers with an error.
func Error(w http.ResponseWriter, r *http.Request, status int, message string) {
	typ := cmp.Or(errorTypes[status], "unknown")
	JSON(w, status, errorBody{keystoneError{status, message, http.StatusText(status)}, status, typ, message,
		RequestID(r.Context())})
}

// problemBody is an error as ETSI MEC 009 §6.15 has it, after RFC 7807.
type problemBody struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
}

// Problem answers with an error in the form of the MEC interfaces.
func Problem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	// about:blank says that the title is all there is to know of the kind of problem (RFC 7807 §4.2).
	write(w, "application/problem+json", status, problemBody{"about:blank", http.StatusText(status), status, detail, r.URL.EscapedPath()})
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, status int, v any) { write(w, "application/json", status, v) }

func write(w http.ResponseWriter, mediaType string, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // wire types can be written; this is a mistake in the program
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone, and then nobody is left to tell
}

// Fail answers with what an error of the inside means outside. It reports whether the error was one that is known; others
// are answered with 500 and the caller logs them.
func Fail(w http.ResponseWriter, r *http.Request, err error) bool {
	var bad *zone.InvalidError
	var large *http.MaxBytesError
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
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, access.ErrBusy):
		w.Header().Set("Retry-After", "5")
		status, message = http.StatusServiceUnavailable, err.Error()
	}
	Error(w, r, status, message)
	return status != http.StatusInternalServerError
}

func tooLarge(limit int64) string { return fmt.Sprintf("the body is larger than %d octets", limit) }

// StoreReason returns why the store takes no changes, in the words of the system and after a colon, or nothing. The whole
// error, with the path of the file, is for the log.
func StoreReason(err error) string {
	if no := syscall.Errno(0); errors.As(err, &no) {
		return ": " + no.Error()
	}
	return ""
}
