package dnspeer

import (
	"github.com/prometheus/client_golang/prometheus"
)

// stats count what peers wanted, and what they got.
type stats struct {
	transfers, updates, notifies, signatures *prometheus.CounterVec
	octets                                   prometheus.Counter
	running                                  prometheus.Gauge
}

func newStats() *stats {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_" + name, Help: help}, labels)
	}
	return &stats{
		transfers:  vec("transfers_total", "Zones asked for by other servers, by how they were sent and what came of it.", "kind", "result"),
		updates:    vec("updates_total", "Dynamic updates by the RCODE of their reply.", "rcode"),
		notifies:   vec("notify_received_total", "NOTIFY messages received, by what came of them.", "result"),
		signatures: vec("tsig_refused_total", "Signed messages that were not believed, by their error.", "error"),
		octets:     prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_transfer_octets_total", Help: "Octets of zones sent."}),
		running:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "nameplane_transfers_running", Help: "Transfers under way to other servers."}),
	}
}

// Collectors are the server's metrics.
func (s *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.stat.transfers, s.stat.updates, s.stat.notifies, s.stat.signatures, s.stat.octets, s.stat.running}
}

func (s *stats) transfer(kind, result string) { s.transfers.WithLabelValues(kind, result).Inc() }
