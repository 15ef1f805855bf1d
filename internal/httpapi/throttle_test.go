package httpapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/httpapi"
)

// from sends a GET with a token from an address.
func (r rig) from(addr, path, header, token string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("GET", path, nil)
	req.RemoteAddr = addr
	req.Header.Set(header, token)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w
}

// TestWrongTokens checks that an address that sends many invalid tokens gets 429, in the form of each API, and that
// this changes nothing for valid tokens and for other addresses.
func TestWrongTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(f *httpapi.Frame) { f.Areas = httpapi.ManagementAreas() })
		const addr, other = "192.0.2.1:1024", "192.0.2.2:1024"
		wrong := r.Admin[:len(r.Admin)-8] + "wrongkey"
		for i := range 20 {
			if w := r.from(addr, "/v2/x", "X-Auth-Token", wrong); w.Code != 401 {
				t.Fatalf("wrong token %d: %d %s", i, w.Code, w.Body)
			}
		}
		for _, api := range []struct{ path, header, body string }{
			{"/v2/x", "X-Auth-Token", `"type":"too_many_requests"`},
			{"/api/v1", "X-API-Key", `{"error":"too many requests with invalid credentials came from this address`},
			{"/mep/config", "X-Auth-Token", `"status":429`},
		} {
			w := r.from(addr, api.path, api.header, wrong)
			if w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), api.body) ||
				!strings.Contains(w.Header().Get("Content-Type"), "json") {
				t.Errorf("%s: %d %v %s, want 429 with %s", api.path, w.Code, w.Header(), w.Body, api.body)
			}
		}
		for _, tt := range []struct {
			name, addr, path, token string
			want                    int
		}{
			{"a valid token from there", addr, "/v2/x", r.Admin, 200},
			{"a wrong one after a valid one", addr, "/v2/x", wrong, 429},
			{"no token", addr, "/v2/x", "", 401},
			{"a public path", addr, "/healthz", wrong, 200},
			{"another address", other, "/v2/x", wrong, 401},
			{"a valid token from another address", other, "/v2/x", r.Admin, 200},
		} {
			if w := r.from(tt.addr, tt.path, "X-Auth-Token", tt.token); w.Code != tt.want {
				t.Errorf("%s: %d %s, want %d", tt.name, w.Code, w.Body, tt.want)
			}
		}
		time.Sleep(time.Second)
		if w := r.from(addr, "/v2/x", "X-Auth-Token", wrong); w.Code != 401 {
			t.Errorf("after the wait: %d %s", w.Code, w.Body)
		}
		if w := r.from(addr, "/v2/x", "X-Auth-Token", wrong); w.Code != 429 || w.Header().Get("Retry-After") != "2" {
			t.Errorf("the next wait: %d %v", w.Code, w.Header())
		}
		if got := r.counter(t, "nameplane_http_throttled_tokens_total http"); got != 6 {
			t.Errorf("%v throttled requests counted, want 6", got)
		}
		for _, secret := range []string{wrong[len(wrong)-24:], r.Admin[len(r.Admin)-24:]} {
			if strings.Contains(r.log.String(), secret) {
				t.Error("the log holds a secret")
			}
		}
	})
}

// TestExpiredSessionsAreNotThrottled checks that any number of clients with one address gets 401 for expired sessions:
// OpenStack clients log in again only after a 401.
func TestExpiredSessionsAreNotThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		p, err := r.Access.Authenticate(r.Admin)
		if err != nil {
			t.Fatal(err)
		}
		session, _, err := r.Access.Issue(p, "", "token")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		for i := range 100 {
			if w := r.from("192.0.2.1:1024", "/v2/x", "X-Auth-Token", session); w.Code != 401 {
				t.Fatalf("request %d: %d %s", i, w.Code, w.Body)
			}
		}
	})
}

// counter returns the value of a metric, which is given with the values of its labels.
func (r rig) counter(t *testing.T, name string) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(r.metrics.Collectors()...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName()+labels(m) == name {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
