package dnspeer

import (
	"github.com/prometheus/client_golang/prometheus"
)

// stats holds the counters of a Server.
type stats struct {
	transfers, updates, refusals, notifies, signatures *prometheus.CounterVec

	bytes   prometheus.Counter
	running prometheus.Gauge
}

func newStats() *stats {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_" + name, Help: help}, labels)
	}
	return &stats{
		transfers:  vec("transfers_total", "Transfers requested by other servers, by kind and result.", "kind", "result"),
		updates:    vec("updates_total", "Dynamic updates by the RCODE of their reply.", "rcode"),
		refusals:   vec("updates_refused_total", "Refused dynamic updates by reason.", "reason"),
		notifies:   vec("notify_received_total", "NOTIFY messages received, by result.", "result"),
		signatures: vec("tsig_refused_total", "Signed messages that were refused, by TSIG error.", "error"),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_transfer_octets_total",
			Help: "Bytes of zones sent."}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "nameplane_transfers_running",
			Help: "Running transfers to other servers."}),
	}
}

// Collectors returns the metrics of the server.
func (s *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.stat.transfers, s.stat.updates, s.stat.refusals, s.stat.notifies, s.stat.signatures,
		s.stat.bytes, s.stat.running}
}

func (s *stats) transfer(kind, result string) { s.transfers.WithLabelValues(kind, result).Inc() }
