package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// metrics are the metrics of the agent.
type metrics struct {
	programmed, pass           prometheus.Histogram
	stages                     *prometheus.HistogramVec
	byLocal                    prometheus.GaugeFunc
	repairs, failures, refused prometheus.Counter
	evicted                    prometheus.Counter
	refusedAddresses           *prometheus.CounterVec
	leases, kept               prometheus.Gauge
	rowsWanted                 *prometheus.GaugeVec
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "nameplane_egress_agent_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "nameplane_egress_agent_" + name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: "nameplane_egress_agent_" + name, Help: help, Buckets: buckets}
	}
	// The mean is 8 ms (docs/bench-egress.md). The default buckets of Prometheus have only two limits below 25 ms.
	fine := []float64{.0005, .001, .002, .003, .005, .0075, .01, .015, .025, .05, .1, .25, .5, 1, 2.5}
	return &metrics{
		programmed: prometheus.NewHistogram(histogram("program_seconds",
			"Time from a new learned address to its confirmation by the switch.", fine)),
		stages: prometheus.NewHistogramVec(histogram("program_stage_seconds",
			"Stages of programming: lease (until none of the addresses is being removed), "+
				"turn (until the previous write is done), write (of the northbound database), "+
				"confirm (by ovn-northd, ovn-controller and the switch).", fine), []string{"stage"}),
		// From 0.5 ms to 4 s: a pass compares all rows, so its time grows with the cluster.
		pass: prometheus.NewHistogram(histogram("pass_seconds",
			"Time to compare all rows with the wanted ones, and to write the difference.",
			prometheus.ExponentialBuckets(.0005, 2, 14))),
		repairs:  counter("repairs_total", "Operations that repaired changes of other programs to our rows."),
		failures: counter("failed_passes_total", "Passes that failed at least partly; they are retried."),
		refused:  counter("refused_transactions_total", "Transactions that the northbound database refused."),
		evicted: counter("evicted_addresses_total",
			"Addresses kept for existing connections that were dropped early, because a name had too many."),
		// The reasons are a fixed list. Addresses or names as labels could grow without bound, by the choice of a pod.
		refusedAddresses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nameplane_egress_agent_refused_addresses_total",
			Help: "Addresses that plugins requested and that must not be opened, by reason."}, []string{"reason"}),
		leases: gauge("leases", "Addresses with a lease."),
		kept:   gauge("kept_addresses", "Former addresses of names that are kept for existing connections."),
		rowsWanted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "nameplane_egress_agent_rows", Help: "Wanted rows of the northbound database, by table.",
		}, []string{"table"}),
	}
}

// collectors returns the metrics for registration. The registry is an argument of Setup, so tests can run several
// agents.
func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.programmed, m.stages, m.byLocal, m.pass, m.repairs, m.failures, m.refused, m.evicted,
		m.refusedAddresses, m.leases, m.kept, m.rowsWanted}
}

// local registers the function that reports whether the local switch confirms.
func (m *metrics) local(is func() bool) {
	m.byLocal = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "nameplane_egress_agent_switch_confirms",
		Help: "1 if the switch of this node confirms writes itself, 0 if hv_cfg of the northbound database does.",
	}, func() float64 {
		if is() {
			return 1
		}
		return 0
	})
}

// stage records a stage of programming that ends now.
func (m *metrics) stage(name string, begun time.Time) {
	m.stages.WithLabelValues(name).Observe(time.Since(begun).Seconds())
}

func (m *metrics) timePass() func() {
	begun := time.Now()
	return func() { m.pass.Observe(time.Since(begun).Seconds()) }
}

func (m *metrics) count(leases, kept, evicted int) {
	m.evicted.Add(float64(evicted))
	m.leases.Set(float64(leases))
	m.kept.Set(float64(kept))
}

// rows reports wanted rows. The counters of repairs and failed passes show whether the database has them.
func (m *metrics) rows(r ovn.Rows) {
	m.rowsWanted.WithLabelValues("Address_Set").Set(float64(len(r.Sets)))
	m.rowsWanted.WithLabelValues("Port_Group").Set(float64(len(r.Groups)))
	m.rowsWanted.WithLabelValues("ACL").Set(float64(len(r.ACLs)))
}
