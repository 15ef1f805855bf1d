package httpapi_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// TestSlowLoginsTakeNoBudget lets clients without a token send the bodies of logins slowly over all connections. They
// must use no memory of the budget: that is for clients with a token.
func TestSlowLoginsTakeNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := httpapi.Frame{Log: slog.New(slog.DiscardHandler), Limits: httpapi.Limits{Budget: budget.New(64 << 20)},
			Identify: func(r *http.Request) (httpapi.Caller, error) {
				if r.URL.Path == "/v2/zones" {
					return httpapi.Caller{Project: "p1", Roles: []string{"member", "reader"}}, nil
				}
				return httpapi.Caller{}, io.EOF
			}}.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusCreated)
		}))
		send := func(path, from string, body io.Reader) int {
			r := httptest.NewRequest("POST", path, body)
			r.RemoteAddr = from + ":1024"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		var slow []*io.PipeWriter
		for i := range 1000 {
			body, end := io.Pipe()
			slow = append(slow, end)
			go send("/v3/auth/tokens", "192.0.2."+string(rune('1'+i%8)), body)
		}
		synctest.Wait()
		body := strings.Repeat("x", 100<<10)
		if code := send("/v2/zones", "192.0.2.99", strings.NewReader(body)); code != http.StatusCreated {
			t.Errorf("a change of a tenant beside slow logins = %d", code)
		}
		for _, end := range slow {
			end.Close()
		}
	})
}
