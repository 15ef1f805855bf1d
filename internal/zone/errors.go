package zone

import "fmt"

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
