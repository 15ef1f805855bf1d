package alias

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/follow"
)

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
	out := []prometheus.Collector{s.metrics.commits, s.metrics.turned, failures{s},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_alias_targets", Help: "Outside targets of ALIAS record sets."},
			func() float64 {
				s.mu.Lock()
				defer s.mu.Unlock()
				return float64(len(s.followed))
			})}
	for _, status := range []Status{statusPending, statusActive, statusStale, statusError} {
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
		if e.rec.Status == status {
			n++
		}
	}
	return n
}

// failures counts the aliases that are not well by their causes, which are few words.
type failures struct{ s *Service }

var failing = prometheus.NewDesc("nameplane_alias_failing", "ALIAS record sets that are STALE or ERROR, by the cause.", []string{"cause"}, nil)

// Describe implements prometheus.Collector.
func (f failures) Describe(out chan<- *prometheus.Desc) { out <- failing }

// Collect implements prometheus.Collector.
func (f failures) Collect(out chan<- prometheus.Metric) {
	for cause, n := range f.s.causes() {
		out <- prometheus.MustNewConstMetric(failing, prometheus.GaugeValue, float64(n), string(cause))
	}
}

func (s *Service) causes() map[follow.Cause]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[follow.Cause]int{}
	for _, e := range s.index.entries {
		if e.rec.Status == statusStale || e.rec.Status == statusError {
			out[e.rec.Cause]++
		}
	}
	return out
}
