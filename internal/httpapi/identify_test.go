package httpapi_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// TestTokenFile checks who a request is from on a listener with a token file. Wrong credentials never fall back to the
// file, and a page of another site cannot use it.
func TestTokenFile(t *testing.T) {
	r := accesstest.Open(t, nil)
	own, _ := r.Token(t, "own", "admin", access.RoleMember)
	filed, id := r.Token(t, "filed", "admin", access.RoleMember)
	file := filepath.Join(t.TempDir(), "token")
	for _, tt := range []struct {
		name, file     string
		header, value  string
		user, password string
		want           string // empty: refused
	}{
		{name: "nothing", file: file, want: "token filed"},
		{name: "nothing, and no file", want: ""},
		{name: "nothing, and a missing file", file: file + "x", want: ""},
		{name: "token", file: file, header: "X-Auth-Token", value: own, want: "token own"},
		{name: "bearer", file: file, header: "Authorization", value: "Bearer " + own, want: "token own"},
		{name: "basic", user: "external-dns", password: own, want: "token own"},
		{name: "wrong token", file: file, header: "X-Auth-Token", value: "np_x", want: ""},
		{name: "wrong password", file: file, user: "external-dns", password: "np_x", want: ""},
		{name: "another scheme", file: file, header: "Authorization", value: "Digest x", want: ""},
		{name: "another site", file: file, header: "Sec-Fetch-Site", value: "cross-site", want: ""},
		{name: "another site with a password", header: "Sec-Fetch-Site", value: "cross-site", user: "x", password: own},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(filed+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest("POST", "/records", nil)
			if tt.header != "" {
				req.Header.Set(tt.header, tt.value)
			}
			if tt.user != "" {
				req.SetBasicAuth(tt.user, tt.password)
			}
			c, err := httpapi.ByTokenOrFile(r.Access, tt.file)(req)
			if (err == nil) != (tt.want != "") || err == nil && c.Who != tt.want {
				t.Errorf("caller %q, %v; want %q", c.Who, err, tt.want)
			}
		})
	}
	if err := r.Access.RevokeToken(t.Context(), accesstest.Actor, id); err != nil {
		t.Fatal(err)
	}
	if c, err := httpapi.ByTokenOrFile(r.Access, file)(httptest.NewRequest("GET", "/", nil)); err == nil {
		t.Errorf("a revoked token in the file: %q", c.Who)
	}
}
