package transfer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/zone"
)

// refusal says why this server refused a master, or the zone that it sent. It has no details of the network, so the
// owner of the zone may read it.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, a ...any) error { return &refusal{fmt.Sprintf(format, a...)} }

// noDetails replaces every network error. An owner who could distinguish a closed port from an open one could scan the
// network of this server by naming masters.
const noDetails = "no master could be reached, or none sent the zone; " +
	"an administrator of this server can see the details"

// reasonOf returns the reason of an error as the owner of the zone may read it.
func reasonOf(errs []error) string {
	var out []string
	for _, err := range errs {
		if forOwner(err) {
			out = append(out, err.Error())
		}
	}
	if len(out) == 0 {
		return noDetails
	}
	return strings.Join(out, "\n")
}

// forOwner reports whether an error is about the content of a zone or the limits of this server.
func forOwner(err error) bool {
	return errors.As(err, new(*refusal)) || errors.As(err, new(*publish.QuotaError)) ||
		errors.Is(err, publish.ErrMemory) || errors.As(err, new(*budget.TooLargeError)) ||
		errors.As(err, new(*zone.PlacementError))
}
