package access

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEnsureAdmin(t *testing.T) {
	tests := []struct {
		name  string
		setup func(t *testing.T, a *Access, dir string)
		check func(t *testing.T, a *Access, dir string, err error)
		log   string
	}{
		{"first start", func(*testing.T, *Access, string) {}, func(t *testing.T, a *Access, dir string, err error) {
			info := must[os.FileInfo](t)(os.Stat(filepath.Join(dir, AdminFile)))
			if p := must[Principal](t)(a.Authenticate(adminToken(t, dir))); p.Role != RoleAdmin || p.Project.Name != "admin" ||
				info.Mode() != 0o600 {
				t.Errorf("first start made %+v with mode %v", p, info.Mode())
			}
		}, "admin token written"},
		{"second start changes nothing", func(t *testing.T, a *Access, dir string) {
			if err := a.EnsureAdmin(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, a *Access, dir string, err error) {
			if len(a.Tokens()) != 1 || err != nil {
				t.Errorf("%d tokens, %v; want 1", len(a.Tokens()), err)
			}
		}, ""},
		{"file without a row is adopted", func(t *testing.T, a *Access, dir string) {
			putFile(t, dir, tokenPrefix+strings.Repeat("k", 16)+"_"+strings.Repeat("s", 52))
		}, func(t *testing.T, a *Access, dir string, err error) {
			if p := must[Principal](t)(a.Authenticate(adminToken(t, dir))); p.ID != strings.Repeat("k", 16) || err != nil {
				t.Errorf("the admin is %s (%v), want the token of the file", p.ID, err)
			}
		}, ""},
		{"row without a file stays so", func(t *testing.T, a *Access, dir string) {
			if err := errors.Join(a.EnsureAdmin(t.Context(), dir), os.Remove(filepath.Join(dir, AdminFile))); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, a *Access, dir string, err error) {
			if _, serr := os.Stat(filepath.Join(dir, AdminFile)); !errors.Is(serr, os.ErrNotExist) || len(a.Tokens()) != 1 ||
				err != nil {
				t.Errorf("file: %v, tokens: %d, err: %v", serr, len(a.Tokens()), err)
			}
		}, ""},
		{"foreign file beside an admin is not adopted", func(t *testing.T, a *Access, dir string) {
			if err := a.EnsureAdmin(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			putFile(t, dir, tokenPrefix+strings.Repeat("k", 16)+"_"+strings.Repeat("s", 52))
		}, func(t *testing.T, a *Access, dir string, err error) {
			if _, aerr := a.Authenticate(adminToken(t, dir)); !errors.Is(aerr, ErrDenied) || err != nil {
				t.Errorf("Authenticate = %v, EnsureAdmin = %v", aerr, err)
			}
		}, "not valid here"},
		{"file with something else", func(t *testing.T, a *Access, dir string) { putFile(t, dir, "hello") },
			func(t *testing.T, a *Access, dir string, err error) {
				if err == nil || !strings.Contains(err.Error(), "move it away") || adminToken(t, dir) != "hello" {
					t.Errorf("error %v, file %q", err, adminToken(t, dir))
				}
			}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			dir := t.TempDir()
			a, stop := start(t, dir, Options{})
			defer stop()
			tt.setup(t, a, dir)
			a.opts.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			tt.check(t, a, dir, a.EnsureAdmin(t.Context(), dir))
			if !strings.Contains(log.String(), tt.log) {
				t.Errorf("log %q, want %q in it", log.String(), tt.log)
			}
			if _, secret, ok := parseToken(adminTokenOr(dir)); ok && strings.Contains(log.String(), secret) {
				t.Error("the log contains the secret")
			}
		})
	}
}

func adminTokenOr(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, AdminFile))
	return strings.TrimSpace(string(b))
}

func putFile(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, AdminFile), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDeadAdminFileIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a, stop := start(t, dir, Options{})
		defer stop()
		if err := a.EnsureAdmin(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		text, _ := newToken(t, a, TokenSpec{Name: "brief", Project: "admin", Role: RoleAdmin,
			Expires: time.Now().Add(time.Hour)})
		p := must[Principal](t)(a.Authenticate(adminToken(t, dir)))
		if err := a.RevokeToken(t.Context(), tester, p.ID); err != nil {
			t.Fatal(err)
		}
		putFile(t, dir, text)
		time.Sleep(2 * time.Hour)
		if err := a.EnsureAdmin(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		must[Principal](t)(a.Authenticate(adminToken(t, dir)))
	})
}
