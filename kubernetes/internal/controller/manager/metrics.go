package manager

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of the manager.
type metrics struct {
	writes     *prometheus.CounterVec
	collisions prometheus.Counter
	badRules   *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_egress_manager_writes_total",
			Help: "Writes to the API server, by the resource, the verb, and whether they succeeded."}, []string{"resource",
			"verb", "result"}),
		collisions: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_egress_name_collisions_total",
			Help: "Number of times that another DNS name already used the object name of a DNS name."}),
		badRules: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "nameplane_egress_invalid_rules",
			Help: "Rules of EgressFirewalls that are skipped because they are invalid."}, []string{"namespace"}),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.writes, m.collisions, m.badRules}
}

// wrote counts a write and returns err.
func (m *metrics) wrote(resource, verb string, err error) error {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(resource, verb, result).Inc()
	return err
}
