package domain

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
)

// register looks up the registration of a domain. Without an answer the earlier one stays.
func (c *Controller) register(ctx context.Context, d *v1alpha.Domain, domain dnsname.Name, now time.Time) error {
	r, err := c.options.Gatherer.Registry.Lookup(ctx, domain)
	if err != nil {
		return err // the context ended
	}
	wait := daily
	if r.State == registry.Registered {
		d.Status.Registration = registrationOf(r)
	} else {
		wait = lookupAgain
	}
	d.Status.Registration.LastRefreshAttempt = metav1.NewTime(now.Truncate(time.Second))
	d.Status.Registration.NextRefreshAttempt = metav1.NewTime(now.Add(wait).Truncate(time.Second))
	return nil
}

// registrationOf returns a registration in the form of Datum.
func registrationOf(r registry.Registration) *v1alpha.DomainRegistration {
	out := &v1alpha.DomainRegistration{Domain: strings.TrimSuffix(r.Domain, "."), RegistryDomainID: r.Handle,
		Handle: r.Handle, Source: string(r.Source), CreatedAt: timeOf(r.Dates.Created), UpdatedAt: timeOf(r.Dates.Updated),
		ExpiresAt: timeOf(r.Dates.Expires)}
	if g := r.Registrar; g.Name != "" || g.IANAID != "" {
		out.Registrar = &v1alpha.DomainRegistrar{IANAID: g.IANAID, Name: g.Name, URL: g.URL}
	}
	if g := r.Registrar; g.AbuseEmail != "" || g.AbusePhone != "" {
		out.Abuse = &v1alpha.DomainContact{Email: g.AbuseEmail, Phone: g.AbusePhone}
	}
	if r.Registry != "" {
		out.Registry = &v1alpha.DomainRegistry{Name: r.Registry}
	}
	// The schema allows 32 entries. A longer list of a registry must not keep the whole status from being written.
	for _, s := range r.Statuses[:min(len(r.Statuses), 32)] {
		out.Statuses = append(out.Statuses, s.Code)
	}
	if r.DNSSEC.Known {
		out.DNSSEC = &v1alpha.DomainDNSSEC{Enabled: r.DNSSEC.Signed}
		for _, ds := range r.DNSSEC.DS[:min(len(r.DNSSEC.DS), 32)] {
			out.DNSSEC.DS = append(out.DNSSEC.DS, v1alpha.DomainDS{KeyTag: int32(ds.KeyTag), Algorithm: int32(ds.Algorithm),
				DigestType: int32(ds.DigestType), Digest: ds.Digest})
		}
	}
	return out
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}
