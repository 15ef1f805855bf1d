package mecapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

// server is Mp1 and Mm5 with a store of their own.
type server struct {
	t       testing.TB
	mux     *http.ServeMux
	service *mec.Service
	pub     *publish.Publisher
}

// The callers of tests.
var (
	app1     = httpapi.Caller{Who: "token app1", App: "app1", Roles: []string{"app"}}
	app2     = httpapi.Caller{Who: "token app2", App: "app2", Roles: []string{"app"}}
	gateway  = httpapi.Caller{Who: "anybody", AnyApp: true, Roles: []string{"app"}}
	platform = httpapi.Caller{Who: "token mepm", Roles: []string{"platform"}}
	admin    = httpapi.Caller{Who: "token admin", Roles: []string{"admin", "member", "reader"}}
	member   = httpapi.Caller{Who: "token ci", Project: "p1", Roles: []string{"member", "reader"}}
)

func newServer(t testing.TB, api mecapi.API) *server {
	t.Helper()
	return startServer(t, api, mec.Options{})
}

// startServer starts both APIs with a service of the given options.
func startServer(t testing.TB, api mecapi.API, opts mec.Options) *server {
	t.Helper()
	s := openServer(t, api, opts)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// openServer is startServer for a service that does not run: tasks are not executed.
func openServer(t testing.TB, api mecapi.API, opts mec.Options) *server {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pub.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, st.Close()); err != nil {
			t.Error(err)
		}
	})
	if api.Service, err = mec.Open(ctx, pub, opts); err != nil {
		t.Fatal(err)
	}
	if api.Revoke == nil {
		api.Revoke = func(context.Context, store.Actor, string) (int, error) { return 0, nil }
	}
	s := &server{t, http.NewServeMux(), api.Service, pub}
	api.RegisterMp1(s.mux)
	api.RegisterMm5(s.mux)
	return s
}

// as returns the handler inside a Frame in which every request comes from one caller.
func as(who httpapi.Caller, h http.Handler) http.Handler {
	return httpapi.Frame{Areas: []httpapi.Area{{Prefix: "/", Roles: who.Roles, Error: httpapi.Problem}},
		Limits:   httpapi.Limits{Body: 1 << 30},
		Identify: func(*http.Request) (httpapi.Caller, error) { return who, nil }}.Wrap(h)
}

type response struct {
	*httptest.ResponseRecorder
	json any
}

// do sends a request: "METHOD /path", a body, and headers as "Name: value".
func (s *server) do(who httpapi.Caller, call, body string, headers ...string) response {
	method, path, _ := strings.Cut(call, " ")
	req := httptest.NewRequest(method, "http://192.0.2.53"+path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	if body != "" && req.Header["Content-Type"] == nil {
		req.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	as(who, s.mux).ServeHTTP(rec, req)
	res := response{ResponseRecorder: rec}
	_ = json.Unmarshal(rec.Body.Bytes(), &res.json)
	return res
}

// as sends a request whose reply must have this status. Errors must be problem documents.
func (s *server) as(who httpapi.Caller, status int, call, body string, headers ...string) response {
	s.t.Helper()
	res := s.do(who, call, body, headers...)
	if res.Code != status {
		s.t.Fatalf("%s %s = %d %s, want %d", call, body, res.Code, res.Body, status)
	}
	if res.Code >= 400 {
		res.checkProblem(s.t)
	}
	return res
}

func (r response) checkProblem(t testing.TB) {
	t.Helper()
	p, ok := r.json.(map[string]any)
	if media := r.Header().Get("Content-Type"); media != "application/problem+json" || !ok {
		t.Fatalf("%d has media type %q and body %s", r.Code, media, r.Body)
	}
	for _, member := range []string{"type", "title", "detail", "instance"} {
		if text, _ := p[member].(string); text == "" {
			t.Errorf("problem %s lacks %s", r.Body, member)
		}
	}
	if p["status"] != float64(r.Code) {
		t.Errorf("problem %s of status %d", r.Body, r.Code)
	}
}

func (r response) detail() string {
	p, _ := r.json.(map[string]any)
	s, _ := p["detail"].(string)
	return s
}

// rule creates a rule of an application and returns its path on Mp1.
func (s *server) rule(app, body string) string {
	s.t.Helper()
	res := s.as(platform, 201, "POST /mep/config/"+app+"/dns_rules", body)
	return "/mec_app_support/v2/applications/" + app + "/dns_rules/" + res.json.(map[string]any)["dnsRuleId"].(string)
}

// want compares JSON.
func (s *server) want(got any, want string) {
	s.t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		s.t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

const (
	rule1 = `{"dnsRuleId":"r1","domainName":"www.example.com","ipAddressType":"IP_V4","ipAddress":"192.0.2.1","ttl":30,` +
		`"state":"ACTIVE"}`
	rule2 = `{"dnsRuleId":"r2","domainName":"api.example.com","ipAddressType":"IP_V6","ipAddress":"2001:db8::1",` +
		`"state":"INACTIVE"}`
)
