package domain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
)

// proofs are the conditions of the proofs.
var proofs = []string{v1alpha.VerifiedDNS, v1alpha.VerifiedHTTP, v1alpha.VerifiedDNSZone}

// verify checks the proofs of a Domain. An error means that the context ended.
func (c *Controller) verify(ctx context.Context, d *v1alpha.Domain, now time.Time) error {
	v := d.Status.Verification
	before := c.ownership(d)
	zone, zoneReason := c.zoneOf(ctx, d)
	owner, err := dnsname.Parse(v.DNSRecord.Name)
	if err != nil {
		return err // the schema does not allow such a name
	}
	in := gather.ServiceInput{Host: d.Spec.DomainName, Nameservers: zone,
		Proof: &service.Record{Owner: owner, Type: rr.TypeTXT, Data: []string{`"` + v.DNSRecord.Content + `"`}, TTL: 300},
		Token: &service.Token{URL: v.HTTPToken.URL, Body: v.HTTPToken.Body}, Ownership: &before}
	f, err := c.options.Gatherer.Service(ctx, in)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	v.LastVerificationAttempt = metav1.NewTime(now.Truncate(time.Second))
	if err != nil {
		c.options.Log.Warn("a Domain could not be verified", "domain", d.Spec.DomainName, "err", err)
		// A check that could not be done is no miss: the state stays, and the next attempt follows.
		c.conclude(d, before, before, now)
		return nil
	}
	d.Status.Nameservers = nameservers(f)
	judgeRecord(d, f, now)
	judgeToken(d, f, now)
	judgeZone(d, f, zone, zoneReason, now)
	c.conclude(d, before, before.Next(observe(d, f), now), now)
	return nil
}

// observe returns whether the ownership is proved. A proof that could not be checked counts only if it was complete
// before: a domain without a web server must not stay verified because nobody answers at its URL.
func observe(d *v1alpha.Domain, f *explain.Facts) service.Observation {
	if explain.Observe(f) == service.ProofFound {
		return service.ProofFound
	}
	kept := slices.ContainsFunc(proofs, func(p string) bool { return meta.IsStatusConditionTrue(d.Status.Conditions, p) })
	if fact, _, _ := explain.ProvedByRecord(f); kept || fact == explain.Unknown {
		return service.ProofUnknown
	}
	return service.ProofMissing
}

// judgeRecord sets the condition of the TXT record.
func judgeRecord(d *v1alpha.Domain, f *explain.Facts, now time.Time) {
	fact, with, without := explain.ProvedByRecord(f)
	name := d.Status.Verification.DNSRecord.Name
	switch values := explain.ProofValues(f); {
	case fact == explain.Yes:
		set(d, now, v1alpha.VerifiedDNS, metav1.ConditionTrue, v1alpha.ReasonVerified,
			fmt.Sprintf("All %d servers of the zone that answered have the record.", len(with)))
	case fact == explain.Unknown:
		pending(d, now, v1alpha.VerifiedDNS, "The servers of the zone did not answer.")
	case len(values) == 0:
		set(d, now, v1alpha.VerifiedDNS, metav1.ConditionFalse, v1alpha.ReasonRecordNotFound,
			fmt.Sprintf("No server of the zone has a TXT record at %s.", name))
	case len(with) > 0:
		set(d, now, v1alpha.VerifiedDNS, metav1.ConditionFalse, v1alpha.ReasonContentMismatch,
			fmt.Sprintf("Only %d of %d servers of the zone have the record.", len(with), len(with)+len(without)))
	default:
		set(d, now, v1alpha.VerifiedDNS, metav1.ConditionFalse, v1alpha.ReasonContentMismatch,
			fmt.Sprintf("The TXT record at %s has another text.", name))
	}
}

// judgeToken sets the condition of the text at a URL.
func judgeToken(d *v1alpha.Domain, f *explain.Facts, now time.Time) {
	switch explain.ProvedByToken(f) {
	case explain.Yes:
		set(d, now, v1alpha.VerifiedHTTP, metav1.ConditionTrue, v1alpha.ReasonVerified, "")
	case explain.No:
		set(d, now, v1alpha.VerifiedHTTP, metav1.ConditionFalse, v1alpha.ReasonUnexpectedResponse,
			"An address of the domain does not have the text at the URL.")
	default:
		pending(d, now, v1alpha.VerifiedHTTP, "No address of the domain answered.")
	}
}

// judgeZone sets the condition of the delegation to a DNSZone.
func judgeZone(d *v1alpha.Domain, f *explain.Facts, zone []dnsname.Name, reason string, now time.Time) {
	if len(zone) == 0 {
		set(d, now, v1alpha.VerifiedDNSZone, metav1.ConditionFalse, reason, "")
		return
	}
	switch fact, others, total := explain.ProvedByDelegation(f); fact {
	case explain.Yes:
		set(d, now, v1alpha.VerifiedDNSZone, metav1.ConditionTrue, v1alpha.ReasonVerified,
			fmt.Sprintf("All %d nameservers of the domain are those of the DNSZone.", total))
	case explain.No:
		set(d, now, v1alpha.VerifiedDNSZone, metav1.ConditionFalse, v1alpha.ReasonDNSZoneNameserverMismatch,
			fmt.Sprintf("%d of %d nameservers of the domain are not those of the DNSZone.", len(others), total))
	default:
		pending(d, now, v1alpha.VerifiedDNSZone, "The delegation of the domain could not be read.")
	}
}

// pending sets a condition that could not be decided, unless it was decided before: that result is old, not wrong.
func pending(d *v1alpha.Domain, now time.Time, kind, message string) {
	if c := meta.FindStatusCondition(d.Status.Conditions, kind); c == nil || c.Status == metav1.ConditionUnknown {
		set(d, now, kind, metav1.ConditionUnknown, v1alpha.ReasonPendingVerification, message)
	}
}

// ownership returns the state before a check. The time of the first miss is that at which the last proof became False;
// the status keeps it over a restart. The number of misses is then at least one.
func (c *Controller) ownership(d *v1alpha.Domain) (out service.Ownership) {
	out.Verified = meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha.Verified)
	for _, kind := range proofs {
		p := meta.FindStatusCondition(d.Status.Conditions, kind)
		switch {
		case p == nil || p.Status == metav1.ConditionUnknown:
		case p.Status == metav1.ConditionTrue:
			return service.Ownership{Verified: out.Verified}
		case p.LastTransitionTime.After(out.Missed):
			out.Missed = p.LastTransitionTime.Time
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if out.Verified && !out.Missed.IsZero() {
		out.Misses = max(c.misses[d.UID], 1)
	}
	return out
}

// conclude sets the condition Verified, and the time of the next attempt.
func (c *Controller) conclude(d *v1alpha.Domain, before, after service.Ownership, now time.Time) {
	c.mu.Lock()
	c.misses[d.UID] = after.Misses
	c.mu.Unlock()
	was := meta.FindStatusCondition(d.Status.Conditions, v1alpha.Verified)
	wait := daily
	switch {
	case after.Verified && after.Misses == 0:
		set(d, now, v1alpha.Verified, metav1.ConditionTrue, v1alpha.ReasonVerified, "")
	case after.Verified:
		wait = whenGone
		set(d, now, v1alpha.Verified, metav1.ConditionTrue, v1alpha.ReasonVerified,
			fmt.Sprintf("The proof is missing since %s. Without it the domain is not verified after %s.",
				after.Missed.UTC().Format(time.RFC3339), after.GraceEnds().UTC().Format(time.RFC3339)))
	case before.Verified || was != nil && was.Reason == v1alpha.ReasonProofGone:
		wait = pause(now.Sub(was.LastTransitionTime.Time))
		set(d, now, v1alpha.Verified, metav1.ConditionFalse, v1alpha.ReasonProofGone,
			"The domain was verified, and its proof is gone.")
	default:
		wait = pause(now.Sub(d.CreationTimestamp.Time))
		set(d, now, v1alpha.Verified, metav1.ConditionFalse, v1alpha.ReasonPendingVerification,
			"None of the proofs is complete.")
	}
	d.Status.Verification.NextVerificationAttempt = metav1.NewTime(now.Add(wait).Truncate(time.Second))
	if was != nil && before.Verified != after.Verified {
		c.options.Log.Info("result", "domain", d.Spec.DomainName, "verified", after.Verified)
	}
}

// dnsZones is the kind of Datum's zones. Only two fields of them are read, so their Go types would be a dependency
// without use.
var dnsZones = schema.GroupVersionKind{Group: "dns.networking.miloapis.com", Version: "v1alpha1", Kind: "DNSZoneList"}

// zoneOf returns the nameservers of the DNSZone of a Domain in its namespace, or the reason why there are none.
func (c *Controller) zoneOf(ctx context.Context, d *v1alpha.Domain) (out []dnsname.Name, reason string) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(dnsZones)
	err := c.zones.List(ctx, list, client.InNamespace(d.Namespace))
	var missing *meta.NoKindMatchError
	switch {
	case errors.As(err, &missing) || meta.IsNoMatchError(err):
		return nil, v1alpha.ReasonDNSZoneNotFound
	case err != nil:
		c.options.Log.Warn("the DNSZones could not be listed", "namespace", d.Namespace, "err", err)
		return nil, v1alpha.ReasonInternalError
	}
	for _, z := range list.Items {
		name, _, _ := unstructured.NestedString(z.Object, "spec", "domainName")
		if strings.TrimSuffix(strings.ToLower(name), ".") != d.Spec.DomainName {
			continue
		}
		reason = v1alpha.ReasonDNSZoneNotReady
		hosts, _, _ := unstructured.NestedStringSlice(z.Object, "status", "nameservers")
		for _, h := range hosts {
			if n, err := dnsname.Parse(h); err == nil {
				out = append(out, n)
			}
		}
	}
	return out, cmp.Or(reason, v1alpha.ReasonDNSZoneNotFound)
}

// nameservers returns the nameservers of the zone of the domain, as its parent lists them.
func nameservers(f *explain.Facts) (out []v1alpha.DomainNameserver) {
	for _, s := range f.Servers {
		if s.Zone != f.Zone || !slices.Contains(s.Listed, "parent") {
			continue
		}
		host := strings.TrimSuffix(s.Host.String(), ".")
		i := slices.IndexFunc(out, func(n v1alpha.DomainNameserver) bool { return n.Hostname == host })
		if i < 0 {
			i = len(out)
			out = append(out, v1alpha.DomainNameserver{Hostname: host})
		}
		out[i].IPs = append(out[i].IPs, v1alpha.DomainNameserverIP{Address: s.Addr.String()})
		out[i].IPs = out[i].IPs[:min(len(out[i].IPs), 16)]
	}
	slices.SortFunc(out, func(a, b v1alpha.DomainNameserver) int { return cmp.Compare(a.Hostname, b.Hostname) })
	return out[:min(len(out), 32)]
}
