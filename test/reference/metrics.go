package reference

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric describes a metric.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// MetricTable returns the table of metrics, sorted by name.
func MetricTable(metrics map[string]Metric) string {
	var rows [][]string
	for _, m := range metrics {
		labels := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			labels[i] = Code(l)
		}
		rows = append(rows, []string{Code(m.Name), m.Type, strings.Join(labels, ", "), Text(m.Help)})
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return Table([]string{"metric", "type", "labels", "meaning"}, rows)
}

// Metrics returns the metrics of collectors by name. Metrics with a label have no values at first, so it takes them
// from the descriptions, and their type from the type of the collector.
func Metrics(t *testing.T, collectors ...prometheus.Collector) map[string]Metric {
	t.Helper()
	out := map[string]Metric{}
	reg := prometheus.NewRegistry()
	for _, c := range collectors {
		describe(t, c, out)
		if err := reg.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		m := Metric{Name: f.GetName(), Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp()}
		for _, l := range f.GetMetric()[0].GetLabel() {
			m.Labels = append(m.Labels, l.GetName())
		}
		out[m.Name] = m
	}
	return out
}

// description matches the text of a prometheus.Desc, which has no methods to read it.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*)", unit: "[^"]*", constLabels: \{(.*)\}, ` +
	`variableLabels: \{(.*)\}\}$`)

// describe adds what a collector says about its metrics.
func describe(t *testing.T, c prometheus.Collector, to map[string]Metric) {
	t.Helper()
	found := make(chan *prometheus.Desc, 100) // more than any collector describes
	c.Describe(found)
	close(found)
	for d := range found {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("the pattern does not match %s", d)
		}
		kind := "gauge"
		switch c.(type) {
		case *prometheus.CounterVec:
			kind = "counter"
		case *prometheus.HistogramVec:
			kind = "histogram"
		}
		metric := Metric{Name: m[1], Type: kind, Help: strings.ReplaceAll(m[2], `\"`, `"`)}
		for part := range strings.SplitSeq(m[3], ",") {
			if name, _, ok := strings.Cut(part, "="); ok {
				metric.Labels = append(metric.Labels, name)
			}
		}
		if m[4] != "" {
			metric.Labels = append(metric.Labels, strings.Split(m[4], ",")...)
		}
		slices.Sort(metric.Labels)
		to[metric.Name] = metric
	}
}
