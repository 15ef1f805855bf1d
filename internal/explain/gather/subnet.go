package gather

import (
	"net/netip"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// maxSubnetAnswers limits how many apparently old answers are asked for with a resolver's subnet.
const maxSubnetAnswers = 4

// askWithSubnets asks authoritative servers for answers that appear to be old, with the client subnet of the resolver
// (RFC 7871). A server whose answers depend on the subnet then gives the same answer to us: the answer is not old.
func (r *run) askWithSubnets() {
	facts := *r.facts
	facts.Exchanges = r.exchanges
	seen := map[string]bool{}
	var qs []iterate.Query
	for _, c := range explain.Assess(&facts) {
		for _, s := range c.Answers {
			key := s.Version()
			if s.State != safeat.Old || s.Known || seen[key] || len(seen) >= maxSubnetAnswers {
				continue
			}
			seen[key] = true
			for _, name := range r.ends() {
				z := r.zoneOf(name)
				for _, server := range r.leastAsked(r.usableServers(z)) {
					q := newQuery(z.Name, server, name, s.Question.Type)
					q.ECS = network(c.Addr)
					qs = append(qs, q)
				}
			}
		}
	}
	r.askAll(qs)
}

// network returns the part of an address that is sent to an authoritative server (RFC 7871 §11.1).
func network(a netip.Addr) netip.Prefix {
	bits := 56
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits)
	return p
}
