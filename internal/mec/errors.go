package mec

import (
	"errors"
	"fmt"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// Besides the errors below, calls return store.ErrNotFound, store.ErrExists, store.ErrUnavailable, and what the caller's
// own function returned.

// FieldError says that a value cannot be taken, and which. Field is its name on the wire: "domainName", "ttl",
// "appDNSRule[2].ipAddress".
type FieldError struct {
	Field string
	Msg   string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Msg }

func fieldErr(field, format string, a ...any) error {
	return &FieldError{field, fmt.Sprintf(format, a...)}
}

// In puts a FieldError's field below another one: In("appDNSRule[2]", err). Other errors stay as they are.
func In(parent string, err error) error {
	if f, ok := errors.AsType[*FieldError](err); ok {
		return &FieldError{parent + "." + f.Field, f.Msg}
	}
	return err
}

// absent names what a store.ErrNotFound is about. Other errors stay as they are.
func absent(err error, format string, a ...any) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf(format+": %w", append(a, store.ErrNotFound)...)
	}
	return err
}

// ConflictError says that a claim does not agree with what another owner claims for the same name and type. Its text
// tells an application no more than it may know: that there is another one.
type ConflictError struct {
	Name      dnsname.Name
	Type      rr.Type
	App       string // who could not have the name; empty for the platform
	OtherApp  string // who has it; empty for the platform
	OtherRule string
}

func (e *ConflictError) Error() string {
	other := "another application"
	switch {
	case e.OtherApp == "":
		other = "the platform"
	case e.OtherApp == e.App:
		other = "rule " + e.OtherRule + " of the same application"
	}
	return fmt.Sprintf("%s has other %s addresses from %s", e.Name, e.Type, other)
}

// Detail is the text for the platform, which may know every owner.
func (e *ConflictError) Detail() string {
	other := "rule " + e.OtherRule + " of application " + e.OtherApp
	if e.OtherApp == "" {
		other = "a record of the server management API"
	}
	return fmt.Sprintf("%s has other %s addresses from %s", e.Name, e.Type, other)
}

// LimitError says that there are as many of something as may be.
type LimitError struct {
	What  string // "rules of an application" ...
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit of %d %s is reached", e.Limit, e.What)
}

// GapError says that events after the one a watcher asked to go on from are not kept any more, or that the store never had
// it. The watcher goes on with the oldest that is kept.
type GapError struct {
	After  uint64 // what was asked for
	Oldest uint64 // what comes next
}

func (e *GapError) Error() string {
	return fmt.Sprintf("events after %d are not all kept; the oldest is %d", e.After, e.Oldest)
}

// ErrTaskRunning says that a task of the application must end first.
var ErrTaskRunning = errors.New("a task of this application is still running")
