package dnsnameresolver

import (
	"flag"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

func TestMetricsPage(t *testing.T) {
	all := []prometheus.Collector{holdSeconds, writes, refusedAddresses, leasedOnly, recalled, objectCount, agentCount,
		leaseCount}
	metrics := reference.Metrics(t, all...)
	reference.Compare(t, "../../../docs/reference/metrics.md", "plugin", reference.MetricTable(metrics), *update)
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); len(name) > len(prefix) && name[:len(prefix)] == prefix && metrics[name].Name == "" {
			t.Errorf("the list in this test lacks %s", name)
		}
	}
}

// prefix begins the names of the plugin's metrics.
const prefix = "coredns_dnsnameresolver_"
