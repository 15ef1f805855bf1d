package manager

import (
	"fmt"
	"slices"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// maxMessages keeps a firewall of a thousand bad rules from filling its own status.
const maxMessages = 20

// namesOf are the names in the rules of a firewall that are well-formed, as a DNSNameResolver spells them. Bad rules do not take the
// good ones with them (D17).
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

// messages are complaints as they go into the status.
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
