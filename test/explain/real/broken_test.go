package real_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
)

// TestBroken checks that each of the nine faults of bad.com is found at real servers. docs/reference/peers.md lists
// which of them other tools find.
func TestBroken(t *testing.T) {
	internet(t)
	scan, www := scanReport(t, "scan", "bad.com"), scanReport(t, "analyze", "www.bad.com", "A")
	for _, p := range []struct {
		problem string
		in      *report.Report
		id      string
		words   string // part of the finding
	}{
		{"a server that refuses", scan, "DEL04", "lame.bad.com"},
		{"other nameservers at the parent than at the child", scan, "DEL03", "ns3.bad.com"},
		{"glue that differs", scan, "DEL09", "hands out 185.159.196.21 for ns1.bad.com"},
		{"and glue for a name that the zone denies, which the others find", scan, "DEL09",
			"hands out an address for lame.bad.com"},
		{"different versions", scan, "SOA03", "4"},
		{"an @ in the mailbox", scan, "SOA06", "@"},
		{"retry above refresh", scan, "SOA05", "retry (2 h 1 min) is not below refresh (2 h)"},
		{"expire of an hour", scan, "SOA05", "expire (1 h)"},
		{"new names are not seen for a day", scan, "SOA01", "1 day"},
		{"www leads nowhere", www, "NAM06", "nowhere.other.net"},
	} {
		i := slices.IndexFunc(p.in.Findings, func(f explain.Finding) bool {
			return f.ID == p.id && f.Status == explain.Fail && strings.Contains(f.Subject+" "+f.Words, p.words)
		})
		if i < 0 {
			t.Errorf("%s: no %s with %q in %s", p.problem, p.id, p.words, texts(p.in))
			continue
		}
		f := p.in.Findings[i]
		t.Logf("%s: %s %s: %s %s", p.problem, f.ID, f.Severity, f.Words, f.Fix)
		if f.Fix == "" {
			t.Errorf("%s: %s does not say what to do", p.problem, f.ID)
		}
	}
	if www.Verdict != report.NotWorking {
		t.Errorf("www: %s", www.Summary)
	}
}

// texts returns the findings of a report that did not pass.
func texts(r *report.Report) string {
	var b strings.Builder
	b.WriteString(r.Summary)
	for _, f := range r.Findings {
		if f.Status != explain.Pass {
			b.WriteString("\n\t" + f.ID + " " + string(f.Status) + " " + string(f.Severity) + ": " + f.Words)
		}
	}
	return b.String()
}
