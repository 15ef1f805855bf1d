package agent

import (
	"flag"
	"testing"

	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

func TestMetricsPage(t *testing.T) {
	m := newMetrics()
	m.local(func() bool { return true })
	reference.Compare(t, "../../../../docs/reference/metrics.md", "agent",
		reference.MetricTable(reference.Metrics(t, m.collectors()...)), *update)
}
