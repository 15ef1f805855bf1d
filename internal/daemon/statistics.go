package daemon

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// statistics returns a function that returns counters of the server by the names that PowerDNS has for them. It reads
// the metrics, so that both APIs always show the same numbers.
func statistics(metrics prometheus.Gatherer, started time.Time) func() map[string]uint64 {
	return func() map[string]uint64 {
		out := map[string]uint64{"uptime": uint64(time.Since(started).Seconds())}
		for _, transport := range []string{"udp", "tcp"} { // names exist before their first event
			for _, name := range []string{"-queries", "4-queries", "6-queries", "-answers"} {
				out[transport+name] = 0
			}
		}
		out["servfail-packets"] = 0
		families, _ := metrics.Gather() // on an error it returns the metrics that it could read
		for _, family := range families {
			for _, m := range family.GetMetric() {
				labels, n := map[string]string{}, uint64(m.GetCounter().GetValue())
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				transport := labels["transport"]
				switch family.GetName() {
				case "nameplane_dns_queries_total":
					out[transport+"-queries"] += n
					out[transport+strings.TrimPrefix(labels["family"], "ipv")+"-queries"] += n
				case "nameplane_dns_responses_total":
					out[transport+"-answers"] += n
					if labels["rcode"] == "SERVFAIL" {
						out["servfail-packets"] += n
					}
				}
			}
		}
		return out
	}
}
