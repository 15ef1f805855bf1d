package gather

import (
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// similarQueries limits the queries in search of similar names.
const similarQueries = 3

// similarSearch searches for names that are similar to one that does not exist. It queries only authoritative
// servers, each name once: resolvers would cache the negative answers, and registries limit the rate of lookups.
type similarSearch struct {
	*run
	left int // remaining queries
}

// findSimilar searches for an existing name that the user may have meant.
func (r *run) findSimilar() {
	if r.opts.NoSimilar || r.trace.Result != iterate.NXDomain || len(r.trace.Chain) > 0 || r.facts.Domain.IsZero() {
		return
	}
	s := &similarSearch{run: r, left: similarQueries}
	switch {
	case !r.ownsZone() && r.zoneAt(r.facts.Domain) == nil:
		s.similarDomain()
	case r.ownsZone() && r.facts.Kind != explain.Scan: // a scan is about the domain
		s.similarName()
	}
}

// similarName searches the zone of the name, and stops at the first match.
func (s *similarSearch) similarName() {
	name, zone := s.facts.Name, s.zoneOf(s.facts.Name)
	denied := s.highestDenied(zone, name)
	for _, n := range s.seen(zone) {
		if n.Parent() == denied.Parent() && denied == name && isTypo(denied.Label(), n.Label()) {
			s.addSimilar(n, explain.NearSpelling, nil)
			return
		}
	}
	servers := s.leastAsked(s.usableServers(zone))
	if len(servers) == 0 {
		return
	}
	var all []explain.Near
	add := func(wire, how string) {
		if n, _, err := dnsname.FromWire([]byte(wire)); err == nil {
			all = append(all, explain.Near{Name: n, How: how})
		}
	}
	for _, label := range similarLabels(denied.Label(), similarQueries-1) {
		if n, err := denied.Parent().Child(label); err == nil {
			add(name.In(denied)+n.Wire(), explain.NearSpelling)
		}
	}
	// This name is created when a user types the full name into a control panel that appends the domain.
	add(name.In(dnsname.Root)+zone.Name.Wire(), explain.NearDoubled)
	for _, n := range all {
		p := s.askOnce(newQuery(zone.Name, servers[0], n.Name, s.types[0]))
		if p.class() == iterate.Answer {
			s.addSimilar(n.Name, n.How, p.ids)
			return
		}
		if !p.class().Usable() {
			return
		}
	}
}

// highestDenied returns the highest ancestor of the name, or the name itself, that the servers of its zone deny.
func (s *similarSearch) highestDenied(zone *iterate.Zone, name dnsname.Name) dnsname.Name {
	out := name
	for n := name; n != zone.Name && !n.IsRoot(); n = n.Parent() {
		if slices.ContainsFunc(s.trace.Exchanges, func(e iterate.Exchange) bool {
			return e.Zone == zone.Name && e.Question.Name == n && e.Class == iterate.NXDomain
		}) {
			out = n
		}
	}
	return out
}

// seen returns names of a zone that its servers have revealed without being asked for them: nameservers, and the ends
// of NSEC ranges.
func (s *similarSearch) seen(zone *iterate.Zone) (out []dnsname.Name) {
	for _, h := range zone.Hosts {
		if h.Name.IsIn(zone.Name) && len(h.Found) > 0 {
			out = append(out, h.Name)
		}
	}
	for _, d := range s.denialsOf(s.records()) {
		for _, c := range d.Covers {
			if n, err := dnsname.Parse(c); err == nil && d.Zone == zone.Name && d.Ranges == safeat.RangesNSEC &&
				n != zone.Name && n.IsIn(zone.Name) {
				out = append(out, n)
			}
		}
	}
	return out
}

// similarDomain searches for a registered domain that is similar, at the servers of the same suffix and of a similar
// one.
func (s *similarSearch) similarDomain() {
	suffix, tries := s.facts.Domain.Parent(), typosOf(s.facts.Domain.Label())
	var servers []netip.Addr
	if here := s.zoneAt(suffix); here != nil && here.Name == s.facts.Zone {
		servers = s.leastAsked(s.usableServers(here))
	}
	for _, label := range tries.likely {
		if s.delegated(servers, suffix, label) {
			return
		}
	}
	if suffix.NumLabels() == 1 && s.underSimilarTLD(suffix.Label()) {
		return
	}
	for _, label := range tries.swapped {
		if s.delegated(servers, suffix, label) {
			return
		}
	}
}

// underSimilarTLD tries a similar top-level domain. It needs two queries: one to the root, one to the servers of the
// TLD.
func (s *similarSearch) underSimilarTLD(tld string) bool {
	all := similarTLDs(tld)
	if len(all) == 0 || s.left < 2 {
		return false
	}
	other, err := dnsname.Root.Child(all[0])
	return err == nil && s.delegated(s.topServers(other), other, s.facts.Domain.Label())
}

// topServers returns servers of a top-level domain: of the walk, or from a referral of a root server.
func (s *similarSearch) topServers(tld dnsname.Name) (out []netip.Addr) {
	if z := s.zoneAt(tld); z != nil && len(s.usableServers(z)) > 0 {
		return s.leastAsked(s.usableServers(z))
	}
	roots := s.leastAsked(s.usableServers(s.zoneAt(dnsname.Root)))
	if len(roots) == 0 {
		return nil
	}
	p := s.askOnce(newQuery(dnsname.Root, roots[0], tld, rr.TypeNS))
	if p.view == nil || p.class() != iterate.Referral {
		return nil
	}
	for _, a := range addressesOf(p.view.Additional) {
		if s.family(a) {
			return []netip.Addr{a}
		}
	}
	return nil
}

// delegated asks whether a domain is delegated, and adds it to the facts if it is.
func (s *similarSearch) delegated(servers []netip.Addr, suffix dnsname.Name, label string) bool {
	n, err := suffix.Child(label)
	if err != nil || len(servers) == 0 {
		return false
	}
	p := s.askOnce(newQuery(suffix, servers[0], n, rr.TypeA))
	if p.view == nil || p.class() != iterate.Referral || len(iterate.Records(p.view.Authority, n, rr.TypeNS)) == 0 {
		return false
	}
	s.addSimilar(n, explain.NearSpelling, p.ids)
	return true
}

// askOnce sends one query, if the search has any left.
func (s *similarSearch) askOnce(q iterate.Query) (out reply) {
	if s.left == 0 || s.budget.Acquire(s.ctx, q.Server.Addr.Addr()) != nil {
		return out
	}
	s.left--
	s.send(q, s.opts.Timeouts[0], &out)
	return out
}

func (s *similarSearch) addSimilar(n dnsname.Name, how string, ids []int) {
	s.facts.Near = append(s.facts.Near, explain.Near{Name: n, How: how, Evidence: ids})
}
