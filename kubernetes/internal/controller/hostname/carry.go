package hostname

import (
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

// vital is the check that finds the records of a hostname. While it is unknown, nothing after it is known either.
const vital = "SVC20"

// undecided reports whether the servers could not be asked. A link before DNS that is broken is decided without them.
func undecided(findings []explain.Finding) bool {
	broken := explain.FirstBroken(findings)
	return (broken == "" || broken == explain.LinkDNS) && slices.ContainsFunc(findings, func(x explain.Finding) bool {
		return x.ID == vital && x.Status == explain.NotKnown
	})
}

// carry returns the status to write after a check. If the check could not ask the servers, the results before it stay,
// as long as they are about the same targets: they are old, not wrong. The condition Current says so.
func carry(old, fresh status, undecided bool, now time.Time) status {
	decided := old.Verdict != "" && old.Verdict != string(report.Undecided)
	if undecided && decided && slices.Equal(old.Targets, fresh.Targets) {
		out := *old.DeepCopy()
		out.ObservedGeneration = fresh.ObservedGeneration
		set(&out.Conditions, metav1.Condition{Type: v1alpha1.Current, Status: metav1.ConditionFalse, Reason: reasonNoVerdict,
			Message: "The last check could not decide, so these results are those of lastChecked. " +
				clean(fresh.Summary, v1alpha1.MaxText/2)}, now)
		return out
	}
	out := *fresh.DeepCopy()
	out.Conditions = old.DeepCopy().Conditions
	for _, c := range fresh.Conditions {
		set(&out.Conditions, c, now)
	}
	if out.SafeAt == nil && meta.IsStatusConditionTrue(out.Conditions, v1alpha1.DNSSafe) {
		out.SafeAt = old.SafeAt // it has passed
	}
	return out
}

// set sets a condition. Its time changes only with its status.
func set(all *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	meta.SetStatusCondition(all, c)
}

// refresh is how old lastChecked may become before it is written without another change.
const refresh = time.Minute

// mustWrite reports whether a status is worth a write: something changed, or the time of the last check is old.
func mustWrite(old, now status) bool {
	if !equality.Semantic.DeepEqual(steady(old), steady(now)) || old.LastChecked == nil {
		return true
	}
	return now.LastChecked != nil && now.LastChecked.Sub(old.LastChecked.Time) >= refresh
}

// steady returns a status without the times that differ after every check.
func steady(s status) status {
	s = *s.DeepCopy()
	s.LastChecked = nil
	for i := range s.Findings {
		s.Findings[i].VisibleBy = nil
	}
	return s
}

// sameResult reports whether two statuses have the same verdict and conditions. Another result is worth an Event.
func sameResult(a, b status) bool {
	isOld := func(s status) bool { return meta.IsStatusConditionFalse(s.Conditions, v1alpha1.Current) }
	return a.Verdict == b.Verdict && a.FirstBroken == b.FirstBroken && isOld(a) == isOld(b)
}

// The times between two checks of a hostname.
const (
	whenFine     = 5 * time.Minute
	whenBroken   = 10 * time.Second // while it changes: somebody is repairing it
	whenForgot   = time.Minute      // nothing changed for settled
	settled      = 10 * time.Minute
	jitterShare  = 10 // the times are shorter by up to a tenth
	minimumPause = time.Second
)

// pause returns the time until the next check. changed is when the objects or the results changed last.
func pause(s status, now, changed time.Time) time.Duration {
	d := whenFine
	switch broken := s.Verdict == string(report.NotWorking) || s.Verdict == string(report.Undecided) ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.Current); {
	case broken && now.Sub(changed) < settled:
		d = whenBroken
	case broken:
		d = whenForgot
	}
	d -= rand.N(d / jitterShare)
	if s.SafeAt != nil && s.SafeAt.After(now) {
		d = max(min(d, s.SafeAt.Sub(now)), minimumPause)
	}
	return d
}
