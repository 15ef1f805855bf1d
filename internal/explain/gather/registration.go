package gather

import (
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// maxRegistrations bounds how many domains registries are asked about besides the one itself. They limit those who ask.
const maxRegistrations = 4

// register asks about a domain, while other things are done.
func (r *run) register(domain dnsname.Name) {
	if r.Registry == nil || domain.IsZero() || slices.Contains(r.registered, domain) {
		return
	}
	if len(r.registered) > maxRegistrations {
		r.limit("registrations")
		return
	}
	r.registered = append(r.registered, domain)
	place := len(r.registered) - 1
	r.working.Go(func() {
		reg, err := r.Registry.Lookup(r.ctx, domain)
		if err != nil {
			reg = registry.Registration{Domain: domain.String(), State: registry.Unknown, Why: err.Error()}
		}
		r.mu.Lock()
		r.registrations = append(r.registrations, placed{place, reg})
		r.mu.Unlock()
		r.tell(StageRegistration, domain.String(), 0, 0)
	})
}

// placed is a registration, and which of those asked for it is.
type placed struct {
	place int
	registry.Registration
}

// registerServers asks about the domains that the nameservers are in: who can take one of them, takes the zone.
func (r *run) registerServers() {
	z := r.found(r.facts.Zone)
	if z == nil || !r.ours() {
		return
	}
	for _, h := range z.Hosts {
		r.register(registry.SuffixOf(h.Name).Domain)
	}
}

// registerTargets asks about the domains that aliases lead to, if nothing is found there.
func (r *run) registerTargets() {
	if len(r.trace.Chain) == 0 || r.trace.Result == iterate.Answer {
		return
	}
	for _, end := range r.ends() {
		if domain := registry.SuffixOf(end).Domain; domain != r.facts.Domain {
			r.register(domain)
		}
	}
}

// skew compares our clock with those of registries, which keep theirs right, and tell whole seconds. The one that is nearest counts.
func skew(all []placed) (least time.Duration, known bool) {
	for _, p := range all {
		for _, a := range p.Asked {
			if a.Clock.IsZero() {
				continue
			}
			// Somewhere between question and reply it was that second.
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

// collect puts the registrations into the facts, in the order in which they were asked for.
func (r *run) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.Registrations = nil
	slices.SortFunc(r.registrations, func(a, b placed) int { return a.place - b.place })
	for _, p := range r.registrations {
		r.facts.Registrations = append(r.facts.Registrations, p.Registration)
	}
	r.facts.Vantage.Skew, r.facts.Vantage.SkewKnown = skew(r.registrations)
}
