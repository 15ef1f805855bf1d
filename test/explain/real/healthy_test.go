package real_test

import (
	"slices"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
)

// severe returns the failed findings of the given severities.
func severe(r *report.Report, of ...explain.Severity) (out []explain.Finding) {
	for _, f := range r.Findings {
		if f.Status == explain.Fail && slices.Contains(of, f.Severity) {
			out = append(out, f)
		}
	}
	return out
}

func TestHealthy(t *testing.T) {
	internet(t)
	for _, args := range [][]string{{"scan", "good.com"}, {"analyze", "www.good.com"}, {"analyze", "shop.good.com", "A"},
		{"compare", "www.good.com"}, {"compare", "shop.good.com", "A"}} {
		r := scanReport(t, args...)
		t.Logf("%v: %s; %d queries in %v", args, r.Summary, r.Queries, r.Took)
		if r.Verdict != report.Working {
			t.Errorf("%v: %s", args, r.Summary)
		}
		for _, f := range severe(r, explain.Critical, explain.Error, explain.Warning) {
			t.Errorf("%v: %s %s: %s", args, f.ID, f.Severity, f.Words)
		}
	}
}
