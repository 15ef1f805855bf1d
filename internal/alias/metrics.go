package alias

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/follow"
)

// metrics holds the counters of a Service.
type metrics struct {
	commits     prometheus.Counter
	transitions *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		commits: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_alias_commits_total",
			Help: "Commits begun because of lookup results."}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_alias_turned_total",
			Help: "Transitions of ALIAS record sets into a state."}, []string{"status"}),
	}
}

// Collectors returns the metrics of the service.
func (s *Service) Collectors() []prometheus.Collector {
	out := []prometheus.Collector{s.metrics.commits, s.metrics.transitions, failures{s},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_alias_targets",
			Help: "Outside targets of ALIAS record sets."},
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

// failures counts the aliases that are STALE or ERROR by cause. The set of causes is small and fixed.
type failures struct{ s *Service }

var failingDesc = prometheus.NewDesc("nameplane_alias_failing",
	"ALIAS record sets that are STALE or ERROR, by the cause.", []string{"cause"}, nil)

// Describe implements prometheus.Collector.
func (f failures) Describe(out chan<- *prometheus.Desc) { out <- failingDesc }

// Collect implements prometheus.Collector.
func (f failures) Collect(out chan<- prometheus.Metric) {
	for cause, n := range f.s.causes() {
		out <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, float64(n), string(cause))
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
