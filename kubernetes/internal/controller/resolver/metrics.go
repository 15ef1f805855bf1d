package resolver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counters are the counters of the controller.
type counters struct{ removed, lost prometheus.Counter }

func newCounters() counters {
	return counters{
		removed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nameplane_egress_resolver_removed_addresses_total",
			Help: "Addresses removed from DNSNameResolvers because they were past their TTL and the grace after it.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nameplane_egress_resolver_lost_races_total",
			Help: "Removals that were given up because the status had changed meanwhile; they are retried.",
		}),
	}
}

func (r *reconciler) collectors() []prometheus.Collector {
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	return []prometheus.Collector{
		r.count.removed, r.count.lost,
		gauge("nameplane_egress_resolver_objects", "Number of DNSNameResolvers whose names are kept fresh.",
			func() float64 { return float64(r.names.len()) }),
		gauge("nameplane_egress_resolver_pods", "Number of CoreDNS pods that can be queried.",
			func() float64 { return float64(r.pods.len()) }),
		gauge("nameplane_egress_resolver_pods_up", "Number of CoreDNS pods that answer.", func() float64 {
			n, _ := r.pods.up(time.Now())
			return float64(n)
		}),
	}
}
