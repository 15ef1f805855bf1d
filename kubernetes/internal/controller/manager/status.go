package manager

import (
	"slices"
	"strings"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// judge returns what the status of a firewall should have from us, with our own messages. The sum is wrong if anyone says
// so, applied when every zone has said so, and nothing while one has not. With no zone known, one zone that reports is
// enough. What zones say that are none any more does not count.
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

// sameSet compares lists whose order does not matter.
func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
