package zone

import "fmt"

// InvalidError reports that the value of a field is not valid.
type InvalidError struct {
	Field  string
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// PlacementError reports that a record set cannot exist at its name: beside a CNAME, outside its zone, and so on.
type PlacementError struct{ Reason string }

func (e *PlacementError) Error() string { return e.Reason }

func placement(format string, a ...any) error {
	return &PlacementError{fmt.Sprintf(format, a...)}
}
