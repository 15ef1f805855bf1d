package admin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/admin"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

type rig struct {
	accesstest.Rig
	log     *bytes.Buffer
	handler http.Handler
}

func newRig(t testing.TB, backup func(io.Writer) error) rig {
	t.Helper()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := rig{Rig: accesstest.Open(t, logger), log: &log}
	if backup == nil {
		backup = r.Pub.Backup
	}
	mux := http.NewServeMux()
	scrub := func() (int, error) { return 3, &store.DamagedError{Path: "x", Err: errors.New("a row")} }
	admin.API{Access: r.Access, Backup: backup, Scrub: scrub, Log: logger}.Register(mux)
	r.handler = httpapi.Frame{Access: r.Access, Log: logger}.Wrap(mux)
	return r
}

func (r rig) do(token, method, path, body string) (int, string) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Auth-Token", token)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// field returns one value of a reply.
func field(t testing.TB, body, thing, name string) string {
	t.Helper()
	var m map[string]map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	s, _ := m[thing][name].(string)
	if s == "" {
		t.Fatalf("no %s.%s in %s", thing, name, body)
	}
	return s
}

func TestTokens(t *testing.T) {
	r := newRig(t, nil)
	code, body := r.do(r.Admin, "POST", "/access/v1/projects", `{"name":"edge","description":"the edge"}`)
	if code != 201 {
		t.Fatalf("create project: %d %s", code, body)
	}
	projectID := field(t, body, "project", "id")
	code, body = r.do(r.Admin, "POST", "/access/v1/tokens",
		`{"name":"ci","project":"edge","role":"member","expires_at":"2999-01-01T00:00:00Z"}`)
	if code != 201 || field(t, body, "token", "project_id") != projectID ||
		field(t, body, "token", "expires_at") != "2999-01-01T00:00:00Z" {
		t.Fatalf("create token: %d %s", code, body)
	}
	text, id := field(t, body, "token", "token"), field(t, body, "token", "id")
	if code, _ := r.do(text, "GET", "/access/v1/tokens", ""); code != 403 {
		t.Errorf("a member lists tokens: %d, want 403", code)
	}
	code, body = r.do(r.Admin, "GET", "/access/v1/tokens", "")
	if code != 200 || !strings.Contains(body, `"name":"ci"`) || !strings.Contains(body, `"last_used_at":"2`) ||
		strings.Contains(body, text) {
		t.Errorf("list: %d %s", code, body)
	}
	if code, body := r.do(r.Admin, "DELETE", "/access/v1/projects/"+projectID, ""); code != 409 {
		t.Errorf("delete a project in use: %d %s, want 409", code, body)
	}
	if code, _ := r.do(r.Admin, "DELETE", "/access/v1/tokens/"+id, ""); code != 204 {
		t.Errorf("revoke: %d", code)
	}
	if code, _ := r.do(text, "GET", "/access/v1/tokens", ""); code != 401 {
		t.Errorf("after revocation: %d, want 401", code)
	}
	if code, _ := r.do(r.Admin, "DELETE", "/access/v1/projects/"+projectID, ""); code != 204 {
		t.Errorf("delete project: %d", code)
	}
	if strings.Contains(r.log.String(), text[20:]) || strings.Contains(r.log.String(), r.Admin[20:]) {
		t.Error("the log holds a secret")
	}
}

func TestAppTokens(t *testing.T) {
	r := newRig(t, nil)
	code, body := r.do(r.Admin, "POST", "/access/v1/tokens", `{"name":"camera","role":"app","app":"app-1"}`)
	if code != 201 || field(t, body, "token", "app") != "app-1" || field(t, body, "token", "role") != "app" {
		t.Fatalf("create: %d %s", code, body)
	}
	text := field(t, body, "token", "token")
	if code, body := r.do(r.Admin, "GET", "/access/v1/tokens", ""); !strings.Contains(body, `"app":"app-1"`) ||
		strings.Count(body, `"app":`) != 1 {
		t.Errorf("list: %d %s, want the application in one of two", code, body)
	}
	_, body = r.do(r.Admin, "POST", "/access/v1/tokens", `{"name":"mepm","role":"platform"}`)
	for _, text := range []string{text, field(t, body, "token", "token")} {
		for _, path := range []string{"/access/v1/tokens", "/access/v1/users", "/access/v1/projects", "/admin/v1/backup"} {
			if code, body := r.do(text, "GET", path, ""); code != 403 {
				t.Errorf("GET %s = %d %s, want 403", path, code, body)
			}
		}
		if code, body := r.do(text, "POST", "/access/v1/tokens", `{"name":"x","role":"admin"}`); code != 403 {
			t.Errorf("it made a token: %d %s", code, body)
		}
	}
}

func TestUsers(t *testing.T) {
	r := newRig(t, nil)
	code, body := r.do(r.Admin, "POST", "/access/v1/users", `{"name":"alice","password":"correct horse","role":"reader"}`)
	if code != 201 || field(t, body, "user", "project_name") != "admin" || strings.Contains(body, "argon2") {
		t.Fatalf("create: %d %s", code, body)
	}
	id := field(t, body, "user", "id")
	steps := []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/access/v1/users", `{"name":"alice","password":"correct horse","role":"reader"}`, 409},
		{"GET", "/access/v1/users", "", 200},
		{"PATCH", "/access/v1/users/" + id, `{"password":"battery staple"}`, 200},
		{"PATCH", "/access/v1/users/" + id, `{"password":"short"}`, 400},
		{"PATCH", "/access/v1/users/nobody", `{"password":"battery staple"}`, 404},
		{"DELETE", "/access/v1/users/" + id, "", 204},
		{"DELETE", "/access/v1/users/" + id, "", 404},
	}
	for _, s := range steps {
		if code, body := r.do(r.Admin, s.method, s.path, s.body); code != s.want {
			t.Errorf("%s %s %s = %d %s, want %d", s.method, s.path, s.body, code, body, s.want)
		}
	}
	for _, s := range []string{"correct horse", "battery staple", "argon2"} {
		if strings.Contains(r.log.String(), s) {
			t.Errorf("the log holds %q", s)
		}
	}
}

func TestBadBodies(t *testing.T) {
	r := newRig(t, nil)
	tests := []struct{ name, path, body, want string }{
		{"empty", "/access/v1/tokens", ``, "must be a JSON object"},
		{"a list", "/access/v1/tokens", `[]`, "must be a JSON object"},
		{"unknown key", "/access/v1/tokens", `{"name":"x","rolle":"admin"}`, "unknown key: rolle"},
		{"two roles", "/access/v1/tokens", `{"name":"x","role":"reader","role":"admin"}`, "role: is there twice"},
		{"two roles in other case", "/access/v1/tokens", `{"name":"x","role":"reader","Role":"admin"}`, "unknown key: Role"},
		{"wrong type", "/access/v1/users", `{"name":"x","password":["secret-in-list"]}`, "wrong type"},
		{"no role", "/access/v1/tokens", `{"name":"x"}`, "one of reader, member, admin"},
		{"app without an id", "/access/v1/tokens", `{"name":"x","role":"app"}`, "must be the id of an application instance"},
		{"id without the role", "/access/v1/tokens", `{"name":"x","role":"admin","app":"app-1"}`, "must be app"},
		{"user with the role of a token", "/access/v1/users", `{"name":"x","password":"correct horse","role":"platform"}`,
			"one of reader, member, admin"},
		{"unknown project", "/access/v1/tokens", `{"name":"x","role":"admin","project":"nowhere"}`, "not found"},
		{"no name", "/access/v1/projects", `{}`, "must not be empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, body := r.do(r.Admin, "POST", tt.path, tt.body)
			if code != 400 || !strings.Contains(body, tt.want) || strings.Contains(body, "secret-in-list") {
				t.Errorf("POST %s = %d %s, want 400 with %q", tt.body, code, body, tt.want)
			}
		})
	}
}

func TestLastAdminIsKept(t *testing.T) {
	r := newRig(t, nil)
	if code, body := r.do(r.Admin, "DELETE", "/access/v1/tokens/"+r.Access.Tokens()[0].ID, ""); code != 409 {
		t.Errorf("revoke the last admin: %d %s, want 409", code, body)
	}
}

func TestBackup(t *testing.T) {
	r := newRig(t, nil)
	code, body := r.do(r.Admin, "GET", "/admin/v1/backup", "")
	if code != 200 {
		t.Fatalf("backup: %d", code)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatalf("the backup is no store: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	member, _ := r.Token(t, "m", "admin", "member")
	if code, _ := r.do(member, "GET", "/admin/v1/backup", ""); code != 403 {
		t.Errorf("backup by a member: %d, want 403", code)
	}
}

// TestScrub checks that damage is a result of a scrub, and that only an administrator may start one.
func TestScrub(t *testing.T) {
	r := newRig(t, nil)
	code, body := r.do(r.Admin, "POST", "/admin/v1/scrub", "")
	want := `{"rows":3,"damage":"store file x is damaged`
	if code != 200 || !strings.HasPrefix(body, want) {
		t.Errorf("scrub: %d %s, want 200 %s", code, body, want)
	}
	member, _ := r.Token(t, "m", "admin", "member")
	if code, _ := r.do(member, "POST", "/admin/v1/scrub", ""); code != 403 {
		t.Errorf("scrub by a member: %d, want 403", code)
	}
}

// TestBackupBreaksOff checks that a client cannot mistake half a backup for a whole one.
func TestBackupBreaksOff(t *testing.T) {
	r := newRig(t, func(w io.Writer) error {
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		return errors.New("input/output error")
	})
	srv := httptest.NewServer(r.handler)
	defer srv.Close()
	req, err := http.NewRequest("GET", srv.URL+"/admin/v1/backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", r.Admin)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("the client saw a whole reply")
	}
}

func TestOneBackupAtATime(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	r := newRig(t, func(io.Writer) error {
		entered <- true
		<-release
		return nil
	})
	done := make(chan int)
	go func() {
		code, _ := r.do(r.Admin, "GET", "/admin/v1/backup", "")
		done <- code
	}()
	<-entered
	if code, _ := r.do(r.Admin, "GET", "/admin/v1/backup", ""); code != 503 {
		t.Errorf("a second backup: %d, want 503", code)
	}
	release <- true
	if code := <-done; code != 200 {
		t.Errorf("the first: %d", code)
	}
}
