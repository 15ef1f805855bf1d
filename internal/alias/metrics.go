package alias

import "github.com/prometheus/client_golang/prometheus"

// metrics count what the service does.
type metrics struct {
	commits prometheus.Counter
	turned  *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		commits: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_alias_commits_total",
			Help: "Commits that were begun because of what lookups brought."}),
		turned: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_alias_turned_total",
			Help: "ALIAS record sets that came into a state."}, []string{"status"}),
	}
}

// Collectors are the metrics of the service.
func (s *Service) Collectors() []prometheus.Collector {
	out := []prometheus.Collector{s.metrics.commits, s.metrics.turned,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_alias_targets", Help: "Outside targets of ALIAS record sets."},
			func() float64 {
				s.mu.Lock()
				defer s.mu.Unlock()
				return float64(len(s.followed))
			})}
	for _, status := range []Status{Pending, Active, Stale, Error} {
		out = append(out, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_alias_records",
			Help: "ALIAS record sets, by their state.", ConstLabels: prometheus.Labels{"status": string(status)}},
			func() float64 { return float64(s.count(status)) }))
	}
	return out
}

func (s *Service) count(status Status) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.index.entries {
		if s.shownLocked(e).Status == status {
			n++
		}
	}
	return n
}
