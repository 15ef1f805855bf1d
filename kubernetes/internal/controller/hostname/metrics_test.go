package hostname

import (
	"flag"
	"testing"

	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

func TestMetricsPage(t *testing.T) {
	reference.Compare(t, "../../../../docs/reference/metrics.md", "hostname",
		reference.MetricTable(reference.Metrics(t, newMetrics().collectors()...)), *update)
}
