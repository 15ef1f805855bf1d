package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// testAPIs returns some handlers to put a Frame around.
func testAPIs() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", httpapi.Healthz)
	mux.HandleFunc("/v2/{thing}", func(w http.ResponseWriter, r *http.Request) {
		c := httpapi.CallerOf(r.Context())
		body, err := io.ReadAll(r.Body)
		if err != nil {
			httpapi.Fail(w, r, err)
			return
		}
		httpapi.JSON(w, http.StatusOK, map[string]any{"who": c.Who, "admin": c.IsAdmin(), "body": len(body)})
	})
	mux.HandleFunc("/ui/", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("secret-of-the-panic") })
	mux.HandleFunc("GET /late-panic", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("late")
	})
	return mux
}

type rig struct {
	accesstest.Rig
	log     *bytes.Buffer
	metrics *httpapi.Metrics
	handler http.Handler
}

func newRig(t *testing.T, change func(*httpapi.Frame)) rig {
	t.Helper()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := rig{Rig: accesstest.Open(t, logger), log: &log, metrics: httpapi.NewMetrics()}
	f := httpapi.Frame{Access: r.Access, Log: logger, Metrics: r.metrics}
	if change != nil {
		change(&f)
	}
	r.handler = f.Wrap(testAPIs())
	return r
}

func (r rig) do(method, target, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w
}

func TestAuthentication(t *testing.T) {
	r := newRig(t, func(f *httpapi.Frame) {
		f.Public, f.Areas = []string{"/ui/app.js"}, httpapi.ManagementAreas()
	})
	revoked, id := r.Token(t, "old", "admin", "member")
	if err := r.Access.RevokeToken(t.Context(), accesstest.Actor, id); err != nil {
		t.Fatal(err)
	}
	reader, _ := r.Token(t, "look", "admin", "reader")
	tests := []struct {
		name, method, path string
		header             []string
		want               int
		body               string
	}{
		{"no token", "GET", "/v2/x", nil, 401, `"title":"Unauthorized"`},
		{"X-Auth-Token", "GET", "/v2/x", []string{"X-Auth-Token", r.Admin}, 200, `"admin":true`},
		{"Bearer", "GET", "/v2/x", []string{"Authorization", "bearer " + reader}, 200, `"who":"token look"`},
		{"key of a PowerDNS client", "GET", "/api/v1", []string{"X-API-Key", r.Admin}, 404, ""},
		{"no such key", "GET", "/api/v1", []string{"X-API-Key", "np_x"}, 401, `{"error":"Unauthorized"}`},
		{"no key", "GET", "/api", nil, 401, `{"error":"Unauthorized"}`},
		{"the key elsewhere", "GET", "/v2/x", []string{"X-API-Key", r.Admin}, 401, ""},
		{"the key beside its path", "GET", "/apis", []string{"X-API-Key", r.Admin}, 401, ""},
		{"Basic is not taken", "GET", "/v2/x", []string{"Authorization", "Basic " + r.Admin}, 401, ""},
		{"revoked", "GET", "/v2/x", []string{"X-Auth-Token", revoked}, 401, ""},
		{"rubbish", "GET", "/v2/x", []string{"X-Auth-Token", "np_x"}, 401, ""},
		{"public", "GET", "/healthz", nil, 200, `"ok"`},
		{"public with a bad token", "GET", "/healthz", []string{"X-Auth-Token", revoked}, 200, ""},
		{"public is for reading", "POST", "/healthz", nil, 401, ""},
		{"another public path", "GET", "/ui/app.js", nil, 200, ""},
		{"not below it", "GET", "/ui/app.js/x", nil, 401, ""},
		{"nor in disguise", "GET", "/ui/%2e%2e/v2/x", nil, 401, ""},
		{"metrics need a token", "GET", "/metrics", nil, 401, ""},
		{"an unknown path reveals nothing", "GET", "/nowhere", nil, 401, ""},
		{"unknown path with a token", "GET", "/nowhere", []string{"X-Auth-Token", r.Admin}, 404, ""},
		{"preflight", "OPTIONS", "/v2/x", []string{"Origin", "https://evil.test"}, 401, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := r.do(tt.method, tt.path, "", tt.header...)
			if w.Code != tt.want || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("%s %s = %d %s, want %d with %s", tt.method, tt.path, w.Code, w.Body, tt.want, tt.body)
			}
			if w.Code == 401 && len(w.Header().Values("WWW-Authenticate")) != 2 {
				t.Errorf("WWW-Authenticate is %q", w.Header().Values("WWW-Authenticate"))
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
	for _, secret := range []string{r.Admin, revoked, reader} {
		if strings.Contains(r.log.String(), secret[len("np_")+17:]) {
			t.Error("the log holds a secret")
		}
	}
}

func TestRequestID(t *testing.T) {
	r := newRig(t, nil)
	form := regexp.MustCompile(`^req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	w := r.do("GET", "/v2/x", "", "X-Openstack-Request-Id", "req-mine")
	id := w.Header().Get("X-Openstack-Request-Id")
	if !form.MatchString(id) {
		t.Errorf("request id %q", id)
	}
	var body struct {
		ID string `json:"request_id"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.ID != id {
		t.Errorf("body has id %q, header %q (%v)", body.ID, id, err)
	}
}

func TestAudit(t *testing.T) {
	r := newRig(t, nil)
	w := r.do("PUT", "/v2/x?password=in-the-query", "in-the-body", "X-Auth-Token", r.Admin)
	r.do("GET", "/v2/y", "", "X-Auth-Token", r.Admin)
	r.do("DELETE", "/v2/z", "")
	log := r.log.String()
	for _, want := range []string{
		`level=INFO msg=audit method=PUT path=/v2/x status=200 who="token admin"`,
		"request_id=" + w.Header().Get("X-Openstack-Request-Id"),
		`level=DEBUG msg=request method=GET path=/v2/y`,
		`level=INFO msg=audit method=DELETE path=/v2/z status=401 who=""`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("log has no %q:\n%s", want, log)
		}
	}
	for _, secret := range []string{"in-the-query", "in-the-body", r.Admin[20:]} {
		if strings.Contains(log, secret) {
			t.Errorf("log holds %q", secret)
		}
	}
}

func TestPanic(t *testing.T) {
	r := newRig(t, nil)
	w := r.do("GET", "/panic", "", "X-Auth-Token", r.Admin)
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret-of-the-panic") {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	id := w.Header().Get("X-Openstack-Request-Id")
	if log := r.log.String(); !strings.Contains(log, id) || !strings.Contains(log, "frame_test.go") {
		t.Errorf("the log has no stack under the id:\n%s", log)
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("a panic in the middle of a reply ended with %v, want the connection cut off", v)
		}
	}()
	r.do("GET", "/late-panic", "", "X-Auth-Token", r.Admin)
}

func TestBodyLimits(t *testing.T) {
	r := newRig(t, func(f *httpapi.Frame) {
		f.Limits = httpapi.Limits{Body: 100, Bodies: map[string]int64{"/v2/imp": 1000}}
	})
	tests := []struct {
		name, path string
		size       int
		length     bool // the request has a Content-Length
		want       int
	}{
		{"at the bound", "/v2/x", 100, true, 200},
		{"over it", "/v2/x", 101, true, 413},
		{"over it, length unknown", "/v2/x", 101, false, 413},
		{"longer path", "/v2/imports", 1000, false, 200},
		{"over that", "/v2/imports", 1001, false, 413},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent := &io.LimitedReader{R: zeros{}, N: int64(tt.size)}
			req := httptest.NewRequest("POST", tt.path, sent)
			if tt.length {
				req.ContentLength = int64(tt.size)
			}
			req.Header.Set("X-Auth-Token", r.Admin)
			w := httptest.NewRecorder()
			r.handler.ServeHTTP(w, req)
			if w.Code != tt.want {
				t.Errorf("%d bytes: %d %s, want %d", tt.size, w.Code, w.Body, tt.want)
			}
			if tt.length && tt.want == 413 && sent.N != int64(tt.size) {
				t.Error("a body that says it is too long was read")
			}
		})
	}
}

// TestBodyBudget checks that bodies reserve memory, return it, and are refused while there is none. Bodies of a
// streamed path reserve none.
func TestBodyBudget(t *testing.T) {
	b := budget.New(64 << 20)
	r := newRig(t, func(f *httpapi.Frame) { f.Limits = httpapi.Limits{Body: 8 << 20, Budget: b, Streamed: "/v2/imp"} })
	post := func(path string, size int) *httptest.ResponseRecorder {
		return r.do("POST", path, strings.Repeat("x", size), "X-Auth-Token", r.Admin)
	}
	for range 5 {
		if w := post("/v2/x", 1<<20); w.Code != 200 {
			t.Fatalf("1 MiB: %d %s", w.Code, w.Body)
		}
	}
	if w := post("/v2/x", 3<<20); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("3 MiB, which take 48 MiB: %d %s", w.Code, w.Body)
	}
	if w := post("/v2/imports", 3<<20); w.Code != 200 {
		t.Errorf("3 MiB of a stream: %d %s", w.Code, w.Body)
	}
	release, err := b.Take(t.Context(), "other", 40<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if w := post("/v2/x", 100<<10); w.Code != 200 {
		t.Errorf("an ordinary request beside large work: %d %s", w.Code, w.Body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestHostCheck(t *testing.T) {
	r := newRig(t, func(f *httpapi.Frame) { f.PublicURL = "https://dns.example.org/" })
	tests := []struct {
		local, host string
		want        int
	}{
		{"127.0.0.1:8053", "127.0.0.1:8053", 200},
		{"127.0.0.1:8053", "localhost:8053", 200},
		{"127.0.0.1:8053", "np.localhost", 200},
		{"[::1]:8053", "[::1]:8053", 200},
		{"127.0.0.1:8053", "DNS.example.org.", 200},
		{"127.0.0.1:8053", "evil.test", 421},
		{"[::1]:8053", "evil.test:8053", 421},
		{"127.0.0.1:8053", "localhost.evil.test", 421},
		{"192.0.2.1:8053", "anything.test", 200},
	}
	for _, tt := range tests {
		t.Run(tt.local+" "+tt.host, func(t *testing.T) {
			addr, err := net.ResolveTCPAddr("tcp", tt.local)
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest("GET", "/healthz", nil)
			req.Host = tt.host
			w := httptest.NewRecorder()
			r.handler.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, addr)))
			if w.Code != tt.want {
				t.Errorf("Host %s on %s: %d, want %d", tt.host, tt.local, w.Code, tt.want)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t, nil)
	reg := prometheus.NewRegistry()
	reg.MustRegister(r.metrics.Collectors()...)
	r.do("GET", "/v2/a", "", "X-Auth-Token", r.Admin)
	r.do("GET", "/v2/b", "", "X-Auth-Token", r.Admin)
	r.do("BREW", "/v2/b", "", "X-Auth-Token", "np_x")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+labels(m)] = m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"nameplane_http_requests_total http GET /v2/{thing} 200": 2,
		"nameplane_http_requests_total http other none 401":      1,
		"nameplane_http_denied_tokens_total http":                1,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v; all: %v", name, got[name], want, got)
		}
	}
}

func labels(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.GetLabel() {
		b.WriteString(" " + l.GetValue())
	}
	return b.String()
}

func TestReadyz(t *testing.T) {
	var err error
	h := httpapi.Readyz(slog.New(slog.DiscardHandler),
		httpapi.Check{Name: "store", OK: func() error { return nil }},
		httpapi.Check{Name: "dns", OK: func() error { return err }})
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	if code, body := ask(); code != 200 || body != `{"status":"ok","checks":{"dns":"ok","store":"ok"}}` {
		t.Errorf("ready: %d %s", code, body)
	}
	err = errors.New("/a/path")
	if code, body := ask(); code != 503 || body != `{"status":"failing","checks":{"dns":"failing","store":"ok"}}` {
		t.Errorf("not ready: %d %s", code, body)
	}
	err = fmt.Errorf("%w: /a/path", httpapi.ErrDegraded)
	if code, body := ask(); code != 200 || body != `{"status":"degraded","checks":{"dns":"degraded","store":"ok"}}` {
		t.Errorf("degraded: %d %s", code, body)
	}
}

func BenchmarkFrame(b *testing.B) {
	r := accesstest.Open(b, nil)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	h := httpapi.Frame{Access: r.Access, Log: log, Metrics: httpapi.NewMetrics()}.Wrap(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, method := range []string{"GET", "PUT"} {
		b.Run(method, func(b *testing.B) {
			b.ReportAllocs()
			req := httptest.NewRequest(method, "/v2/zones", nil)
			req.Header.Set("X-Auth-Token", r.Admin)
			w := httptest.NewRecorder()
			for b.Loop() {
				h.ServeHTTP(w, req)
			}
		})
	}
}
