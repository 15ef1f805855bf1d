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
func (c Caller) IsAdmin() bool { return slices.Contains(c.Roles, RoleAdmin) }

// IsPlatform reports whether the caller may manage the rules of all applications.
func (c Caller) IsPlatform() bool { return c.IsAdmin() || slices.Contains(c.Roles, RolePlatform) }

// CanWrite reports whether the caller may change anything.
func (c Caller) CanWrite() bool { return c.IsAdmin() || slices.Contains(c.Roles, RoleMember) }

// MayActFor reports whether the caller may see and switch the rules of an application instance as that instance.
func (c Caller) MayActFor(app string) bool {
	return c.IsAdmin() || slices.Contains(c.Roles, RoleApp) && (c.AnyApp || c.App != "" && c.App == app)
}

// The roles: a reader sees its project, a member changes it, an admin acts for all projects. A platform manages the rules of
// applications, an app is one of them.
const (
	RoleReader   = access.RoleReader
	RoleMember   = access.RoleMember
	RoleAdmin    = access.RoleAdmin
	RolePlatform = access.RolePlatform
	RoleApp      = access.RoleApp
)

type contextKey int

const (
	callerKey contextKey = iota
	requestIDKey
	exchangeKey
)

// CallerFor is the caller that a principal is.
func CallerFor(p access.Principal) Caller {
	return Caller{Who: p.Who(), ID: p.ID, Project: p.Project.ID, Roles: access.Roles(p.Role), App: p.App}
}

// WithCaller is ctx for a request of c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey, &c)
}

// CallerOf is who makes the request of ctx; the zero Caller, who may do nothing, when nobody was authenticated.
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey).(*Caller); ok {
		return *c
	}
	return Caller{}
}

// Actor is the caller of ctx as the journal names it, with the API that was called.
func Actor(ctx context.Context, api string) store.Actor {
	c := CallerOf(ctx)
	return store.Actor{Who: c.Who, Project: c.Project, Door: api, RequestID: RequestID(ctx)}
}

// WithRequestID is ctx for a request with an id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, &id)
}

// RequestID is the id of the request of ctx, "req-" and a UUID.
func RequestID(ctx context.Context) string {
	if id, ok := ctx.Value(requestIDKey).(*string); ok {
		return *id
	}
	return ""
}
