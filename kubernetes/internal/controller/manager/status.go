package manager

import (
	"slices"
	"strings"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// judge returns the manager's part of a firewall's status: its own messages and the overall status. That status is an
// error if any zone or the manager reports one, applied if every zone has reported that, and empty otherwise. If no
// zone is known, the report of one zone is enough. Reports of deleted zones do not count.
func judge(own, reported, zones []string) apiv1.EgressFirewallStatus {
	v := apiv1.EgressFirewallStatus{Messages: own}
	if len(own) > 0 {
		v.Status = egress.NotApplied
	}
	done := make(map[string]bool)
	for _, m := range reported {
		zone, _, _ := strings.Cut(m, ": ")
		if zone == egress.ManagerZone || len(zones) > 0 && !slices.Contains(zones, zone) {
			continue
		}
		if strings.Contains(m, egress.NotApplied) {
			v.Status = egress.NotApplied
		}
		done[zone] = true
	}
	if v.Status == "" && len(done) > 0 && len(done) >= len(zones) {
		v.Status = egress.Applied
	}
	return v
}

// sameSet reports whether two lists have the same elements.
func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
