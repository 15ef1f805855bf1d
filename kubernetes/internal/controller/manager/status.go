package manager

import (
	"slices"
	"strings"
)

// verdict is what the status of a firewall should have from us.
type verdict struct {
	status   string
	messages []string // our own
}

// judge sums up: wrong if anyone says so, applied when every zone has said so, and nothing while one has not. With no zone known, one
// zone that reports is enough. What zones say that are none any more does not count.
func judge(own, reported, zones []string) verdict {
	v := verdict{messages: own}
	if len(own) > 0 {
		v.status = notApplied
	}
	done := make(map[string]bool)
	for _, m := range reported {
		zone, _, _ := strings.Cut(m, ": ")
		if zone == ownZone || len(zones) > 0 && !slices.Contains(zones, zone) {
			continue
		}
		if strings.Contains(m, notApplied) {
			v.status = notApplied
		}
		done[zone] = true
	}
	if v.status == "" && len(done) > 0 && len(done) >= len(zones) {
		v.status = applied
	}
	return v
}

// ours are the messages that we wrote.
func ours(messages []string) []string {
	return slices.DeleteFunc(slices.Clone(messages), func(m string) bool { return !strings.HasPrefix(m, ownZone+": ") })
}

// sameSet compares lists whose order does not matter.
func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
