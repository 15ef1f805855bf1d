package crash

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/httpapi/servermgmt"
	"github.com/nameplane/nameplane/test/server"
)

func TestNoTLSOnTheNetwork(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		s := launch(t, filepath.Join(server.Dir(t), "data"), "--http", addr)
		status, said := s.Wait(), s.Log()
		if status != 2 || !strings.Contains(said, "refusing to serve http on "+addr+" without TLS") ||
			!strings.Contains(said, "http.tls.cert") {
			t.Errorf("--http %s: status %d, output:\n%s", addr, status, said)
		}
		if _, err := os.Stat(filepath.Join(s.Data, "addresses.json")); err == nil {
			t.Errorf("--http %s: the server wrote addresses", addr)
		}
	}
}

// open lists the operations that need no token. All others do.
var open = []string{"GET /", "GET /dns", "GET /healthz", "GET /readyz", "GET /v3", "GET /v3/", "POST /v3/auth/tokens",
	"GET /openapi.json", "GET /health"}

// operations returns all operations of the HTTP API, including those beside the zones API.
func operations() []string {
	out := []string{"GET /metrics", "GET /healthz", "GET /readyz", "GET /v3", "GET /v3/", "POST /v3/auth/tokens",
		"GET /v3/auth/tokens", "DELETE /v3/auth/tokens", "GET /v3/auth/catalog", "GET /v3/auth/projects", "GET /v3/projects",
		"GET /v3/projects/x", "GET /access/v1/tokens", "POST /access/v1/tokens", "DELETE /access/v1/tokens/x",
		"GET /access/v1/users", "POST /access/v1/users", "PATCH /access/v1/users/x", "DELETE /access/v1/users/x",
		"GET /access/v1/projects", "POST /access/v1/projects", "DELETE /access/v1/projects/x", "GET /admin/v1/backup",
		"POST /admin/v1/scrub",
		"GET /nothing/here", "PUT /", "DELETE /healthz", "GET //metrics", "GET /healthz/../metrics", "GET /v3/../v2/zones"}
	parameter := regexp.MustCompile(`\{[a-z_]+\}`)
	add := func(method, pattern string) {
		out = append(out, method+" "+parameter.ReplaceAllString(pattern, "00000000-0000-4000-8000-000000000001"))
	}
	for _, r := range designate.Routes() {
		add(r.Method, r.Pattern)
	}
	for _, r := range slices.Concat(mecapi.Mm5Routes(), mecapi.Mp1Routes()) {
		add(r.Method, r.Pattern)
	}
	for _, r := range servermgmt.Routes() {
		add(r.Method, r.Pattern)
	}
	return out
}

func TestTokenNeeded(t *testing.T) {
	s := start(t, filepath.Join(server.Dir(t), "data"))
	s.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	last := s.Token[len(s.Token)-1:]
	wrong := []string{"", "x", s.Token[:len(s.Token)-1], s.Token + "x", strings.TrimSuffix(s.Token, last) + flip(last)}
	for i, op := range operations() {
		method, path, _ := strings.Cut(op, " ")
		// Each operation has an address of its own, because an address with many wrong tokens gets 429.
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 4, byte(i+1))}}
		s.Client.Transport = &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}
		for _, token := range wrong {
			req, err := http.NewRequestWithContext(context.Background(), method, s.HTTP, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.URL.Path = path
			if token != "" {
				req.Header.Set("X-Auth-Token", token)
			}
			r, err := s.Send(req)
			if err != nil {
				t.Fatalf("%s: %v", op, err)
			}
			if isOpen := slices.Contains(open, op); !isOpen && r.Status != http.StatusUnauthorized {
				t.Errorf("%s with token %q: %d %s", op, token, r.Status, r.Body)
			} else if isOpen && r.Status == http.StatusUnauthorized && method != http.MethodPost {
				t.Errorf("%s needs no token, but got %d", op, r.Status)
			}
		}
	}
	s.Must(http.MethodGet, "/v2/zones", nil, nil)
}

func flip(letter string) string {
	if letter == "A" {
		return "B"
	}
	return "A"
}

// TestSecretsStaySecret searches for the secrets in everything that the server writes.
func TestSecretsStaySecret(t *testing.T) {
	s := &node{server.Start(t, server.Options{Config: server.Listen + "log: {level: debug}\n"})}
	data := s.Data
	for path, want := range map[string]fs.FileMode{data: 0o700, filepath.Join(data, "admin.token"): 0o600,
		storePath(data): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %o", path, info.Mode(), err, want)
		}
	}
	const password = "correct-horse-battery-staple-7"
	s.Must(http.MethodPost, "/access/v1/users", map[string]string{"name": "eve", "password": password, "role": "member"},
		nil)
	session := s.login(t, "eve", password)
	s.login(t, "admin", s.Token)
	var made struct{ Token struct{ Token string } }
	s.Must(http.MethodPost, "/access/v1/tokens", map[string]string{"name": "robot", "role": "member"}, &made)
	bearer := *s.Server
	bearer.Token = made.Token.Token
	bearer.Must(http.MethodGet, "/v2/zones", nil, nil)
	cli := exec.Command(s.Command[0], "zone", "create", "example.org", "--server", s.HTTP, "--data", data)
	if out, err := cli.CombinedOutput(); err != nil {
		t.Errorf("zone create: %v\n%s", err, out)
	}
	if r, err := s.Call(http.MethodGet, "/v2/zones/"+s.Token, nil); err != nil || r.OK() {
		t.Errorf("a token as zone id: %d, %v", r.Status, err)
	}
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	wrote := written(t, data)
	wrote["log"] = []byte(s.Log())
	for what, secret := range map[string]string{"admin token": s.Token, "token": made.Token.Token, "password": password,
		"session": session} {
		if secret == "" {
			t.Fatalf("no %s", what)
		}
		for file, b := range wrote {
			// The log shows the path of a request: a client that puts a token there has disclosed it already.
			if file == "log" {
				b = bytes.ReplaceAll(b, []byte("/v2/zones/"+s.Token), nil)
			}
			for _, form := range forms(secret) {
				if bytes.Contains(b, form) {
					t.Errorf("%s contains the %s", file, what)
				}
			}
		}
	}
}

// login opens a session with a password.
func (s *node) login(t *testing.T, name, password string) string {
	t.Helper()
	body := map[string]any{"auth": map[string]any{"identity": map[string]any{"methods": []string{"password"},
		"password": map[string]any{"user": map[string]any{"name": name, "domain": map[string]string{"id": "default"},
			"password": password}}}}}
	return s.Must(http.MethodPost, "/v3/auth/tokens", body, nil).Header.Get("X-Subject-Token")
}

// forms returns the forms in which a secret could be written. Of a token, only the last part is secret.
func forms(secret string) [][]byte {
	part := secret[strings.LastIndex(secret, "_")+1:]
	return [][]byte{[]byte(secret), []byte(part), []byte(hex.EncodeToString([]byte(part))),
		[]byte(base64.RawStdEncoding.EncodeToString([]byte(secret)))}
}

// written returns all files in the data directory, except the file whose purpose is to contain the token.
func written(t *testing.T, data string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "admin.token" {
			return err
		}
		out[d.Name()], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}
