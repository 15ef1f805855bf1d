package hostname

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

// TestBounds checks that a status stays small, however much a server sends.
func TestBounds(t *testing.T) {
	long := strings.Repeat("ü\x00", 5000)
	f := &explain.Facts{Service: &explain.Service{Host: long}}
	for i := range 100 {
		f.Service.Targets.Addrs = append(f.Service.Targets.Addrs, netip.AddrFrom4([4]byte{93, 184, 0, byte(i)}))
	}
	r := &report.Report{Verdict: report.NotWorking, Summary: long}
	for range 100 {
		r.Findings = append(r.Findings, explain.Finding{ID: "SVC20", Status: explain.Fail, Severity: explain.Critical,
			Words: long, Fix: long, Subject: long, Actor: explain.Actor(long)})
	}
	s := statusOf(f, r, safeat.Report{})
	text, err := json.Marshal(s)
	if err != nil || len(text) > 128<<10 || len(s.Findings) != v1alpha1.MaxFindings ||
		len(s.Targets) != v1alpha1.MaxTargets {
		t.Errorf("%d bytes, %d findings, %d targets (%v)", len(text), len(s.Findings), len(s.Targets), err)
	}
	for _, x := range s.Findings {
		if len(x.Words) > v1alpha1.MaxText || len(x.Fix) > v1alpha1.MaxText || len(x.Subject) > 512 || len(x.Actor) > 64 {
			t.Fatalf("%+v", x)
		}
	}
	for _, c := range s.Conditions {
		if len(c.Message) > v1alpha1.MaxText {
			t.Errorf("a message of %d bytes", len(c.Message))
		}
	}
	if strings.ContainsRune(string(text), 0) || len(s.Hostname) > 255 || len(s.Summary) > v1alpha1.MaxText {
		t.Error("the texts are not clean")
	}
}
