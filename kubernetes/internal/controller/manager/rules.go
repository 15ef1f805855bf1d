package manager

import (
	"fmt"
	"slices"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// maxMessages limits the errors in the status of a firewall, which may have a thousand bad rules.
const maxMessages = 20

// namesOf returns the valid names in the rules of a firewall, as spelled in a DNSNameResolver. Invalid rules do not
// affect the other ones.
func namesOf(ef *apiv1.EgressFirewall, deep bool) []string {
	if ef.Name != egress.Name {
		return nil
	}
	out := []string{}
	for _, p := range egress.Read(ef, deep).Names {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}

// messages returns the errors as status messages.
func messages(errs []error) []string {
	prefix := egress.ManagerZone + ": " + egress.NotApplied + ": "
	var out []string
	for i, err := range errs {
		if i == maxMessages {
			return append(out, fmt.Sprintf("%s%d%s", prefix, len(errs)-i, egress.MoreRules))
		}
		if m := prefix + err.Error(); !slices.Contains(out, m) { // the list is a set
			out = append(out, m)
		}
	}
	return out
}
