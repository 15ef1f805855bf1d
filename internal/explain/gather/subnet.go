package gather

import (
	"net/netip"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// maxForThem bounds how many answers that seem to be old are asked for on behalf of the resolver.
const maxForThem = 4

// askForThem asks authorities, on behalf of the networks of resolvers (RFC 7871), for answers that seem to
// be old. An authority that answers by network gives them to us then, and they are not old.
func (r *run) askForThem() {
	facts := *r.facts
	facts.Exchanges = r.exchanges
	seen := map[string]bool{}
	var qs []iterate.Query
	for _, c := range explain.Assess(&facts) {
		for _, s := range c.Answers {
			key := s.Version()
			if s.State != safeat.Old || s.Known || seen[key] || len(seen) >= maxForThem {
				continue
			}
			seen[key] = true
			for _, name := range r.ends() {
				z := r.zoneOf(name)
				for _, server := range r.idlest(r.good(z)) {
					q := to(z.Name, server, name, s.Question.Type)
					q.ECS = network(c.Addr)
					qs = append(qs, q)
				}
			}
		}
	}
	r.askAll(qs)
}

// network is as much of an address as an authority is shown (RFC 7871 §11.1).
func network(a netip.Addr) netip.Prefix {
	bits := 56
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits)
	return p
}
