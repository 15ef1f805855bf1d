package access

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/zone"
)

// The roles: a reader sees its project, a member changes it, an admin acts for all projects. Each has the rights of
// those before it.
const (
	RoleReader = "reader"
	RoleMember = "member"
	RoleAdmin  = "admin"
)

// Roles is a role with those it includes, greatest first; none for a word that is no role.
func Roles(role string) []string {
	switch role {
	case RoleAdmin:
		return []string{RoleAdmin, RoleMember, RoleReader}
	case RoleMember:
		return []string{RoleMember, RoleReader}
	case RoleReader:
		return []string{RoleReader}
	}
	return nil
}

// Kind is what sort of credential a Principal has shown.
type Kind string

// The kinds of principals.
const (
	KindToken Kind = "token"
	KindUser  Kind = "user"
)

// Principal is who was authenticated, and for which project.
type Principal struct {
	Kind    Kind
	ID      string // of the token or user
	Name    string
	Project Project
	Role    string
	Session string    // id of the session; empty when the token itself was shown
	Methods []string  // how a session was opened, in Keystone's words
	Issued  time.Time // of the session or token
	Expires time.Time // zero: never

	generation int // of the user, see User
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

func checkRole(role string) error {
	if Roles(role) == nil {
		return &zone.InvalidError{Field: "role", Reason: "must be one of reader, member, admin"}
	}
	return nil
}
