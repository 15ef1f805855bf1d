package access

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/zone"
)

// The roles. A reader sees its project, a member changes it, an admin acts for all projects; each has the rights of those
// before it. The other three have nothing to do with projects, and none of these rights: a platform manages the rules of
// edge applications, an app is one application instance and sees its own rules only, metrics reads /metrics.
const (
	RoleReader   = "reader"
	RoleMember   = "member"
	RoleAdmin    = "admin"
	RolePlatform = "platform"
	RoleApp      = "app"
	RoleMetrics  = "metrics"
)

// Roles is a role with those it includes, greatest first; none for a word that is no role.
func Roles(role string) []string {
	switch role {
	case RoleAdmin:
		return []string{RoleAdmin, RoleMember, RoleReader}
	case RoleMember:
		return []string{RoleMember, RoleReader}
	case RoleReader, RolePlatform, RoleApp, RoleMetrics:
		return []string{role}
	}
	return nil
}

// ofProjects reports whether a role has rights in projects, and so a use for sessions.
func ofProjects(role string) bool {
	return role == RoleReader || role == RoleMember || role == RoleAdmin
}

// Kind is what sort of credential a Principal has shown.
type Kind string

// The kinds of principals.
const (
	kindToken Kind = "token"
	kindUser  Kind = "user"
	kindJWT   Kind = "jwt"
)

// Principal is who was authenticated, and for which project.
type Principal struct {
	Kind    Kind
	ID      string // of the token or user
	Name    string
	Project Project
	Role    string
	App     string    // the application instance that it is; empty unless the role is app
	Session string    // id of the session; empty when the token itself was shown
	Methods []string  // how a session was opened, in Keystone's words
	Issued  time.Time // of the session or token
	Expires time.Time // zero: never

	generation int      // of the user or token, see endAll
	parents    []string // of the session, see sessionBody
}

// Who names the principal in the journal and in the log.
func (p Principal) Who() string { return string(p.Kind) + " " + p.Name }

const (
	maxName     = 64
	maxPassword = 1024 // octets; hashing must not be a way to keep us busy
	minPassword = 8
)

func checkName(field, name string) error {
	switch {
	case name == "":
		return &zone.InvalidError{Field: field, Reason: "must not be empty"}
	case utf8.RuneCountInString(name) > maxName || !utf8.ValidString(name):
		return &zone.InvalidError{Field: field, Reason: "must be at most 64 characters"}
	case strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name:
		return &zone.InvalidError{Field: field, Reason: "must not begin or end with space or hold control characters"}
	}
	return nil
}

// checkUserRole checks the role of a user. Users log in to act for a project, so they have the roles of projects.
func checkUserRole(role string) error {
	if !ofProjects(role) {
		return &zone.InvalidError{Field: "role", Reason: "must be one of reader, member, admin"}
	}
	return nil
}

// checkTokenRole checks the role of a token, and that it is an application's exactly when the role is app.
func checkTokenRole(role, app string) error {
	switch {
	case Roles(role) == nil:
		return &zone.InvalidError{Field: "role", Reason: "must be one of reader, member, admin, platform, app, metrics"}
	case role == RoleApp && app == "":
		return &zone.InvalidError{Field: "app", Reason: "must be the id of an application instance when the role is app"}
	case role != RoleApp && app != "":
		return &zone.InvalidError{Field: "role", Reason: "must be app for a token of an application instance"}
	case app != "" && !validApp(app):
		return &zone.InvalidError{Field: "app", Reason: appRule}
	}
	return nil
}

const (
	maxApp  = 128
	appRule = "must be 1 to 128 octets of UTF-8 without spaces, slashes and control characters, and not . or .."
)

// validApp reports whether a text can be the id of an application instance. Most are UUIDs, but ETSI allows any text; this is
// what package mec takes for one, which is not below this one and so cannot be asked.
func validApp(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= maxApp && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c == '/' || c == '\\' || c >= 0x7f && c <= 0xa0 || c == '\u2028' || c == '\u2029'
	})
}
