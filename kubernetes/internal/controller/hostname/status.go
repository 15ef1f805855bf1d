package hostname

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

type status = v1alpha1.HostnameReportStatus

// The reasons of conditions to which no check belongs.
const (
	reasonWorking    = "Working"
	reasonNotJudged  = "NotJudged"  // a link before it is broken
	reasonNotChecked = "NotChecked" // no check applies
	reasonChecked    = "Checked"
	reasonNoVerdict  = "NoVerdict"  // the last check could not decide
	reasonOldAnswers = "OldAnswers" // caches may hold an older answer
)

// links are the links of each condition.
var links = []struct {
	condition string
	links     []explain.ServiceLink
}{
	{v1alpha1.RouteReady, []explain.ServiceLink{explain.LinkClass, explain.LinkGateway, explain.LinkListener,
		explain.LinkRoute}},
	{v1alpha1.OwnershipVerified, []explain.ServiceLink{explain.LinkOwnership}},
	{v1alpha1.DNSReady, []explain.ServiceLink{explain.LinkDNS}},
	{v1alpha1.TLSReady, []explain.ServiceLink{explain.LinkCertificate}},
	{v1alpha1.BackendReady, []explain.ServiceLink{explain.LinkBackend}},
}

// statusOf returns the status for the facts of a check and their report. safe is when everyone sees the records.
func statusOf(f *explain.Facts, r *report.Report, safe safeat.Report) status {
	broken := explain.FirstBroken(r.Findings)
	s := status{Hostname: clean(f.Service.Host, 255), Verdict: string(r.Verdict),
		Summary:     clean(r.Summary, v1alpha1.MaxText),
		FirstBroken: string(broken), LastChecked: &metav1.Time{Time: f.At}, Targets: targetsOf(f.Service.Targets)}
	for _, x := range r.Findings {
		if x.Status != explain.Pass && len(s.Findings) < v1alpha1.MaxFindings && shown(x) {
			s.Findings = append(s.Findings, findingOf(x))
		}
	}
	for _, l := range links {
		s.Conditions = append(s.Conditions, conditionOf(l.condition, l.links, r.Findings, broken))
	}
	if !slices.ContainsFunc(f.Service.Connections, func(c explain.Connection) bool { return c.TLS != nil }) {
		notShaken(s.Conditions)
	}
	s.Conditions = append(s.Conditions, safeCondition(&s, f.At, safe))
	s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.Current, Status: metav1.ConditionTrue,
		Reason: reasonChecked})
	return s
}

// shown reports whether a finding is worth its room in a status: a failure, or a check of the service that could not be
// decided.
func shown(x explain.Finding) bool { return x.Status == explain.Fail || explain.IsServiceCheck(x.ID) }

// fails reports whether a finding breaks its link.
func fails(x explain.Finding) bool {
	return x.Status == explain.Fail && x.Severity.AtLeast(explain.Error)
}

// conditionOf returns the condition of some links. It is False only if a check failed, and True only if one passed.
func conditionOf(kind string, of []explain.ServiceLink, findings []explain.Finding, broken explain.ServiceLink,
) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reasonNotChecked}
	if broken != "" && !slices.ContainsFunc(of, func(l explain.ServiceLink) bool { return !l.After(broken) }) {
		c.Reason, c.Message = reasonNotJudged, fmt.Sprintf("Cannot be judged before the %s is repaired.", broken)
		return c
	}
	passed := false
	var unknown, failed *explain.Finding
	for _, l := range of {
		p, u, f := resultOf(l, findings)
		passed, unknown, failed = passed || p, cmp.Or(unknown, u), cmp.Or(failed, f)
	}
	switch {
	case failed != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, failed.ID, clean(failed.Words, v1alpha1.MaxText)
	case unknown != nil:
		c.Reason, c.Message = unknown.ID, clean(unknown.Words, v1alpha1.MaxText)
	case passed:
		c.Status, c.Reason = metav1.ConditionTrue, reasonWorking
	}
	return c
}

// notShaken makes TLSReady unknown if it is True without a handshake: CAA records and cert-manager alone prove nothing.
func notShaken(all []metav1.Condition) {
	if c := meta.FindStatusCondition(all, v1alpha1.TLSReady); c != nil && c.Status == metav1.ConditionTrue {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonNotChecked, "No TLS handshake was made."
	}
}

// resultOf returns what the checks of one link say: whether one passed, the first that is unknown if none passed, and
// the first that failed. Checks of DNS in general can break the link, but only those of the service prove that it
// holds.
func resultOf(l explain.ServiceLink, findings []explain.Finding) (passed bool, unknown, failed *explain.Finding) {
	for i := range findings {
		switch x := &findings[i]; {
		case explain.ServiceLinkOf(x.ID) != l:
		case fails(*x):
			failed = cmp.Or(failed, x)
		case !explain.IsServiceCheck(x.ID):
		case x.Status == explain.Pass:
			passed = true
		case x.Status == explain.NotKnown:
			unknown = cmp.Or(unknown, x)
		}
	}
	if passed {
		unknown = nil
	}
	return passed, unknown, failed
}

// setOwner sets the condition OwnershipVerified to that of the domain, if it has one.
func setOwner(s *status, verified *metav1.Condition) {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.OwnershipVerified)
	if c != nil && verified != nil {
		c.Status, c.Reason, c.Message = verified.Status, verified.Reason, clean(verified.Message, v1alpha1.MaxText)
	}
}

// safeCondition returns the condition DNSSafe, and sets the time and the verdict that go with it.
func safeCondition(s *status, now time.Time, safe safeat.Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.DNSSafe, Status: metav1.ConditionUnknown, Reason: reasonNotJudged}
	if !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.DNSReady) {
		c.Message = "Cannot be judged before the DNS is right."
		return c
	}
	switch {
	case safe.Verdict == safeat.Undetermined:
		c.Message = clean(safe.Summary, v1alpha1.MaxText)
	case safe.At.After(now):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonOldAnswers, clean(safe.Summary, v1alpha1.MaxText)
		s.SafeAt = &metav1.Time{Time: safe.At.UTC()}
		if s.Verdict == string(report.Working) {
			s.Verdict = string(report.Soon)
			s.Summary = clean("Working soon: "+s.Hostname+" is set up, but caches may hold an older answer until "+
				safe.At.UTC().Format(time.RFC3339)+".", v1alpha1.MaxText)
		}
	default:
		c.Status, c.Reason = metav1.ConditionTrue, reasonWorking
	}
	return c
}

func findingOf(x explain.Finding) v1alpha1.HostnameFinding {
	out := v1alpha1.HostnameFinding{ID: clean(x.ID, 16), Severity: string(x.Severity), Subject: clean(x.Subject, 512),
		Words: clean(x.Words, v1alpha1.MaxText), Fix: clean(x.Fix, v1alpha1.MaxText), Actor: clean(string(x.Actor), 64)}
	if x.Status == explain.NotKnown {
		out.Severity = "unknown"
	}
	if !x.Visible.IsZero() {
		out.VisibleBy = &metav1.Time{Time: x.Visible.UTC()}
	}
	return out
}

func targetsOf(t service.Targets) (out []string) {
	for _, h := range t.Hosts {
		out = append(out, strings.TrimSuffix(dnsname.Name.String(h), "."))
	}
	for _, a := range t.Addrs {
		out = append(out, netip.Addr.String(a))
	}
	return out[:min(len(out), v1alpha1.MaxTargets)]
}

// clean returns a text of at most so many bytes, without control characters: it may have come from a server on the
// internet, and is shown in terminals.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == ' ' {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
