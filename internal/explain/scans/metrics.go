package scans

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	scans           *prometheus.CounterVec
	took, queries   *prometheus.HistogramVec
	shared, refused prometheus.Counter
}

func newMetrics() metrics {
	const prefix = "nameplane_explain_"
	return metrics{
		scans: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "scans_total",
			Help: "Scans that ended, by kind and verdict."}, []string{"kind", "verdict"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "scan_seconds",
			Help: "How long scans took.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 12)}, []string{"kind"}),
		queries: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "scan_queries",
			Help: "How many queries scans sent.", Buckets: prometheus.LinearBuckets(20, 20, 15)}, []string{"kind"}),
		shared: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "scans_shared_total",
			Help: "Requests that were given the scan of an earlier one."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "scans_refused_total",
			Help: "Requests beyond a limit."}),
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.scans, m.took, m.queries, m.shared, m.refused}
}

func (m metrics) done(x Scan, took time.Duration) {
	kind, verdict := string(x.Request.Kind), string(x.Verdict)
	if x.State == Failed {
		verdict = "failed"
	}
	m.scans.WithLabelValues(kind, verdict).Inc()
	m.took.WithLabelValues(kind).Observe(took.Seconds())
	m.queries.WithLabelValues(kind).Observe(float64(x.Queries))
}
