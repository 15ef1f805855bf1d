package transfer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/zone"
)

// refusal is why this server did not take a zone that a master gave. It tells nothing of the network, so the owner of
// the zone may read it.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, a ...any) error { return &refusal{fmt.Sprintf(format, a...)} }

// noDetails stands for every error of the network: an owner who could tell a closed port from an open one could scan
// the network of this server by naming masters.
const noDetails = "no master could be asked, or none gave the zone; an administrator of this server can see the details"

// reasonOf returns the reason of an error as the owner of the zone may read it.
func reasonOf(errs []error) string {
	var out []string
	for _, err := range errs {
		if ours(err) {
			out = append(out, err.Error())
		}
	}
	if len(out) == 0 {
		return noDetails
	}
	return strings.Join(out, "\n")
}

// ours reports whether an error is about the content of a zone, or the limits of this server.
func ours(err error) bool {
	return errors.As(err, new(*refusal)) || errors.As(err, new(*publish.QuotaError)) ||
		errors.Is(err, publish.ErrMemory) || errors.As(err, new(*budget.TooLargeError)) ||
		errors.As(err, new(*zone.PlacementError))
}
