package transfer

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// notifyStats holds the counters of a Notifier.
type notifyStats struct {
	sent, failed prometheus.Counter
	took         prometheus.Histogram
}

func newNotifyStats() *notifyStats {
	return &notifyStats{
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_notify_sent_total",
			Help: "NOTIFY messages sent to secondaries."}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_notify_failed_total",
			Help: "NOTIFY messages and SOA queries to secondaries that failed."}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "nameplane_secondary_sync_seconds",
			Help: "Time from a commit until a secondary has its serial.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 14)}),
	}
}

// Collectors returns the metrics of the notifier.
func (n *Notifier) Collectors() []prometheus.Collector {
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_zones_out_of_sync",
		Help: "Zones that some secondary does not have yet."}, func() float64 { return float64(n.outOfSync()) })
	return []prometheus.Collector{n.stat.sent, n.stat.failed, n.stat.took, waiting}
}

func (n *Notifier) outOfSync() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, z := range n.zones {
		if slices.ContainsFunc(z.peers, func(p peer) bool { return !p.done && !p.check }) {
			count++
		}
	}
	return count
}

// refreshStats holds the counters of a Refresher.
type refreshStats struct {
	done   *prometheus.CounterVec
	failed prometheus.Counter
}

func newRefreshStats() *refreshStats {
	return &refreshStats{
		done: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_secondary_transfers_total",
			Help: "Transfers of SECONDARY zones from their masters."}, []string{"kind"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_secondary_refresh_failed_total",
			Help: "Refreshes of SECONDARY zones for which every master failed."}),
	}
}

// Collectors returns the metrics of the refresher.
func (r *Refresher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{r.stat.done, r.stat.failed}
}
