package hostname

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

// maxPast limits the earlier results of a hostname that are kept to compute when everyone sees a change. A record that
// changes more often than this within its TTL is not safe anyway.
const maxPast = 16

// checkTime limits one check. Most of it may be spent waiting for the rate limit of servers that other hostnames use.
const checkTime = time.Minute

// result is the result of a check.
type result struct {
	status    status
	undecided bool
	expires   time.Time // of the certificate that ends first; zero: none was seen
	past      []explain.Past
}

// check checks one hostname. An error means that the context ended.
func (c *Controller) check(ctx context.Context, key Key, objects *service.Objects, old status, past []explain.Past,
) (result, error) {
	in, err := gather.ParseService(key.Host, "", "", objects)
	if err != nil {
		return result{}, err
	}
	in.Whole = true
	g := c.options.Gatherer
	g.Options.Past, g.Options.MaxTime = past, checkTime
	f, err := g.Service(ctx, in)
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	if invalid := (*gather.InputError)(nil); errors.As(err, &invalid) {
		return result{status: invalidStatus(key, in, err), past: past}, nil
	}
	if err != nil {
		return result{status: blindStatus(key, in, err), undecided: true, past: past}, nil
	}
	findings := check.Run(f)
	r := report.Make(f, findings)
	out := result{status: statusOf(f, r, safeOf(f, old, past)), undecided: undecided(r.Findings), past: past}
	if !out.undecided {
		out.past = explain.Remember(past, explain.PastOf(f))
		out.past = out.past[:min(len(out.past), maxPast)]
	}
	for _, conn := range f.Service.Connections {
		if h := conn.TLS; h != nil && h.Done == explain.Yes && (out.expires.IsZero() || h.Until.Before(out.expires)) {
			out.expires = h.Until
		}
	}
	return out, nil
}

// safeOf returns when everyone sees the records. After a restart there are no earlier results, and the time in the
// status counts.
func safeOf(f *explain.Facts, old status, past []explain.Past) safeat.Report {
	safe := explain.Safe(f)
	if len(past) == 0 && old.SafeAt != nil && old.SafeAt.After(f.At) && safe.At.Before(old.SafeAt.Time) {
		safe.Verdict, safe.At = safeat.Soon, old.SafeAt.Time
		safe.Summary = "Caches may hold an older answer until " + old.SafeAt.UTC().Format(time.RFC3339) + "."
	}
	return safe
}

// invalidStatus returns the status of a hostname that cannot be a domain name, such as an address.
func invalidStatus(key Key, in gather.ServiceInput, err error) status {
	const id = "SVC16"
	words := clean(err.Error()+".", v1alpha1.MaxText)
	known, _ := check.Find(id)
	s := unknownStatus(key, in)
	s.Verdict, s.FirstBroken, s.Summary = string(report.NotWorking), string(explain.LinkRoute), words
	s.Findings = []v1alpha1.HostnameFinding{{ID: id, Severity: string(explain.Critical), Subject: clean(key.Host, 512),
		Words: words, Fix: clean(known.Fix, v1alpha1.MaxText), Actor: string(explain.You)}}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		switch c.Type {
		case v1alpha1.RouteReady:
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, id, words
		case v1alpha1.Current:
			c.Status, c.Reason = metav1.ConditionTrue, reasonChecked
		default:
			c.Reason, c.Message = reasonNotJudged, "Cannot be judged before the route is repaired."
		}
	}
	return s
}

// blindStatus returns the status of a hostname about which nothing could be asked.
func blindStatus(key Key, in gather.ServiceInput, err error) status {
	s := unknownStatus(key, in)
	s.Verdict, s.Summary = string(report.Undecided), clean("No verdict: "+err.Error()+".", v1alpha1.MaxText)
	for i := range s.Conditions {
		s.Conditions[i].Reason, s.Conditions[i].Message = reasonNoVerdict, s.Summary
	}
	return s
}

// unknownStatus returns a status in which all conditions are Unknown.
func unknownStatus(key Key, in gather.ServiceInput) status {
	s := status{Hostname: clean(key.Host, 255), LastChecked: &metav1.Time{Time: time.Now().UTC()},
		Targets: targetsOf(in.Targets)}
	for _, kind := range []string{v1alpha1.RouteReady, v1alpha1.OwnershipVerified, v1alpha1.DNSReady, v1alpha1.TLSReady,
		v1alpha1.BackendReady, v1alpha1.DNSSafe, v1alpha1.Current} {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionUnknown,
			Reason: reasonNotChecked})
	}
	return s
}
