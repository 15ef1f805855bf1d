package httpapi

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts requests.
type Metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	denied    *prometheus.CounterVec
	throttled *prometheus.CounterVec
}

// NewMetrics returns new Metrics. Register their Collectors with a registry.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_http_requests_total",
			Help: "HTTP requests by listener, route, method and status."}, []string{"listener", "route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "nameplane_http_request_duration_seconds",
			Help:    "Time from the head of a request until its handler ended.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 4, 9)}, []string{"listener", "route"}), // 250 µs up to 16 s
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_http_denied_tokens_total",
			Help: "Requests with a token, session or JWT that is not valid."}, []string{"listener"}),
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_http_throttled_tokens_total",
			Help: "Requests among nameplane_http_denied_tokens_total that got 429 because their address sent too many."},
			[]string{"listener"}),
	}
}

// Collectors returns the collectors of the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.duration, m.denied, m.throttled}
}

func (m *Metrics) observe(listener string, x *exchange, took time.Duration) {
	route := routeOf(x.req)
	m.requests.WithLabelValues(listener, route, methodLabel(x.req.Method), strconv.Itoa(x.status)).Inc()
	m.duration.WithLabelValues(listener, route).Observe(took.Seconds())
}

// routeOf returns the pattern of the mux, never the path: a client could create any number of time series with paths.
func routeOf(r *http.Request) string {
	p := r.Pattern
	if _, path, ok := strings.Cut(p, " "); ok {
		p = path
	}
	return cmp.Or(p, "none")
}

func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return m
	}
	return "other"
}
