// Package accesstest starts a store, a publisher and an Access for tests of the HTTP APIs.
//
// Start with Open in accesstest.go, which returns a Rig with an admin token.
package accesstest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

// Rig is the environment of an API test.
type Rig struct {
	Access *access.Access
	Pub    *publish.Publisher
	Admin  string // the admin token
}

// Actor makes the changes of tests.
var Actor = store.Actor{Who: "test", API: "test"}

// Open starts a rig in a temporary directory and stops it at the end of the test. Its password hashes are cheap.
func Open(t testing.TB, log *slog.Logger) Rig {
	t.Helper()
	return OpenWith(t, log, publish.Options{})
}

// OpenWith is Open with options for the publisher.
func OpenWith(t testing.TB, log *slog.Logger, opts publish.Options) Rig {
	t.Helper()
	dir := t.TempDir()
	st, err := boltstore.Open(filepath.Join(dir, "store.db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := publish.Open(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- pub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, st.Close()); err != nil {
			t.Error(err)
		}
	})
	a, err := access.Open(t.Context(), pub, access.Options{Log: log,
		Hash: access.HashParams{Memory: 64, Passes: 1, Lanes: 1}})
	if err == nil {
		err = a.EnsureAdmin(t.Context(), dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, access.AdminFile))
	if err != nil {
		t.Fatal(err)
	}
	return Rig{a, pub, strings.TrimSpace(string(b))}
}

// Token creates a token.
func (r Rig) Token(t testing.TB, name, project, role string) (text, id string) {
	t.Helper()
	text, tok, err := r.Access.CreateToken(t.Context(), Actor, access.TokenSpec{Name: name, Project: project, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return text, tok.ID
}

// App creates the token of an application instance.
func (r Rig) App(t testing.TB, app string) (text string) {
	t.Helper()
	text, _, err := r.Access.CreateToken(t.Context(), Actor,
		access.TokenSpec{Name: app, Project: "admin", Role: access.RoleApp, App: app})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Project creates a project.
func (r Rig) Project(t testing.TB, name string) access.Project {
	t.Helper()
	p, err := r.Access.CreateProject(t.Context(), Actor, name, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// User creates a user.
func (r Rig) User(t testing.TB, name, password, project, role string) access.User {
	t.Helper()
	u, err := r.Access.CreateUser(t.Context(), Actor,
		access.UserSpec{Name: name, Password: password, Project: project, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return u
}
