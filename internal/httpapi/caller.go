// Package httpapi is the frame of every HTTP door: who calls, with which request id, within which limits. The doors
// themselves are its sub-packages.
package httpapi

import (
	"context"
	"slices"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/store"
)

// Caller is who makes a request, after authentication.
type Caller struct {
	Who     string // for the journal and the audit line: "token ci-deploy", "user alice"
	ID      string // of the token or user
	Project string // whose things are seen and changed
	Roles   []string
	App     string // the application instance that it is; empty when it is none
	AnyApp  bool   // it may speak for every application instance: a gateway that has checked who calls it
}

// IsAdmin reports whether the caller may act for every project.
func (c Caller) IsAdmin() bool { return slices.Contains(c.Roles, access.RoleAdmin) }

// IsPlatform reports whether the caller may manage the rules of all applications.
func (c Caller) IsPlatform() bool {
	return c.IsAdmin() || slices.Contains(c.Roles, access.RolePlatform)
}

// CanWrite reports whether the caller may change anything.
func (c Caller) CanWrite() bool { return c.IsAdmin() || slices.Contains(c.Roles, access.RoleMember) }

// MayActFor reports whether the caller may see and switch the rules of an application instance as that instance.
func (c Caller) MayActFor(app string) bool {
	return c.IsAdmin() || slices.Contains(c.Roles, access.RoleApp) && (c.AnyApp || c.App != "" && c.App == app)
}

// CallerFor is the caller that a principal is.
func CallerFor(p access.Principal) Caller {
	return Caller{Who: p.Who(), ID: p.ID, Project: p.Project.ID, Roles: access.Roles(p.Role), App: p.App}
}

// CallerOf is who makes the request of ctx; the zero Caller, who may do nothing, when nobody was authenticated.
func CallerOf(ctx context.Context) Caller { return exchangeOf(ctx).caller }

// Actor is the caller of ctx as the journal names it, with the API that was called.
func Actor(ctx context.Context, api string) store.Actor {
	c := CallerOf(ctx)
	return store.Actor{Who: c.Who, Project: c.Project, Door: api, RequestID: RequestID(ctx)}
}

// RequestID is the id of the request of ctx, "req-" and a UUID.
func RequestID(ctx context.Context) string { return exchangeOf(ctx).id }
