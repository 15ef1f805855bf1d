// Package httpapi is the middleware of every HTTP API: it authenticates callers, gives requests an id, enforces limits,
// and writes the audit log.
//
// Start with Frame in frame.go: Wrap puts it around a handler. Area (area.go) decides which roles may use a path,
// Identify (identify.go) finds the caller, and Listen (listen.go) binds a socket. The APIs are the sub-packages.
package httpapi

import (
	"context"
	"slices"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/store"
)

// Caller is the authenticated sender of a request.
type Caller struct {
	Who     string // the name for the journal and the audit log: "token ci-deploy", "user alice"
	ID      string // the id of the token or user
	Project string // the project that the caller acts for
	Roles   []string
	App     string // the application instance that the caller is, or empty
	AnyApp  bool   // the caller may act for every application instance: a gateway that authenticates its own callers
}

// IsAdmin reports whether the caller may act for every project.
func (c Caller) IsAdmin() bool { return slices.Contains(c.Roles, access.RoleAdmin) }

// IsPlatform reports whether the caller may manage the rules of all applications.
func (c Caller) IsPlatform() bool {
	return c.IsAdmin() || slices.Contains(c.Roles, access.RolePlatform)
}

// CanWrite reports whether the caller may change anything.
func (c Caller) CanWrite() bool { return c.IsAdmin() || slices.Contains(c.Roles, access.RoleMember) }

// MayActFor reports whether the caller may read and change the rules of an application instance as that instance.
func (c Caller) MayActFor(app string) bool {
	return c.IsAdmin() || slices.Contains(c.Roles, access.RoleApp) && (c.AnyApp || c.App != "" && c.App == app)
}

// CallerFor returns the caller for a principal.
func CallerFor(p access.Principal) Caller {
	return Caller{Who: p.Who(), ID: p.ID, Project: p.Project.ID, Roles: access.Roles(p.Role), App: p.App}
}

// CallerOf returns the caller of the request of ctx. Without authentication it is the zero Caller, which has no rights.
func CallerOf(ctx context.Context) Caller { return exchangeOf(ctx).caller }

// Actor returns the caller of ctx in the form of the journal, with the API that was called.
func Actor(ctx context.Context, api string) store.Actor {
	c := CallerOf(ctx)
	return store.Actor{Who: c.Who, Project: c.Project, API: api, RequestID: RequestID(ctx)}
}

// RequestID returns the id of the request of ctx: "req-" and a UUID.
func RequestID(ctx context.Context) string { return exchangeOf(ctx).id }
