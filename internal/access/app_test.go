package access

import (
	"errors"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/zone"
)

func TestAppToken(t *testing.T) {
	a, _ := open(t)
	text, tok := newToken(t, a, TokenSpec{Name: "camera", Project: "admin", Role: RoleApp,
		App: "5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f"})
	p := must[Principal](t)(a.Authenticate(text))
	if p.Role != RoleApp || p.App != "5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f" || tok.App != p.App {
		t.Errorf("Authenticate = %+v of %+v, want the application's", p, tok)
	}
	platform, _ := newToken(t, a, TokenSpec{Name: "mepm", Project: "admin", Role: RolePlatform})
	q := must[Principal](t)(a.Authenticate(platform))
	for _, p := range []Principal{p, q} {
		if s, _, err := a.Issue(p, "", "token"); !errors.Is(err, ErrDenied) || s != "" {
			t.Errorf("a session of a token with the role %s: %q, %v; want none", p.Role, s, err)
		}
		if roles := Roles(p.Role); len(roles) != 1 || roles[0] != p.Role {
			t.Errorf("Roles(%s) = %v: it must include no other", p.Role, roles)
		}
	}
}

func TestTokenRoles(t *testing.T) {
	a, _ := open(t)
	tests := []struct{ name, role, app, field string }{
		{"app without an application", RoleApp, "", "app"},
		{"application without the role", RoleMember, "app-1", "role"},
		{"an admin for an application", RoleAdmin, "app-1", "role"},
		{"no role", "", "", "role"},
		{"unknown role", "king", "", "role"},
		{"a path", RoleApp, "a/b", "app"},
		{"space", RoleApp, "a b", "app"},
		{"a line end", RoleApp, "a\nb", "app"},
		{"not UTF-8", RoleApp, "a\xff", "app"},
		{"too long", RoleApp, strings.Repeat("a", 129), "app"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := a.CreateToken(t.Context(), tester, TokenSpec{Name: "x", Project: "admin", Role: tt.role, App: tt.app})
			var bad *zone.InvalidError
			if !errors.As(err, &bad) || bad.Field != tt.field {
				t.Errorf("CreateToken(%q, %q) = %v, want an error of field %s", tt.role, tt.app, err, tt.field)
			}
		})
	}
	for _, role := range []string{RoleApp, RolePlatform} {
		_, err := a.CreateUser(t.Context(), tester,
			UserSpec{Name: "u", Password: "correct horse", Project: "admin", Role: role})
		if bad := (*zone.InvalidError)(nil); !errors.As(err, &bad) || bad.Field != "role" {
			t.Errorf("a user with the role %s: %v, want an error of field role", role, err)
		}
	}
}
