package follow

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what the tracker does.
type metrics struct {
	lookups *prometheus.CounterVec
	queries *prometheus.CounterVec
	latency prometheus.Histogram
	changes prometheus.Counter
	held    prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_follow_lookups_total",
			Help: "Attempts to learn the addresses of a name, by record type and how they ended."}, []string{"type", "cause"}),
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_follow_queries_total",
			Help: "Queries to resolvers, and whether a reply came."}, []string{"server", "replied"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "nameplane_follow_query_duration_seconds",
			Help:    "Time until a resolver replied.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12)}), // a cache nearby up to the usual timeout
		changes: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_follow_changes_total",
			Help: "Changes that were told."}),
		held: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_follow_queries_held_total",
			Help: "Queries that had to wait because of the limit per second."}),
	}
}

func (m *metrics) looked(f Family, o outcome) {
	cause := o.answer
	if o.err != nil {
		cause = o.err.Cause
	}
	m.lookups.WithLabelValues(f.String(), string(cause)).Inc()
}

func (m *metrics) asked(u *upstream, d time.Duration, replied bool) {
	word := "no"
	if replied {
		word = "yes"
		m.latency.Observe(d.Seconds())
	}
	m.queries.WithLabelValues(u.label, word).Inc()
}

// Collectors are the metrics of the tracker.
func (t *Tracker) Collectors() []prometheus.Collector {
	m := t.metrics
	out := []prometheus.Collector{m.lookups, m.queries, m.latency, m.changes, m.held,
		t.gauge("nameplane_follow_names", "Names that are followed.", func() int { return len(t.names) }),
		t.gauge("nameplane_follow_followers", "Followers of names, each family counted.", func() int { return t.followers }),
		t.gauge("nameplane_follow_failing", "Families of names whose last attempt failed.", t.failingLocked),
		t.gauge("nameplane_follow_overdue", "Families of names that are due and wait for their turn.", t.overdueLocked),
		t.gauge("nameplane_follow_longest_chain", "CNAMEs behind the followed name that has the most of them.", t.longestLocked),
		t.gauge("nameplane_follow_oldest_success_timestamp_seconds",
			"Of the names that had addresses, when the one that has had no answer for the longest was last answered; 0 without any.", t.oldestLocked),
		t.gauge("nameplane_follow_next_attempt_timestamp_seconds", "When the next name is asked for; 0 without any.", t.soonestLocked),
	}
	for _, u := range t.upstreams {
		out = append(out, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_follow_resolver_up",
			Help: "Whether a resolver is in use.", ConstLabels: prometheus.Labels{"server": u.label}}, func() float64 {
			if u.up() {
				return 1
			}
			return 0
		}))
	}
	return out
}

// gauge is a metric that is read with the lock held.
func (t *Tracker) gauge(name, help string, value func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return float64(value())
	})
}

// entriesLocked yields the entries of all names.
func (t *Tracker) entriesLocked(yield func(*entry) bool) {
	for _, node := range t.names {
		for _, e := range node.entries {
			if e != nil && !yield(e) {
				return
			}
		}
	}
}

func (t *Tracker) failingLocked() (n int) {
	for e := range t.entriesLocked {
		if e.state.Err != nil {
			n++
		}
	}
	return n
}

// longestLocked counts the CNAMEs of the last answer, or as far as a lookup came that failed.
func (t *Tracker) longestLocked() (most int) {
	for e := range t.entriesLocked {
		most = max(most, len(e.state.Way))
		if e.state.Err != nil {
			most = max(most, len(e.state.Err.Chain))
		}
	}
	return most
}

func (t *Tracker) oldestLocked() int {
	var oldest time.Time
	for e := range t.entriesLocked {
		if e.state.LastSuccess.IsZero() || e.state.Answer == NoData {
			continue
		}
		if last := e.state.LastSuccess; oldest.IsZero() || last.Before(oldest) {
			oldest = last
		}
	}
	return unix(oldest)
}

func (t *Tracker) soonestLocked() int {
	var soonest time.Time
	for _, q := range []queue{t.queue, t.doubtful} {
		if len(q) > 0 && (soonest.IsZero() || q[0].due.Before(soonest)) {
			soonest = q[0].due
		}
	}
	return unix(soonest)
}

// unix is a moment as metrics have it; 0: none.
func unix(at time.Time) int {
	if at.IsZero() {
		return 0
	}
	return int(at.Unix())
}

func (t *Tracker) overdueLocked() int {
	n, now := 0, time.Now()
	for _, q := range []queue{t.queue, t.doubtful} {
		for _, e := range q {
			if e.due.Before(now) {
				n++
			}
		}
	}
	return n
}
