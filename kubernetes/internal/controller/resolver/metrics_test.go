package resolver

import (
	"flag"
	"slices"
	"testing"

	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

func TestMetricsPage(t *testing.T) {
	r := newReconciler(nil, nil, Options{})
	reference.Compare(t, "../../../../docs/reference/metrics.md", "resolver",
		reference.MetricTable(reference.Metrics(t, slices.Concat(r.tracker.Collectors(), r.collectors())...)), *update)
}
