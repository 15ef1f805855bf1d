package zone

import (
	"errors"
	"fmt"
)

// ErrNotFound says that there is no such zone, record set or object.
var ErrNotFound = errors.New("not found")

// ErrExists says that there is one already.
var ErrExists = errors.New("already exists")

// ErrChanged says that the thing is no longer in the state the caller expected.
var ErrChanged = errors.New("changed in the meantime")

// InvalidError says that a value cannot be taken, and which.
type InvalidError struct {
	Field  string
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// PlacementError says that a record set cannot stand where it was put: beside a CNAME, outside its zone and the like.
type PlacementError struct{ Reason string }

func (e *PlacementError) Error() string { return e.Reason }

func placement(format string, a ...any) error {
	return &PlacementError{fmt.Sprintf(format, a...)}
}
