package gather

import (
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// maxRegistrations limits the domains that are looked up besides the domain itself: registries limit the rate of
// lookups.
const maxRegistrations = 4

// lookupDomain looks up a domain at its registry, in the background. Public registries do not know the names of an
// internal name space, and must not learn them.
func (r *run) lookupDomain(domain dnsname.Name) {
	if r.Registry == nil || r.opts.Private || domain.IsZero() || slices.Contains(r.lookupDomains, domain) {
		return
	}
	if len(r.lookupDomains) > maxRegistrations {
		r.addLimit("registrations")
		return
	}
	r.lookupDomains = append(r.lookupDomains, domain)
	index := len(r.lookupDomains) - 1
	r.background.Go(func() {
		reg, err := r.Registry.Lookup(r.ctx, domain)
		if err != nil {
			reg = registry.Registration{Domain: domain.String(), State: registry.Unknown, Why: err.Error()}
		}
		r.mu.Lock()
		r.registrations = append(r.registrations, indexedRegistration{index, reg})
		r.mu.Unlock()
		r.reportProgress(StageRegistration, domain.String(), 0, 0)
	})
}

// indexedRegistration is a registration and its position in the order of lookups.
type indexedRegistration struct {
	index int
	registry.Registration
}

// lookupServerDomains looks up the domains of the nameservers: anyone who can register one of them takes over the
// zone.
func (r *run) lookupServerDomains() {
	z := r.zoneAt(r.facts.Zone)
	if z == nil || !r.ownsZone() {
		return
	}
	for _, h := range z.Hosts {
		r.lookupDomain(registry.SuffixOf(h.Name).Domain)
	}
}

// lookupTargetDomains looks up the domains that aliases point to, if nothing exists there.
func (r *run) lookupTargetDomains() {
	if len(r.trace.Chain) == 0 || r.trace.Result == iterate.Answer {
		return
	}
	for _, end := range r.ends() {
		if domain := registry.SuffixOf(end).Domain; domain != r.facts.Domain {
			r.lookupDomain(domain)
		}
	}
}

// skew compares the local clock with those of registries, which are accurate and report whole seconds. The smallest
// difference counts.
func skew(all []indexedRegistration) (least time.Duration, known bool) {
	for _, p := range all {
		for _, a := range p.Asked {
			if a.Clock.IsZero() {
				continue
			}
			// The registry's clock showed this second at some time between request and response.
			d := a.At.Sub(a.Clock.Add(time.Second))
			if after := a.At.Add(a.Took).Sub(a.Clock); d < 0 && after >= 0 {
				d = 0
			} else if after < 0 {
				d = after
			}
			if !known || d.Abs() < least.Abs() {
				least, known = d, true
			}
		}
	}
	return least, known
}

// addRegistrations copies the registrations into the facts, in the order of the lookups.
func (r *run) addRegistrations() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.Registrations = nil
	slices.SortFunc(r.registrations, func(a, b indexedRegistration) int { return a.index - b.index })
	for _, p := range r.registrations {
		r.facts.Registrations = append(r.facts.Registrations, p.Registration)
	}
	r.facts.Vantage.Skew, r.facts.Vantage.SkewKnown = skew(r.registrations)
}
