package follow

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds the counters of a Tracker.
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
			Help: "Lookups of the addresses of a name, by record type and result."}, []string{"type", "cause"}),
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_follow_queries_total",
			Help: "Queries to resolvers, and whether they got a reply."}, []string{"server", "replied"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "nameplane_follow_query_duration_seconds",
			Help:    "Time until a resolver replied.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12)}), // from a nearby cache to the usual timeout
		changes: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_follow_changes_total",
			Help: "Changes reported to followers."}),
		held: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_follow_queries_held_total",
			Help: "Queries delayed by the rate limit."}),
	}
}

func (m *metrics) countLookup(f Family, o outcome) {
	cause := o.answer
	if o.err != nil {
		cause = o.err.Cause
	}
	m.lookups.WithLabelValues(f.String(), string(cause)).Inc()
}

func (m *metrics) countQuery(u *upstream, d time.Duration, replied bool) {
	word := "no"
	if replied {
		word = "yes"
		m.latency.Observe(d.Seconds())
	}
	m.queries.WithLabelValues(u.label, word).Inc()
}

// Collectors returns the metrics of the tracker.
func (t *Tracker) Collectors() []prometheus.Collector {
	m := t.metrics
	out := []prometheus.Collector{m.lookups, m.queries, m.latency, m.changes, m.held,
		t.gauge("nameplane_follow_names", "Followed names.", func() int { return len(t.names) }),
		t.gauge("nameplane_follow_followers", "Followers of names, each family counted.", func() int { return t.followers }),
		t.gauge("nameplane_follow_failing", "Families of names whose last attempt failed.", t.failingLocked),
		t.gauge("nameplane_follow_overdue", "Families of names that are due and wait in a queue.", t.overdueLocked),
		t.gauge("nameplane_follow_longest_chain", "Number of CNAMEs in the longest chain of a followed name.",
			t.longestLocked),
		t.gauge("nameplane_follow_oldest_success_timestamp_seconds",
			"Oldest time of the last success among the names that had addresses; 0: none.", t.oldestLocked),
		t.gauge("nameplane_follow_next_attempt_timestamp_seconds", "Time of the next query; 0: none.", t.soonestLocked),
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

// gauge returns a metric whose value is read with t.mu held.
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

// longestLocked returns the largest number of CNAMEs in a last answer, or in the part that a failed lookup followed.
func (t *Tracker) longestLocked() (most int) {
	for e := range t.entriesLocked {
		most = max(most, len(e.state.AnswerChain))
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
	for _, q := range []queue{t.queue, t.failing} {
		if len(q) > 0 && (soonest.IsZero() || q[0].due.Before(soonest)) {
			soonest = q[0].due
		}
	}
	return unix(soonest)
}

// unix returns a time as metrics have it; 0: none.
func unix(at time.Time) int {
	if at.IsZero() {
		return 0
	}
	return int(at.Unix())
}

func (t *Tracker) overdueLocked() int {
	n, now := 0, time.Now()
	for _, q := range []queue{t.queue, t.failing} {
		for _, e := range q {
			if e.due.Before(now) {
				n++
			}
		}
	}
	return n
}
