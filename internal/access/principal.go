package access

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/zone"
)

// The roles. A reader reads its project, a member also changes it, and an admin acts for all projects; each has the
// rights of the roles before it. The other three have no rights in projects: a platform manages the rules of edge
// applications, an app is one application instance and sees only its own rules, and metrics reads /metrics.
const (
	RoleReader   = "reader"
	RoleMember   = "member"
	RoleAdmin    = "admin"
	RolePlatform = "platform"
	RoleApp      = "app"
	RoleMetrics  = "metrics"
)

// Roles returns a role with the roles that it includes, greatest first. It returns nil for an unknown role.
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

// ofProjects reports whether a role has rights in projects. Only such roles can have sessions.
func ofProjects(role string) bool {
	return role == RoleReader || role == RoleMember || role == RoleAdmin
}

// Kind is the kind of credential that a Principal presented.
type Kind string

// The kinds of principals.
const (
	kindToken Kind = "token"
	kindUser  Kind = "user"
	kindJWT   Kind = "jwt"
)

// Principal is an authenticated caller, with the project that it acts for.
type Principal struct {
	Kind    Kind
	ID      string // ID of the token or user
	Name    string
	Project Project
	Role    string
	App     string    // ID of the application instance; empty unless the role is app
	Session string    // ID of the session; empty when the token itself was presented
	System  bool      // the session has the system scope of Keystone, which only admins have
	Methods []string  // methods by which the session was opened, in Keystone's terms
	Issued  time.Time // when the session or token was issued
	Expires time.Time // zero means never

	generation int      // generation of the user or token, see endAllSessions
	parents    []string // parents of the session, see sessionBody
}

// Who returns the name of the principal for the journal and the log.
func (p Principal) Who() string { return string(p.Kind) + " " + p.Name }

const (
	maxName     = 64
	maxPassword = 1024 // bytes; bounds the time of hashing a password
	minPassword = 8
)

func checkName(field, name string) error {
	switch {
	case name == "":
		return &zone.InvalidError{Field: field, Reason: "must not be empty"}
	case utf8.RuneCountInString(name) > maxName || !utf8.ValidString(name):
		return &zone.InvalidError{Field: field, Reason: "must be at most 64 characters"}
	case strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name:
		return &zone.InvalidError{Field: field,
			Reason: "must not begin or end with a space, or contain control characters"}
	}
	return nil
}

// checkUserRole checks the role of a user. Users log in to act for a project, so only the roles of projects are
// possible.
func checkUserRole(role string) error {
	if !ofProjects(role) {
		return &zone.InvalidError{Field: "role", Reason: "must be one of reader, member, admin"}
	}
	return nil
}

// checkTokenRole checks the role of a token, and that it has an application instance exactly when the role is app.
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
	appRule = "must be 1 to 128 bytes of UTF-8 without spaces, slashes and control characters, and not . or .."
)

// validApp reports whether a text can be the ID of an application instance. Most IDs are UUIDs, but ETSI allows any
// text. The rule is the one of package mec, which this package must not import.
func validApp(s string) bool {
	special := func(c rune) bool {
		return c <= ' ' || c == '/' || c == '\\' || c >= 0x7f && c <= 0xa0 || c == '\u2028' || c == '\u2029'
	}
	return s != "" && s != "." && s != ".." && len(s) <= maxApp && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, special)
}
