package httpapi

import (
	"log/slog"
	"net/http"
)

// Check is one condition for being ready.
type Check struct {
	Name string
	OK   func() error
}

// Healthz answers that the process lives.
func Healthz(w http.ResponseWriter, _ *http.Request) {
	JSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// Readyz answers 200 when every check passes, else 503, with the state of each by name. Why one fails is only logged:
// anybody may ask here.
func Readyz(log *slog.Logger, checks ...Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, status := readiness{"ok", map[string]string{}}, http.StatusOK
		for _, c := range checks {
			out.Checks[c.Name] = "ok"
			if err := c.OK(); err != nil {
				log.Warn("not ready", "check", c.Name, "error", err)
				out.Status, out.Checks[c.Name], status = "failing", "failing", http.StatusServiceUnavailable
			}
		}
		JSON(w, status, out)
	})
}
