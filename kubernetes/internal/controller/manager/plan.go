package manager

import (
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// maxCollisions is how many names are tried for an object, as OVN-Kubernetes does. Each is a hash of 32 bits.
const maxCollisions = 10

// plan is what to do about one DNS name.
type plan struct {
	create string   // name of the object to make; empty for none
	remove []string // objects that should not be
	passed int      // object names that were taken by other DNS names
}

// planName decides for one DNS name, of which there are the objects have. owner tells whose an object is, by its name; "" when there is none.
//
// The first of the name's own hashes whose object is its own is kept, also when one before has become free since: to move would
// forget the addresses. All others were made by hand, and go.
func planName(p enforce.Pattern, have []string, owner func(object string) string) (plan, error) {
	var out plan
	free := ""
	for c := range uint32(maxCollisions) {
		object := enforce.ObjectName(p, c)
		if slices.Contains(have, object) {
			out.remove = slices.DeleteFunc(slices.Clone(have), func(s string) bool { return s == object })
			return out, nil
		}
		who := owner(object)
		if who == "" && free == "" {
			free = object
		}
		if who != "" && free == "" {
			out.passed++
		}
	}
	out.remove = have
	if free == "" {
		return out, fmt.Errorf("%s: all of %d object names are taken by other DNS names", p, maxCollisions)
	}
	out.create = free
	return out, nil
}
