package manager

import (
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// maxCollisions is the number of object names that are tried for a DNS name, as in OVN-Kubernetes. Each is a hash of 32
// bits.
const maxCollisions = 10

// plan lists the changes for one DNS name.
type plan struct {
	create string   // name of the object to create, or empty
	remove []string // objects to delete
	passed int      // object names that other DNS names use
}

// planName returns the plan for one DNS name that has the objects in have. owner returns the DNS name of an object, or
// "" if the object does not exist.
//
// It keeps the first hash whose object belongs to the name, even if an earlier hash has become free: a move would lose
// the addresses. Other objects of the name were created by hand, and are deleted.
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
