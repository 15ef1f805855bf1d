package dnsnameresolver

import (
	"errors"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
)

// The metrics are package variables, as in every CoreDNS plugin: the `prometheus` plugin serves the default registry,
// and a reload of the Corefile must not register them again.
var (
	holdSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: "dnsnameresolver", Name: "hold_duration_seconds",
		Help:    "How long replies were held, by how that ended: programmed, timeout, broken, refused.",
		Buckets: plugin.TimeBuckets,
	}, []string{"result"})
	writes = promauto.NewCounterVec(prometheus.CounterOpts(opts("status_writes_total",
		"Writes of the status of a DNSNameResolver, by result: ok, lost (a conflicting write was first), error. All but "+
			"ok are retried.")), []string{"result"})
	refusedAddresses = promauto.NewCounterVec(prometheus.CounterOpts(opts("refused_addresses_total",
		"Addresses in answers that were not learned, by reason.")), []string{"reason"})
	leasedOnly = promauto.NewCounter(prometheus.CounterOpts(opts("names_without_room_total",
		"Answers whose addresses did not fit into the status, so that they are allowed by leases only.")))
	recalled = promauto.NewCounter(prometheus.CounterOpts(opts("recalled_questions_total",
		"Queries that the plugin repeated because a rule for their name appeared shortly after them.")))
	objectCount = promauto.NewGauge(prometheus.GaugeOpts(opts("objects",
		"Number of DNSNameResolvers that names are matched against.")))
	agentCount = promauto.NewGaugeVec(prometheus.GaugeOpts(opts("agents",
		"Agents, by state: connected, disconnected, and broken (replies do not wait for them).")), []string{"state"})
	leaseCount = promauto.NewGauge(prometheus.GaugeOpts(opts("leases",
		"Leases of addresses that agents have acknowledged.")))
)

func opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: plugin.Namespace, Subsystem: "dnsnameresolver", Name: name, Help: help}
}

// observeHold records a hold that began at the given time and ended now.
func observeHold(began time.Time, err error) {
	result := "refused"
	switch {
	case err == nil:
		result = "programmed"
	case errors.Is(err, hold.ErrTimeout):
		result = "timeout"
	case errors.Is(err, hold.ErrBroken):
		result = "broken"
	}
	holdSeconds.WithLabelValues(result).Observe(time.Since(began).Seconds())
}

// countAgents sets the gauges about agents.
func countAgents(agents []hold.AgentState) {
	var connected, broken, leases int
	for _, a := range agents {
		if a.Connected {
			connected++
		}
		if a.Broken {
			broken++
		}
		leases += a.Leases
	}
	agentCount.WithLabelValues("connected").Set(float64(connected))
	agentCount.WithLabelValues("disconnected").Set(float64(len(agents) - connected))
	agentCount.WithLabelValues("broken").Set(float64(broken))
	leaseCount.Set(float64(leases))
}
