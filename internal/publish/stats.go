package publish

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stats counts commits for the metrics.
type stats struct {
	latency prometheus.Histogram
	edits   atomic.Uint64
	failed  atomic.Uint64
}

func newStats() *stats {
	return &stats{latency: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "nameplane_commit_duration_seconds",
		Help:    "Time from the start of a group commit until its edits were durable and served.",
		Buckets: prometheus.ExponentialBuckets(0.000125, 2, 14), // from one fast fdatasync to one second
	})}
}

// Collectors returns the metrics of the publisher.
func (p *Publisher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		p.stats.latency,
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "nameplane_edits_total",
			Help: "Edits that went through a commit."}, func() float64 { return float64(p.stats.edits.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "nameplane_commit_failures_total",
			Help: "Group commits that the store refused."}, func() float64 { return float64(p.stats.failed.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_snapshot_age_seconds",
			Help: "Time since the served data last changed."}, func() float64 {
			return time.Since(time.Unix(0, p.swapped.Load())).Seconds()
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_zones",
			Help: "Zones served."}, func() float64 { return float64(p.Snapshot().Len()) }),
	}
}
