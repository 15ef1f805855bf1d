package forward

import (
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/resolve"
)

// metrics holds the counters, except those of the cache, which counts under its own lock.
type metrics struct {
	local    atomic.Uint64 // answered locally, because of the name or type
	asked    atomic.Uint64 // flights started
	joined   atomic.Uint64 // questions that joined a flight
	rejected atomic.Uint64 // questions rejected because too many were in flight

	queries  *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nameplane_forward_upstream_queries_total",
			Help: "Queries to upstreams by the RCODE of the reply; none when there was no reply.",
		}, []string{"upstream", "rcode"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "nameplane_forward_upstream_duration_seconds",
			Help:    "Time until an upstream replied.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"upstream"}),
	}
}

// observe counts a query to an upstream; reply is nil if there was none.
func (m *metrics) observe(server resolve.Server, reply *dns.Msg, d time.Duration) {
	name := server.String()
	if reply == nil {
		m.queries.WithLabelValues(name, "none").Inc()
		return
	}
	rcode, ok := dns.RcodeToString[reply.Rcode]
	if !ok {
		rcode = "other"
	}
	m.queries.WithLabelValues(name, rcode).Inc()
	m.duration.WithLabelValues(name).Observe(d.Seconds())
}

// forget deletes the series of a removed upstream.
func (m *metrics) forget(server resolve.Server) {
	is := prometheus.Labels{"upstream": server.String()}
	m.queries.DeletePartialMatch(is)
	m.duration.DeletePartialMatch(is)
}

// collector exports the counters of the cache and the state.
type collector struct {
	f                                              *Forwarder
	questions, evicted, entries, size, up, flights *prometheus.Desc
}

// Collectors returns the metrics of the forwarder.
func (f *Forwarder) Collectors() []prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("nameplane_forward_"+name, help, labels, nil)
	}
	return []prometheus.Collector{f.metrics.queries, f.metrics.duration, &collector{
		f: f,
		questions: desc("questions_total", "Questions by result: hit and stale are from the cache, local must not "+
			"be forwarded, miss was forwarded, joined waited for the same question, rejected found too many in flight.",
			"result"),
		evicted: desc("cache_evictions_total", "Answers evicted from the cache."),
		entries: desc("cache_entries", "Answers in the cache."),
		size:    desc("cache_bytes", "Size of the cache."),
		up:      desc("upstream_up", "Whether an upstream replies.", "upstream"),
		flights: desc("in_flight", "Questions in flight to upstreams."),
	}}
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	n, m := c.f.cache.count(), c.f.metrics
	for _, r := range []struct {
		result string
		n      uint64
	}{{"hit", n.hits}, {"stale", n.stale}, {"local", m.local.Load()}, {"miss", m.asked.Load()},
		{"joined", m.joined.Load()}, {"rejected", m.rejected.Load()}} {
		send(c.questions, prometheus.CounterValue, float64(r.n), r.result)
	}
	send(c.evicted, prometheus.CounterValue, float64(n.evicted))
	send(c.entries, prometheus.GaugeValue, float64(n.entries))
	send(c.size, prometheus.GaugeValue, float64(n.size))
	c.f.mu.Lock()
	flights := len(c.f.flights)
	c.f.mu.Unlock()
	send(c.flights, prometheus.GaugeValue, float64(flights))
	for _, u := range c.f.state.Load().upstreams {
		up := 1.0
		if u.down.Load() {
			up = 0
		}
		send(c.up, prometheus.GaugeValue, up, u.server.String())
	}
}
