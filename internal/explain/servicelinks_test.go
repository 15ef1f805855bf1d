package explain_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
)

// TestFirstBroken checks that a failure of a part of the requests hides no failure of all of them.
func TestFirstBroken(t *testing.T) {
	finding := func(id string, s explain.Severity) explain.Finding {
		return explain.Finding{ID: id, Severity: s, Status: explain.Fail}
	}
	rules, records := finding("SVC12", explain.Error), finding("SVC20", explain.Critical)
	late := finding("TLS07", explain.Error)
	for _, tt := range []struct {
		name string
		all  []explain.Finding
		want explain.ServiceLink
	}{
		{"none", nil, ""},
		{"warnings", []explain.Finding{finding("HTTP04", explain.Warning)}, ""},
		{"order", []explain.Finding{late, rules}, explain.LinkRoute},
		{"critical after an error", []explain.Finding{rules, records, late}, explain.LinkDNS},
		{"two critical", []explain.Finding{records, finding("SVC01", explain.Critical)}, explain.LinkClass},
		{"passed", []explain.Finding{{ID: "SVC01", Severity: explain.Critical, Status: explain.Pass}, records},
			explain.LinkDNS},
	} {
		if got := explain.FirstBroken(tt.all); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
