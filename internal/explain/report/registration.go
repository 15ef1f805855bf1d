package report

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/registry"
)

// find returns the registration of a domain, or nil if the registry was not queried for it.
func find(f *explain.Facts, domain dnsname.Name) *registry.Registration {
	i := slices.IndexFunc(f.Registrations, func(r registry.Registration) bool { return r.Domain == domain.String() })
	if i < 0 || domain.IsZero() {
		return nil
	}
	return &f.Registrations[i]
}

// registrationOf returns the registration of the domain, or nil.
func registrationOf(f *explain.Facts) *Registration {
	from := find(f, f.Domain)
	if from == nil {
		return nil
	}
	r := &Registration{Domain: f.Domain, Source: string(from.Source), State: string(from.State),
		Registrar: from.Registrar.Name,
		Created:   from.Dates.Created, Expires: from.Dates.Expires}
	if f.Owner != f.Domain {
		r.Owner = f.Owner
	}
	if from.State == registry.Unknown {
		r.Problem = from.Why
	}
	if !r.Expires.IsZero() {
		r.Days = int(r.Expires.Sub(f.At).Hours() / 24)
	}
	for _, s := range from.Statuses {
		r.Statuses = append(r.Statuses, Line{Name: "status", Value: s.Code, Meaning: s.Text})
	}
	return r
}

// registryNS returns the nameservers in the registry's database. The registry only has those of registered domains, not
// of zones below.
func registryNS(f *explain.Facts, zone dnsname.Name) (out []dnsname.Name) {
	from := find(f, zone)
	if from == nil || zone != f.Domain {
		return nil
	}
	for _, h := range from.Nameservers {
		if n, err := dnsname.Parse(h.Name); err == nil {
			out = append(out, n)
		}
	}
	return out
}
