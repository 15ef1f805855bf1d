package mec

import (
	"errors"
	"fmt"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// Besides the errors below, methods of Service return store.ErrNotFound, store.ErrExists, store.ErrUnavailable, and the
// errors of functions that the caller passes.

// FieldError is the error for an invalid value. Field is its name in the API, such as "domainName", "ttl" or
// "appDNSRule[2].ipAddress".
type FieldError struct {
	Field string
	Msg   string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Msg }

func fieldErr(field, format string, a ...any) error {
	return &FieldError{field, fmt.Sprintf(format, a...)}
}

// In prefixes the field of a FieldError with a parent: In("appDNSRule[2]", err). It returns other errors unchanged.
func In(parent string, err error) error {
	if f, ok := errors.AsType[*FieldError](err); ok {
		return &FieldError{parent + "." + f.Field, f.Msg}
	}
	return err
}

// wrapNotFound adds a description to store.ErrNotFound. It returns other errors unchanged.
func wrapNotFound(err error, format string, a ...any) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf(format+": %w", append(a, store.ErrNotFound)...)
	}
	return err
}

// ConflictError is the error for a claim that contradicts the claim of another owner on the same name and type. Error
// does not name another application, because applications must not learn about each other.
type ConflictError struct {
	Name      dnsname.Name
	Type      rr.Type
	App       string // the application that was refused; empty for the platform
	OtherApp  string // the application that has the name; empty for the platform
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

// Detail returns the text for the platform, which may know every owner.
func (e *ConflictError) Detail() string {
	other := "rule " + e.OtherRule + " of application " + e.OtherApp
	if e.OtherApp == "" {
		other = "a record of the server management API"
	}
	return fmt.Sprintf("%s has other %s addresses from %s", e.Name, e.Type, other)
}

// LimitError is the error for a number that has reached its limit.
type LimitError struct {
	What  string // "rules of an application" ...
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit of %d %s is reached", e.Limit, e.What)
}

// GapError is the error for a watcher whose next event was dropped from the feed, or never existed. The watcher
// continues with the oldest event in the feed.
type GapError struct {
	After  uint64 // the event after which the watcher wanted to continue
	Oldest uint64 // the event that comes next
}

func (e *GapError) Error() string {
	return fmt.Sprintf("some events after %d are no longer available; the oldest is %d", e.After, e.Oldest)
}

// ErrTaskRunning is the error for a task that cannot begin before another task of the application has ended.
var ErrTaskRunning = errors.New("a task of this application is still running")
