package identity_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/identity"
)

type rig struct {
	accesstest.Rig
	log     *bytes.Buffer
	handler http.Handler
}

func newRig(t *testing.T) rig {
	t.Helper()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := rig{Rig: accesstest.Open(t, logger), log: &log}
	mux := http.NewServeMux()
	identity.API{Access: r.Access, Log: logger}.Register(mux)
	r.handler = httpapi.Frame{Access: r.Access, Log: logger}.Wrap(mux)
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

func passwordBody(user, password, scope string) string {
	if scope != "" {
		scope = `,"scope":` + scope
	}
	return fmt.Sprintf(`{"auth":{"identity":{"methods":["password"],"password":{"user":{%s,"password":%q}}}%s}}`, user,
		password, scope)
}

func TestLogin(t *testing.T) {
	r := newRig(t)
	edge := r.Project(t, "edge")
	u := r.User(t, "alice", "correct horse", "edge", "member")
	r.User(t, "root", "battery staple", "edge", "admin")
	tokenText, tokenID := r.Token(t, "ci", "edge", "reader")
	secret := tokenText[strings.LastIndex(tokenText, "_")+1:]
	byToken := func(id string) string {
		return fmt.Sprintf(`{"auth":{"identity":{"methods":["token"],"token":{"id":%q}}}}`, id)
	}
	byCredential := func(id, secret string) string {
		return fmt.Sprintf(`{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":%q,`+
			`"secret":%q}}}}`, id, secret)
	}
	const domain = `,"domain":{"id":"default"}`
	tests := []struct {
		name, body string
		status     int
		want       string // the user, project and first role, or a part of the message
	}{
		{"admin by token as password", passwordBody(`"name":"admin"`+domain, r.Admin,
			`{"project":{"name":"admin"`+domain+`}}`), 201, "admin admin admin"},
		{"user", passwordBody(`"name":"alice"`+domain, "correct horse", ""), 201, "alice edge member"},
		{"user by id", passwordBody(`"id":"`+u.ID+`"`, "correct horse", ""), 201, "alice edge member"},
		{"domain by name", passwordBody(`"name":"alice","domain":{"name":"Default"}`, "correct horse", ""), 201,
			"alice edge member"},
		{"unscoped", passwordBody(`"name":"alice"`, "correct horse", `"unscoped"`), 201, "alice edge member"},
		{"project by id", passwordBody(`"name":"alice"`, "correct horse", `{"project":{"id":"`+edge.ID+`"}}`), 201,
			"alice edge member"},
		{"admin elsewhere", passwordBody(`"name":"admin"`, r.Admin, `{"project":{"name":"edge"}}`), 201, "admin edge admin"},
		{"token", byToken(tokenText), 201, "ci edge reader"},
		{"application credential", byCredential(tokenID, secret), 201, "ci edge reader"},
		{"application credential with the whole token", byCredential(tokenID, tokenText), 201, "ci edge reader"},

		{"another project", passwordBody(`"name":"alice"`, "correct horse", `{"project":{"name":"admin"}}`), 401,
			"requires authentication"},
		{"another domain", passwordBody(`"name":"alice","domain":{"id":"other"}`, "correct horse", ""), 401,
			"requires authentication"},
		{"system scope", passwordBody(`"name":"admin"`, r.Admin, `{"system":{"all":true}}`), 201, "admin system admin"},
		{"system scope of a user with the role admin", passwordBody(`"name":"root"`, "battery staple",
			`{"system":{"all":true}}`), 201, "root system admin"},
		{"system scope of a member", passwordBody(`"name":"alice"`, "correct horse", `{"system":{"all":true}}`), 401,
			"requires authentication"},
		{"system scope of a part", passwordBody(`"name":"admin"`, r.Admin, `{"system":{"all":false}}`), 400,
			"auth.scope.system"},
		{"domain scope", passwordBody(`"name":"admin"`, r.Admin, `{"domain":{"id":"default"}}`), 401,
			"requires authentication"},
		{"no domains", passwordBody(`"name":"alice"`, "correct horse", `{"project":{"name":"edge"}}`), 201,
			"alice edge member"},
		{"wrong password", passwordBody(`"name":"alice"`, "wrong-password-1", ""), 401, "requires authentication"},
		{"unknown user", passwordBody(`"name":"bob"`, "correct horse", ""), 401, "requires authentication"},
		{"wrong secret", byCredential(tokenID, strings.Repeat("a", 52)), 401, "requires authentication"},
		{"wrong token", byToken("gAAAAAB"), 401, "requires authentication"},
		{"no method", `{"auth":{"identity":{"methods":[]}}}`, 400, "exactly one"},
		{"two methods", `{"auth":{"identity":{"methods":["password","totp"]}}}`, 400, "exactly one"},
		{"unknown method", `{"auth":{"identity":{"methods":["saml2"]}}}`, 400, "must name one of"},
		{"method without its part", `{"auth":{"identity":{"methods":["password"]}}}`, 400,
			"auth.identity.password: is missing"},
		{"credential by name", `{"auth":{"identity":{"methods":["application_credential"],` +
			`"application_credential":{"name":"ci"}}}}`, 400, "id of a token"},
		{"project without a name", passwordBody(`"name":"alice"`, "correct horse", `{"project":{}}`), 400,
			"needs an id or a name"},
		{"scope of rubbish", passwordBody(`"name":"alice"`, "correct horse", `17`), 400, "auth.scope"},
		{"two users", passwordBody(`"name":"bob","name":"alice"`, "correct horse", `null`), 400, "name: is there twice"},
		{"two scopes", `{"auth":{"identity":{"methods":["token"],"token":{"id":"x"}},"scope":null,"scope":"unscoped"}}`, 400,
			"auth.scope: is there twice"},
		{"more JSON", `{"auth":{}}{"auth":{}}`, 400, "must be JSON"},
		{"no auth", `{}`, 400, "auth: is missing"},
		{"empty", ``, 400, "must be JSON"},
		{"not JSON", `password=secret-in-body`, 400, "must be JSON"},
		{"too long", `{"x":"` + strings.Repeat("x", 65<<10) + `"}`, 413, "larger than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := r.do("POST", "/v3/auth/tokens", tt.body, "Content-Type", "application/json")
			if w.Code != tt.status {
				t.Fatalf("status %d %s, want %d", w.Code, w.Body, tt.status)
			}
			if got := outcome(t, w); !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if subject := w.Header().Get("X-Subject-Token"); (subject != "") != (w.Code == 201) {
				t.Errorf("status %d with X-Subject-Token %q", w.Code, subject)
			}
		})
	}
	for _, s := range []string{"correct horse", "wrong-password-1", "secret-in-body", secret, r.Admin[20:], "nps_"} {
		if strings.Contains(r.log.String(), s) {
			t.Errorf("the log holds %q", s)
		}
	}
	if !strings.Contains(r.log.String(), `msg=audit method=POST path=/v3/auth/tokens status=201 who="user alice"`) {
		t.Errorf("no audit line of alice's login:\n%s", r.log)
	}
}

// outcome returns the result of a login in one line.
func outcome(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var b struct {
		Token struct {
			User, Project struct{ Name string }
			System        *struct{ All bool }
			Roles         []struct{ Name string }
		}
		Error struct {
			Code    int
			Message string
			Title   string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if w.Code == 201 {
		if b.Token.System != nil && b.Token.System.All {
			b.Token.Project.Name += "system"
		}
		return b.Token.User.Name + " " + b.Token.Project.Name + " " + b.Token.Roles[0].Name
	}
	if b.Error.Code != w.Code || b.Error.Title != http.StatusText(w.Code) {
		t.Errorf("error %+v with status %d", b.Error, w.Code)
	}
	return b.Error.Message
}

// session logs in and returns the session.
func (r rig) session(t *testing.T, user, password string) string {
	t.Helper()
	w := r.do("POST", "/v3/auth/tokens", passwordBody(`"name":"`+user+`"`, password, ""))
	if w.Code != 201 {
		t.Fatalf("login of %s: %d %s", user, w.Code, w.Body)
	}
	return w.Header().Get("X-Subject-Token")
}

func TestValidateAndRevoke(t *testing.T) {
	r := newRig(t)
	r.Project(t, "edge")
	r.User(t, "alice", "correct horse", "edge", "member")
	r.User(t, "bob", "battery staple", "edge", "member")
	alice, bob := r.session(t, "alice", "correct horse"), r.session(t, "bob", "battery staple")
	tests := []struct {
		name, method, auth, subject string
		want                        int
	}{
		{"own", "GET", alice, alice, 200},
		{"own, head only", "HEAD", alice, alice, 200},
		{"another's", "GET", alice, bob, 403},
		{"rubbish", "GET", alice, "x", 403},
		{"none", "GET", alice, "", 403},
		{"admin sees all", "GET", r.Admin, bob, 200},
		{"admin and rubbish", "GET", r.Admin, "x", 404},
		{"a lasting token", "GET", r.Admin, r.Admin, 200},
		{"nobody", "GET", "", alice, 401},
		{"revoke another's", "DELETE", alice, bob, 403},
		{"revoke a lasting token", "DELETE", r.Admin, r.Admin, 403},
		{"revoke own", "DELETE", alice, alice, 204},
		{"it is gone", "GET", alice, alice, 401},
		{"and the other is not", "GET", bob, bob, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := r.do(tt.method, "/v3/auth/tokens", "", "X-Auth-Token", tt.auth, "X-Subject-Token", tt.subject)
			if w.Code != tt.want {
				t.Errorf("%s = %d %s, want %d", tt.method, w.Code, w.Body, tt.want)
			}
		})
	}
}

func TestSessionNotProlonged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first := r.session(t, "admin", r.Admin)
		time.Sleep(40 * time.Minute)
		w := r.do("POST", "/v3/auth/tokens",
			fmt.Sprintf(`{"auth":{"identity":{"methods":["token"],"token":{"id":%q}}}}`, first))
		second := w.Header().Get("X-Subject-Token")
		if w.Code != 201 {
			t.Fatalf("session for a session: %d %s", w.Code, w.Body)
		}
		time.Sleep(20 * time.Minute)
		if w := r.do("GET", "/v3/auth/projects", "", "X-Auth-Token", second); w.Code != 401 {
			t.Errorf("a session lives on in another: %d", w.Code)
		}
	})
}

func TestThrottledLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for range 10 {
			r.do("POST", "/v3/auth/tokens", passwordBody(`"name":"bob"`, "wrong password", ""))
		}
		w := r.do("POST", "/v3/auth/tokens", passwordBody(`"name":"bob"`, "wrong password", ""))
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("answer %d, Retry-After %q; want 429 and 1", w.Code, w.Header().Get("Retry-After"))
		}
		r.session(t, "admin", r.Admin)
	})
}

func TestDocuments(t *testing.T) {
	r := newRig(t)
	edge := r.Project(t, "edge")
	ci, _ := r.Token(t, "ci", "edge", "member")
	tests := []struct {
		name, path, token string
		status            int
		want              []string
	}{
		{"version", "/v3", "", 200, []string{`{"version":{"id":"v3.14","status":"stable"`,
			`"href":"http://localhost/v3/"`}},
		{"version with a slash", "/v3/", "", 200, []string{`"v3.14"`}},
		{"catalog", "/v3/auth/catalog", ci, 200,
			[]string{`"type":"dns"`, `"url":"http://localhost/dns/"`, `"region":"RegionOne"`}},
		{"own project", "/v3/auth/projects", ci, 200, []string{`{"projects":[{"id":"` + edge.ID + `","name":"edge"`}},
		{"projects by name", "/v3/projects?name=edge", r.Admin, 200, []string{`{"projects":[{"id":"` + edge.ID}},
		{"none of that name", "/v3/projects?name=x", r.Admin, 200, []string{`{"projects":[],`}},
		{"project", "/v3/projects/" + edge.ID, ci, 200, []string{`{"project":{"id":"` + edge.ID}},
		{"unknown project", "/v3/projects/x", ci, 404, nil},
		{"unknown path", "/v3/users", r.Admin, 404, []string{`"title":"Not Found"`}},
		{"needs a token", "/v3/auth/projects", "", 401, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := r.do("GET", tt.path, "", "X-Auth-Token", tt.token)
			if w.Code != tt.status {
				t.Fatalf("GET %s = %d %s, want %d", tt.path, w.Code, w.Body, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("GET %s has no %s: %s", tt.path, want, w.Body)
				}
			}
		})
	}
	if w := r.do("GET", "/v3/auth/projects", "", "X-Auth-Token", ci); strings.Contains(w.Body.String(), `"admin"`) {
		t.Errorf("a member sees other projects: %s", w.Body)
	}
}

func TestTokenDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		w := r.do("POST", "/v3/auth/tokens?nocatalog", passwordBody(`"name":"admin"`, r.Admin, ""))
		var got map[string]map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		admin, err := r.Access.Project("admin")
		if err != nil {
			t.Fatal(err)
		}
		domain := map[string]any{"id": "default", "name": "Default"}
		want := map[string]any{
			"methods": []any{"password"}, "is_domain": false,
			"issued_at": "2000-01-01T00:00:00.000000Z", "expires_at": "2000-01-01T01:00:00.000000Z",
			"user": map[string]any{"id": r.Access.Tokens()[0].ID, "name": "admin", "domain": domain,
				"password_expires_at": nil},
			"project": map[string]any{"id": admin.ID, "name": "admin", "domain": domain},
			"roles": []any{map[string]any{"id": "admin", "name": "admin"}, map[string]any{"id": "member", "name": "member"},
				map[string]any{"id": "reader", "name": "reader"}},
			"audit_ids": got["token"]["audit_ids"], // random
		}
		if diff := cmp.Diff(want, got["token"]); diff != "" {
			t.Errorf("token (-want +got):\n%s", diff)
		}
	})
}

// TestSystemScope checks that a session keeps its system scope, that a session of a project can be opened with it, and
// that the caller acts for the project of the user.
func TestSystemScope(t *testing.T) {
	r := newRig(t)
	edge := r.Project(t, "edge")
	system := r.do("POST", "/v3/auth/tokens", passwordBody(`"name":"admin"`, r.Admin, `{"system":{"all":true}}`)).
		Header().Get("X-Subject-Token")
	show := func(session string) string {
		w := r.do("GET", "/v3/auth/tokens", "", "X-Auth-Token", session, "X-Subject-Token", session)
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	if doc := show(system); !strings.Contains(doc, `"system":{"all":true}`) || strings.Contains(doc, `"project":`) {
		t.Errorf("session with the system scope: %s", doc)
	}
	w := r.do("POST", "/v3/auth/tokens", fmt.Sprintf(`{"auth":{"identity":{"methods":["token"],"token":{"id":%q}},`+
		`"scope":{"project":{"name":"edge"}}}}`, system))
	if doc := show(w.Header().Get("X-Subject-Token")); strings.Contains(doc, "system") || !strings.Contains(doc, edge.ID) {
		t.Errorf("session of a project: %s", doc)
	}
	p, err := r.Access.Authenticate(system)
	if err != nil || p.Project.Name != "admin" {
		t.Errorf("the session acts for %+v, %v", p.Project, err)
	}
}
