package servermgmt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/servermgmt"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

// server is the API with a store of its own.
type server struct {
	t   testing.TB
	mux *http.ServeMux
}

var (
	platform = httpapi.Caller{Who: "token mep", Roles: []string{"platform"}}
	admin    = httpapi.Caller{Who: "token admin", Roles: []string{"admin", "member", "reader"}}
	app      = httpapi.Caller{Who: "token app1", App: "app1", Roles: []string{"app"}}
)

// as returns the handler inside a Frame in which every request comes from one caller.
func as(who httpapi.Caller, h http.Handler) http.Handler {
	return httpapi.Frame{Areas: []httpapi.Area{{Prefix: "/", Roles: who.Roles, Error: httpapi.Problem}},
		Public: []string{"/health"}, Limits: httpapi.Limits{Body: 1 << 30},
		Identify: func(*http.Request) (httpapi.Caller, error) { return who, nil }}.Wrap(h)
}

func newServer(t testing.TB, api servermgmt.API) *server {
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
	if api.Service, err = mec.Open(ctx, pub,
		mec.Options{Special: specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}}); err != nil {
		t.Fatal(err)
	}
	s := &server{t, http.NewServeMux()}
	api.Register(s.mux)
	return s
}

func (s *server) do(who httpapi.Caller, call, body string, headers ...string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(call, " ")
	if strings.HasPrefix(path, "/rr") || strings.HasPrefix(path, "/zones") {
		path = "/mep/dns_server_mgmt/v1" + path
	}
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	as(who, s.mux).ServeHTTP(w, req)
	return w
}

// as sends a request whose reply must have this status, and returns the body. Errors must be problem documents.
func (s *server) as(who httpapi.Caller, status int, call, body string, headers ...string) string {
	s.t.Helper()
	w := s.do(who, call, body, headers...)
	if w.Code != status {
		s.t.Fatalf("%s %s = %d %s, want %d", call, body, w.Code, w.Body, status)
	}
	if w.Code >= 400 {
		return checkProblem(s.t, w)
	}
	return w.Body.String()
}

// checkProblem returns the detail of a problem.
func checkProblem(t testing.TB, w *httptest.ResponseRecorder) string {
	t.Helper()
	var p struct {
		Type, Title, Detail, Instance string
		Status                        int
	}
	err := json.Unmarshal(w.Body.Bytes(), &p)
	if err != nil || w.Header().Get("Content-Type") != "application/problem+json" || p.Status != w.Code || p.Type == "" ||
		p.Title == "" ||
		p.Detail == "" || p.Instance == "" {
		t.Fatalf("problem %d %v %s: %v", w.Code, w.Header(), w.Body, err)
	}
	return p.Detail
}

func (s *server) want(got, want string) {
	s.t.Helper()
	var g, w any
	if err := errors.Join(json.Unmarshal([]byte(got), &g), json.Unmarshal([]byte(want), &w)); err != nil {
		s.t.Fatalf("%s: %v", got, err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		s.t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

const (
	www   = `{"name":"www.example.com.","type":"A","class":"IN","ttl":30,"rData":["172.16.104.22"]}`
	three = `{"name":"www.example1.com.","type":"A","class":"IN","ttl":30,"rData":["172.16.104.27","172.16.104.38",` +
		`"172.16.104.40"]}`
	batch = `[{"zone":".","rr":[` + www + "," + three + `]}]`
)

// TestFirstGeneration uses the API that EdgeGallery shipped until 1.2.
func TestFirstGeneration(t *testing.T) {
	s := newServer(t, servermgmt.API{})
	if got := s.as(platform, 200, "PUT /rrecord", batch); got != "Success" {
		t.Errorf("PUT answered %q", got)
	}
	s.want(s.as(platform, 200, "GET /rrecord", ""), batch)
	s.as(admin, 200, "PUT /rrecord", strings.Replace(batch, `"zone":"."`, `"zone":""`, 1))
	s.want(s.as(platform, 200, "GET /rrecord", ""), batch)
	s.as(platform, 200, "PUT /rrecord", strings.Replace(batch, "172.16.104.22", "172.16.104.23", 1), "Content-Type: ")
	s.want(s.as(platform, 200, "GET /rrecord/www.example.com/A", ""),
		`{"zone":".","name":"www.example.com.","type":"A","class":"IN","ttl":30,"rData":["172.16.104.23"]}`)
	if got := s.as(platform, 200, "DELETE /rrecord/www.example.com./A", "{}"); got != "Success" {
		t.Errorf("DELETE answered %q", got)
	}
	s.as(platform, 404, "DELETE /rrecord/www.example.com./A", "{}")
	s.as(platform, 404, "GET /rrecord/www.example.com./A", "")
	s.want(s.as(platform, 200, "GET /rrecord/www.example.com.", ""), `[]`)
	s.want(s.as(platform, 200, "GET /zones", ""), `[{"zone":".","records":1}]`)
	s.as(platform, 200, "PUT /rrecord", "[]")

	// A mepserver sends 0 for a rule without a TTL.
	s.as(platform, 200, "PUT /rrecord", strings.Replace(batch, "30", "0", 1))
	s.want(s.as(platform, 200, "GET /rrecord/www.example.com./A", ""),
		`{"zone":".","name":"www.example.com.","type":"A","class":"IN","rData":["172.16.104.22"]}`)
}

// TestSecondGeneration uses the API that EdgeGallery shipped since 1.3.
func TestSecondGeneration(t *testing.T) {
	s := newServer(t, servermgmt.API{})
	s.as(platform, 200, "POST /rrecord?zone=.", www)
	if got := s.as(platform, 409, "POST /rrecord?zone=.", www); !strings.HasPrefix(got, "record already exists!") {
		t.Errorf("again: %q", got)
	}
	six := strings.NewReplacer(`"A"`, `"AAAA"`, "172.16.104.22", "2001:db8::1").Replace(www)
	s.as(platform, 200, "POST /rrecord", "["+six+","+three+"]")
	s.want(s.as(platform, 200, "GET /rrecord/www.example.com.?zone=.", ""), `[{"zone":".","rr":[`+www+","+six+`]}]`)
	s.as(platform, 200, "PUT /rrecord/www.example.com./A?zone=.", strings.Replace(www, "30", "60", 1))
	s.as(platform, 200, "PUT /rrecord/www.example.com/A", strings.Replace(www, "30", "61", 1))
	s.as(platform, 400, "PUT /rrecord/www.example.com./AAAA?zone=.", www)
	s.as(platform, 400, "PUT /rrecord/other.example.com./A?zone=.", www)
	s.as(platform, 404, "PUT /rrecord/other.example.com./A?zone=.", strings.Replace(www, "www", "other", 1))
	s.as(platform, 404, "PUT /rrecord/www.example.com./A?zone=example.com.", www)
	s.as(platform, 200, "DELETE /rrecord/www.example.com./A?zone=.", "{}")
	s.as(platform, 404, "DELETE /rrecord/www.example.com./A?zone=.", "{}")
}

// TestConnectionEnds checks that the server closes connections that a mepserver would not reuse.
func TestConnectionEnds(t *testing.T) {
	s := newServer(t, servermgmt.API{})
	for _, tt := range []struct {
		call, body string
		status     int
		want       string
	}{
		{"POST /rrecord?zone=.", www, 200, "close"},
		{"POST /rrecord?zone=.", www, 409, "close"},
		{"PUT /rrecord", batch, 200, "close"},
		{"PUT /rrecord/www.example.com./A?zone=.", www, 200, "close"},
		{"DELETE /rrecord/www.example.com./A?zone=.", "{}", 200, "close"},
		{"GET /rrecord", "", 200, ""},
		{"GET /health", "", 200, ""},
	} {
		res := s.do(platform, tt.call, tt.body)
		if got := res.Header().Get("Connection"); res.Code != tt.status || got != tt.want {
			t.Errorf("%s = %d with Connection %q, want %d with %q", tt.call, res.Code, got, tt.status, tt.want)
		}
	}
}

// TestZones writes one name into two zones. Each record is deleted separately, and the more specific zone answers.
func TestZones(t *testing.T) {
	s := newServer(t, servermgmt.API{})
	s.as(platform, 200, "POST /rrecord?zone=.", www)
	inner := strings.Replace(www, "172.16.104.22", "192.0.2.1", 1)
	s.as(platform, 200, "POST /rrecord?zone=example.com", inner)
	s.want(s.as(platform, 200, "GET /zones", ""), `[{"zone":".","records":1},{"zone":"example.com.","records":1}]`)
	s.want(s.as(platform, 200, "GET /rrecord", ""),
		`[{"zone":".","rr":[`+www+`]},{"zone":"example.com.","rr":[`+inner+`]}]`)
	s.want(s.as(platform, 200, "GET /rrecord?zone=example.com.", ""), `[{"zone":"example.com.","rr":[`+inner+`]}]`)
	s.want(s.as(platform, 200, "GET /rrecord/www.example.com./A", ""),
		strings.Replace(inner, "{", `{"zone":"example.com.",`, 1))
	s.as(platform, 200, "PUT /rrecord/www.example.com./A", strings.Replace(inner, "30", "31", 1))
	s.want(s.as(platform, 200, "GET /rrecord?zone=example.com.", ""),
		`[{"zone":"example.com.","rr":[`+strings.Replace(inner, "30", "31", 1)+`]}]`)
	s.as(platform, 200, "DELETE /rrecord/www.example.com./A?zone=.", "{}")
	s.as(platform, 404, "DELETE /rrecord/www.example.com./A?zone=.", "{}")
	s.want(s.as(platform, 200, "GET /zones", ""), `[{"zone":"example.com.","records":1}]`)
	s.as(platform, 200, "POST /rrecord?zone=.", www)
	s.as(platform, 200, "DELETE /rrecord/www.example.com./A?zone=example.com.", "{}")
	s.want(s.as(platform, 200, "GET /rrecord", ""), `[{"zone":".","rr":[`+www+`]}]`)
}

func TestEdgeGalleryStatus(t *testing.T) {
	s := newServer(t, servermgmt.API{EdgeGalleryStatus: true})
	s.as(platform, 200, "POST /rrecord?zone=.", www)
	s.as(platform, 400, "POST /rrecord?zone=.", www)
	s.as(platform, 400, "PUT /rrecord/x.example.com./A?zone=.", strings.Replace(www, "www", "x", 1))
	s.as(platform, 500, "DELETE /rrecord/x.example.com./A?zone=.", "{}")
	s.as(platform, 404, "GET /rrecord/x.example.com./A?zone=.", "")
}

// TestBadRecords checks that a bad record is refused with the name of its field, and changes nothing.
func TestBadRecords(t *testing.T) {
	s := newServer(t, servermgmt.API{})
	put := func(from, to string) string { return strings.Replace(www, from, to, 1) }
	tests := []struct{ name, record, field string }{
		{"family", put("172.16.104.22", "::1"), "rData"},
		{"other family", strings.NewReplacer(`"A"`, `"AAAA"`).Replace(www), "rData"},
		{"no data", put(`["172.16.104.22"]`, "[]"), "rData"},
		{"data is a string", put(`["172.16.104.22"]`, `"172.16.104.22"`), "rData"},
		{"data missing", put(`,"rData":["172.16.104.22"]`, ""), "rData"},
		{"not an address", put("172.16.104.22", "example.org"), "rData"},
		{"multicast", put("172.16.104.22", "224.0.0.1"), "rData"},
		{"broadcast", put("172.16.104.22", "255.255.255.255"), "rData"},
		{"type", put(`"A"`, `"CNAME"`), "type"},
		{"class", put(`"IN"`, `"CH"`), "class"},
		{"any class", put(`"IN"`, `"*"`), "class"},
		{"ttl", put("30", `"?"`), "ttl"},
		{"ttl negative", put("30", "-1"), "ttl"},
		{"no name", put("www.example.com.", ""), "name"},
		{"label of 64", put("www", strings.Repeat("a", 64)), "name"},
		{"blank", put("www", "w w"), "name"},
		{"twice", put(`"ttl":30`, `"ttl":30,"ttl":30`), "ttl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range []struct{ call, body, where string }{
				{"POST /rrecord?zone=.", tt.record, ""},
				{"POST /rrecord", "[" + three + "," + tt.record + "]", "[1]."},
				{"PUT /rrecord", `[{"zone":".","rr":[` + three + `]},{"zone":".","rr":[` + tt.record + `]}]`, "[1].rr[0]."},
			} {
				if got := s.as(platform, 400, c.call, c.body); !strings.HasPrefix(got, c.where+tt.field) &&
					!strings.HasPrefix(got, tt.field) &&
					!strings.Contains(got, "."+tt.field+":") {
					t.Errorf("%s: %q does not name %s", c.call, got, c.where+tt.field)
				}
			}
		})
	}
	outside := `[{"zone":"example.org.","rr":[` + www + `]}]`
	s.as(platform, 400, "PUT /rrecord", outside)
	s.as(platform, 400, "POST /rrecord?zone=example.org.", www)
	s.as(platform, 400, "POST /rrecord?zone="+strings.Repeat("a.", 130), www)
	s.as(platform, 400, "GET /rrecord?zone=a..b", "")
	s.as(platform, 400, "GET /rrecord/www.example.com./MX", "")
	s.as(platform, 400, "PUT /rrecord", www)
	for _, nothing := range []string{"null", "[null]", `[{"zone":".","records":[` + www + `]}]`,
		`[{"zone":".","rr":null}]`} {
		s.as(platform, 400, "PUT /rrecord", nothing)
	}
	s.as(platform, 400, "PUT /rrecord", "")
	s.as(platform, 400, "POST /rrecord", "null")
	s.as(platform, 415, "POST /rrecord", www, "Content-Type: text/plain")
	s.as(platform, 415, "POST /rrecord", www, "Content-Type: ", "Origin: https://example.org")
	s.as(platform, 413, "PUT /rrecord", batch+strings.Repeat(" ", 1<<20))
	translated := strings.NewReplacer(`"A"`, `"AAAA"`, "172.16.104.22", "2a0f:64::169.254.169.254").Replace(www)
	if got := s.as(platform, 400, "POST /rrecord", translated); !strings.Contains(got, "metadata") {
		t.Errorf("an address that the NAT64 of the operator translates: %s", got)
	}
	s.want(s.as(platform, 200, "GET /rrecord", ""), "[]")
}

// TestBatch sends a hundred records, one of them bad: none is stored.
func TestBatch(t *testing.T) {
	s := newServer(t, servermgmt.API{})
	var list []string
	for i := range 100 {
		list = append(list, strings.Replace(www, "www", fmt.Sprint("n", i), 1))
	}
	good := `[{"zone":".","rr":[` + strings.Join(list, ",") + `]}]`
	list[57] = strings.Replace(list[57], "172.16.104.22", "::1", 1)
	if got := s.as(platform, 400, "PUT /rrecord",
		`[{"zone":".","rr":[`+strings.Join(list, ",")+`]}]`); !strings.Contains(got, "[0].rr[57].rData") {
		t.Errorf("detail %q", got)
	}
	s.want(s.as(platform, 200, "GET /rrecord", ""), "[]")
	s.as(platform, 200, "PUT /rrecord", good)
	s.want(s.as(platform, 200, "GET /zones", ""), `[{"zone":".","records":100}]`)
}

// TestCallers checks which callers and methods each path allows.
func TestCallers(t *testing.T) {
	s := newServer(t, servermgmt.API{})
	if got := s.as(httpapi.Caller{}, 200, "GET /health", ""); got != "OK" {
		t.Errorf("health is %q", got)
	}
	for _, call := range []string{"GET /rrecord", "PUT /rrecord", "POST /rrecord", "DELETE /rrecord/a./A", "GET /zones"} {
		s.as(app, 403, call, batch)
		s.as(httpapi.Caller{}, 403, call, batch)
	}
	for call, allow := range map[string]string{"DELETE /rrecord": "GET, POST, PUT",
		"POST /rrecord/a./A": "DELETE, GET, PUT", "PUT /zones": "GET",
		"POST /health": "GET", "DELETE /rrecord/a.": "GET"} {
		s.as(platform, 405, call, "{}")
		if got := s.do(platform, call, "{}").Header().Get("Allow"); got != allow {
			t.Errorf("%s: Allow %q, want %q", call, got, allow)
		}
	}
}

// FuzzBodies sends arbitrary bytes to every operation that has a body. There must be no panic and no status of 500 or
// more, and every error must be a problem document.
func FuzzBodies(f *testing.F) {
	s := newServer(f, servermgmt.API{})
	s.as(platform, 200, "PUT /rrecord", batch)
	calls := []string{"PUT /rrecord", "POST /rrecord?zone=.", "POST /rrecord?zone=example.com.",
		"PUT /rrecord/www.example.com./A?zone=."}
	for i := range calls {
		for _, b := range []string{"", "{}", "null", "[]", "[null]", "[[]]", www, batch, "[" + www + "]", `[{"rr":[null]}]`,
			`[{"zone":7}]`,
			`{"ttl":1e400,"TTL":-0}`, `{"name":"\u0000\ud800"}`, `{"rData":[null,"",{}]}`, strings.Repeat("[", 3000)} {
			f.Add(uint8(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		call := calls[int(which)%len(calls)]
		w := s.do(platform, call, body)
		if w.Code >= 500 {
			t.Errorf("%s %q = %d %s", call, body, w.Code, w.Body)
		}
		if w.Code >= 400 {
			checkProblem(t, w)
		}
	})
}
