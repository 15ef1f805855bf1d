package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// cheap makes hashing fast. The tests do not depend on the cost.
var cheap = HashParams{Memory: 64, Passes: 1, Lanes: 1}

var tester = store.Actor{Who: "test", API: "test"}

// start opens a store in dir, runs a publisher, and opens an Access on it. The returned function stops all of them.
func start(t testing.TB, dir string, opts Options) (*Access, func()) {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(dir, "store.db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, st, opts)
}

func startOn(t testing.TB, st store.Store, opts Options) (*Access, func()) {
	t.Helper()
	pub, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- pub.Run(ctx) }()
	opts.Hash = cheap
	a, err := Open(t.Context(), pub, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a, func() {
		cancel()
		if err := errors.Join(<-done, st.Close()); err != nil {
			t.Error(err)
		}
	}
}

// open calls start, ensures an admin, and stops everything at the end of the test.
func open(t testing.TB) (a *Access, admin string) {
	t.Helper()
	dir := t.TempDir()
	a, stop := start(t, dir, Options{})
	t.Cleanup(stop)
	if err := a.EnsureAdmin(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return a, adminToken(t, dir)
}

func adminToken(t testing.TB, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, AdminFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newToken(t testing.TB, a *Access, spec TokenSpec) (string, Token) {
	t.Helper()
	text, tok, err := a.CreateToken(t.Context(), tester, spec)
	if err != nil {
		t.Fatalf("CreateToken(%+v): %v", spec, err)
	}
	return text, tok
}

func TestAuthenticateToken(t *testing.T) {
	a, admin := open(t)
	must[Project](t)(a.CreateProject(t.Context(), tester, "edge", ""))
	text, tok := newToken(t, a, TokenSpec{Name: "ci", Project: "edge", Role: RoleMember})
	revoked, rtok := newToken(t, a, TokenSpec{Name: "old", Project: "edge", Role: RoleMember})
	if err := a.RevokeToken(t.Context(), tester, rtok.ID); err != nil {
		t.Fatal(err)
	}
	other := tokenPrefix + tok.ID + "_" + strings.Repeat("a", 52)
	tests := []struct {
		name, text string
		want       string // role; empty means denied
	}{
		{"admin", admin, RoleAdmin},
		{"member", text, RoleMember},
		{"revoked", revoked, ""},
		{"wrong secret", other, ""},
		{"cut", text[:len(text)-1], ""},
		{"longer", text + "a", ""},
		{"upper case", strings.ToUpper(text), ""},
		{"unknown", tokenPrefix + strings.Repeat("b", 16) + "_" + strings.Repeat("a", 52), ""},
		{"only the id", tokenPrefix + tok.ID, ""},
		{"empty", "", ""},
		{"session of nobody", sessionPrefix + "e30.AAAA", ""},
		{"session without signature", sessionPrefix + "e30", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := a.Authenticate(tt.text)
			if tt.want == "" != errors.Is(err, ErrDenied) || p.Role != tt.want {
				t.Fatalf("Authenticate = %+v, %v; want role %q", p, err, tt.want)
			}
			if err != nil && tt.text != "" && strings.Contains(err.Error(), tt.text) {
				t.Errorf("the error contains the token: %v", err)
			}
		})
	}
}

func TestTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := open(t)
		text, _ := newToken(t, a, TokenSpec{Name: "short", Project: "admin", Role: RoleReader,
			Expires: time.Now().Add(10 * time.Minute)})
		p := must[Principal](t)(a.Authenticate(text))
		session, sp, err := a.Issue(p, "", "token")
		if err != nil || !sp.Expires.Equal(p.Expires) {
			t.Fatalf("Issue = %v until %v, want until the token expires at %v", err, sp.Expires, p.Expires)
		}
		time.Sleep(10*time.Minute - time.Second)
		must[Principal](t)(a.Authenticate(text))
		must[Principal](t)(a.Authenticate(session))
		time.Sleep(time.Second)
		for _, s := range []string{text, session} {
			if _, err := a.Authenticate(s); !errors.Is(err, ErrDenied) {
				t.Errorf("after the end: %v, want ErrDenied", err)
			}
		}
	})
}

func TestDeadTokensAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := open(t)
		_, tok := newToken(t, a, TokenSpec{Name: "gone", Project: "admin", Role: RoleReader})
		if err := a.RevokeToken(t.Context(), tester, tok.ID); err != nil {
			t.Fatal(err)
		}
		newToken(t, a, TokenSpec{Name: "b", Project: "admin", Role: RoleReader})
		if n := len(a.Tokens()); n != 3 {
			t.Fatalf("%d tokens listed, want 3: a revoked token stays in the list", n)
		}
		time.Sleep(forgetAfter + time.Hour)
		newToken(t, a, TokenSpec{Name: "c", Project: "admin", Role: RoleReader})
		for _, tt := range a.Tokens() {
			if tt.Name == "gone" {
				t.Error("a token revoked long ago is still listed")
			}
		}
	})
}

func TestLastUseIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, admin := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		go a.Run(ctx)
		defer cancel()
		time.Sleep(time.Minute)
		must[Principal](t)(a.Authenticate(admin))
		at := now()
		time.Sleep(useInterval)
		synctest.Wait()
		var rows []tokenRow
		err := a.pub.View(func(v store.View) (err error) {
			rows, err = store.ObjectsOf[tokenRow](v, store.KindToken)
			return err
		})
		if err != nil || len(rows) != 1 || !rows[0].LastUsed.Equal(at) {
			t.Fatalf("rows %+v, %v; want last use %v", rows, err, at)
		}
	})
}

func TestCreateRefuses(t *testing.T) {
	a, _ := open(t)
	ctx := t.Context()
	tests := []struct {
		name, field string
		do          func() error
	}{
		{"token without name", "name", func() error {
			_, _, err := a.CreateToken(ctx, tester, TokenSpec{Project: "admin", Role: RoleAdmin})
			return err
		}},
		{"token with a line break", "name", func() error {
			_, _, err := a.CreateToken(ctx, tester, TokenSpec{Name: "a\nb", Project: "admin", Role: RoleAdmin})
			return err
		}},
		{"token of unknown project", "project", func() error {
			_, _, err := a.CreateToken(ctx, tester, TokenSpec{Name: "x", Project: "nobody", Role: RoleAdmin})
			return err
		}},
		{"token with unknown role", "role", func() error {
			_, _, err := a.CreateToken(ctx, tester, TokenSpec{Name: "x", Project: "admin", Role: "root"})
			return err
		}},
		{"token of the past", "expires", func() error {
			_, _, err := a.CreateToken(ctx, tester,
				TokenSpec{Name: "x", Project: "admin", Role: RoleAdmin, Expires: time.Unix(1, 0)})
			return err
		}},
		{"short password", "password", func() error {
			_, err := a.CreateUser(ctx, tester, UserSpec{"u", "short", "admin", RoleReader})
			return err
		}},
		{"token as password", "password", func() error {
			_, err := a.CreateUser(ctx, tester, UserSpec{"u",
				tokenPrefix + strings.Repeat("a", 16) + "_" + strings.Repeat("a", 52), "admin", RoleReader})
			return err
		}},
		{"long project name", "name", func() error {
			_, err := a.CreateProject(ctx, tester, strings.Repeat("x", 65), "")
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var bad *zone.InvalidError
			if err := tt.do(); !errors.As(err, &bad) || bad.Field != tt.field {
				t.Errorf("error %v, want an InvalidError of %s", err, tt.field)
			}
		})
	}
	if _, err := a.CreateProject(ctx, tester, "admin", ""); !errors.Is(err, store.ErrExists) {
		t.Errorf("second project of a name: %v, want ErrExists", err)
	}
}

func TestLastAdminStays(t *testing.T) {
	a, admin := open(t)
	p := must[Principal](t)(a.Authenticate(admin))
	if err := a.RevokeToken(t.Context(), tester, p.ID); !errors.Is(err, ErrLastAdmin) {
		t.Fatalf("revoke the only admin: %v, want ErrLastAdmin", err)
	}
	must[Principal](t)(a.Authenticate(admin))
	u := must[User](t)(a.CreateUser(t.Context(), tester, UserSpec{"root", "correct horse", "admin", RoleAdmin}))
	if err := a.RevokeToken(t.Context(), tester, p.ID); err != nil {
		t.Fatal(err)
	}
	if err := a.DeleteUser(t.Context(), tester, u.ID); !errors.Is(err, ErrLastAdmin) {
		t.Fatalf("delete the only admin: %v, want ErrLastAdmin", err)
	}
}

func TestDeleteProject(t *testing.T) {
	a, _ := open(t)
	p := must[Project](t)(a.CreateProject(t.Context(), tester, "edge", ""))
	_, tok := newToken(t, a, TokenSpec{Name: "ci", Project: "edge", Role: RoleMember})
	refused := func(why string) {
		t.Helper()
		if err := a.DeleteProject(t.Context(), tester, p.ID); !errors.Is(err, ErrInUse) ||
			!strings.Contains(err.Error(), why) {
			t.Fatalf("DeleteProject = %v, want ErrInUse by %s", err, why)
		}
	}
	refused("token")
	if err := a.RevokeToken(t.Context(), tester, tok.ID); err != nil {
		t.Fatal(err)
	}
	z := makeZone(t, a, p.ID)
	refused("zone")
	err := a.pub.Commit(t.Context(), tester, func(tx *publish.Tx) error { return tx.DeleteZone(z.ID) })
	if err != nil {
		t.Fatal(err)
	}
	if err := a.DeleteProject(t.Context(), tester, p.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Project("edge"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the project is still there: %v", err)
	}
}

func makeZone(t testing.TB, a *Access, project string) (z zone.Zone) {
	t.Helper()
	name, err := dnsname.Parse("example.org.")
	if err != nil {
		t.Fatal(err)
	}
	set := func(typ rr.Type, text string) zone.RecordSet {
		d, err := rr.ParseData(typ, text)
		if err != nil {
			t.Fatal(err)
		}
		return zone.RecordSet{Name: name, Type: typ, Data: []string{d}}
	}
	err = a.pub.Commit(t.Context(), tester, func(tx *publish.Tx) (err error) {
		z, err = tx.CreateZone(zone.Zone{Name: name, Project: project, Kind: zone.Primary, TTL: 300},
			set(rr.TypeSOA, "ns.example.org. host.example.org. 1 3600 600 86400 300"), set(rr.TypeNS, "ns.example.org."))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func BenchmarkAuthenticate(b *testing.B) {
	a, admin := open(b)
	session, _, err := a.Issue(must[Principal](b)(a.Authenticate(admin)), "", "token")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"token": admin, "session": session} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Authenticate(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// lateStore calls a function between reading rows and using them.
type lateStore struct {
	store.Store
	late func() // called once
}

// View implements store.Store.
func (s *lateStore) View(fn func(store.Reader) error) error {
	err := s.Store.View(fn)
	if late := s.late; late != nil {
		s.late = nil
		late()
	}
	return err
}

// TestOlderAccounts checks that an older state of the accounts does not replace a newer one: a token that only the
// newer state has must stay valid.
func TestOlderAccounts(t *testing.T) {
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "store.db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := &lateStore{Store: st}
	a, stop := startOn(t, late, Options{})
	defer stop()
	p, err := a.CreateProject(t.Context(), tester, "p", "")
	if err != nil {
		t.Fatal(err)
	}
	var text string
	late.late = func() {
		text, _, err = a.CreateToken(t.Context(), tester, TokenSpec{Name: "t", Project: p.ID, Role: RoleMember})
	}
	if err := errors.Join(a.reload(), err); err != nil || text == "" {
		t.Fatalf("token %q, %v", text, err)
	}
	if _, err := a.Authenticate(text); err != nil {
		t.Error(err)
	}
}
