package forward

import (
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/resolve"
)

// metrics are what is counted. What the cache does is counted there, under the lock that it has anyway.
type metrics struct {
	local    atomic.Uint64 // answered without asking, because of the name or type
	asked    atomic.Uint64 // flights
	joined   atomic.Uint64 // questions that were in flight
	rejected atomic.Uint64 // questions for which there was no room

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

// observe counts a query to an upstream; reply is nil when there was none.
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

// forget drops the series of an upstream that is no longer one.
func (m *metrics) forget(server resolve.Server) {
	is := prometheus.Labels{"upstream": server.String()}
	m.queries.DeletePartialMatch(is)
	m.duration.DeletePartialMatch(is)
}

// collector reads what is counted elsewhere.
type collector struct {
	f                                              *Forwarder
	questions, evicted, entries, size, up, flights *prometheus.Desc
}

// Collectors give the metrics.
func (f *Forwarder) Collectors() []prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("nameplane_forward_"+name, help, labels, nil)
	}
	return []prometheus.Collector{f.metrics.queries, f.metrics.duration, &collector{
		f: f,
		questions: desc("questions_total", "Questions by what became of them: hit and stale come from the cache, local must not "+
			"be asked upstream, miss was asked, joined waited for the same, rejected found too many others.", "result"),
		evicted: desc("cache_evictions_total", "Answers forgotten for want of room."),
		entries: desc("cache_entries", "Answers in the cache."),
		size:    desc("cache_bytes", "Size of the cache."),
		up:      desc("upstream_up", "Whether an upstream replies.", "upstream"),
		flights: desc("in_flight", "Questions that upstreams are being asked."),
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
