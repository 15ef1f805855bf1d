package httpapi

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
)

// Check is one condition for being ready.
type Check struct {
	Name string
	OK   func() error
}

// Healthz reports that the process is alive.
func Healthz(w http.ResponseWriter, _ *http.Request) {
	JSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// ErrDegraded marks the error of a check that must not take the server out of service: the server still answers
// queries, but an operator must act.
var ErrDegraded = errors.New("degraded")

// Readyz returns a handler that answers 200 when every check passes or is degraded, and 503 otherwise. The body has the
// state of each check. Reasons are only logged, because the path needs no token.
func Readyz(log *slog.Logger, checks ...Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, failed, status := readiness{"ok", map[string]string{}}, "", http.StatusOK
		for _, c := range checks {
			out.Checks[c.Name] = "ok"
			switch err := c.OK(); {
			case errors.Is(err, ErrDegraded):
				log.Warn("degraded", "check", c.Name, "error", err)
				out.Checks[c.Name], out.Status = "degraded", cmp.Or(failed, "degraded")
			case err != nil:
				log.Warn("not ready", "check", c.Name, "error", err)
				failed, status = "failing", http.StatusServiceUnavailable
				out.Checks[c.Name], out.Status = failed, failed
			}
		}
		JSON(w, status, out)
	})
}
