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

// nearQueries is how many names, and servers to ask for them, are tried.
const nearQueries = 3

// search looks for names like one that does not exist. It asks authorities only, each question once, and no registry: resolvers would
// remember what is not there, and registries limit those who ask.
type search struct {
	*run
	left int // queries
}

// near finds a name that does exist beside one that does not: a letter may be off.
func (r *run) near() {
	if r.opts.NoNear || r.trace.Result != iterate.NXDomain || len(r.trace.Chain) > 0 || r.facts.Domain.IsZero() {
		return
	}
	s := &search{run: r, left: nearQueries}
	switch {
	case !r.ours() && r.found(r.facts.Domain) == nil:
		s.nearDomain()
	case r.ours() && r.facts.Kind != explain.Scan: // which is about the domain
		s.nearName()
	}
}

// nearName looks in the zone that the name would be in, and ends at the first that is found.
func (s *search) nearName() {
	name, zone := s.facts.Name, s.zoneOf(s.facts.Name)
	denied := s.highest(zone, name)
	for _, n := range s.seen(zone) {
		if n.Parent() == denied.Parent() && denied == name && slip(denied.Label(), n.Label()) {
			s.keep(n, explain.NearSpelling, nil)
			return
		}
	}
	servers := s.idlest(s.good(zone))
	if len(servers) == 0 {
		return
	}
	var all []explain.Near
	add := func(wire, how string) {
		if n, _, err := dnsname.FromWire([]byte(wire)); err == nil {
			all = append(all, explain.Near{Name: n, How: how})
		}
	}
	for _, label := range likeUsual(denied.Label(), nearQueries-1) {
		if n, err := denied.Parent().Child(label); err == nil {
			add(name.In(denied)+n.Wire(), explain.NearSpelling)
		}
	}
	// Who types the whole name into a panel that adds the domain to it makes this one.
	add(name.In(dnsname.Root)+zone.Name.Wire(), explain.NearDoubled)
	for _, n := range all {
		p := s.once(to(zone.Name, servers[0], n.Name, s.types[0]))
		if p.class() == iterate.Answer {
			s.keep(n.Name, n.How, p.ids)
			return
		}
		if !p.class().Usable() {
			return
		}
	}
}

// highest is the name itself, or the highest above it that the servers of its zone deny.
func (s *search) highest(zone *iterate.Zone, name dnsname.Name) dnsname.Name {
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

// seen are names of a zone that its servers have shown without being asked for them: nameservers, and the ends of a range in which
// there is nothing.
func (s *search) seen(zone *iterate.Zone) (out []dnsname.Name) {
	for _, h := range zone.Hosts {
		if h.Name.IsIn(zone.Name) && len(h.Found) > 0 {
			out = append(out, h.Name)
		}
	}
	for _, d := range s.denialsOf(s.records()) {
		for _, c := range d.Covers {
			if n, err := dnsname.Parse(c); err == nil && d.Zone == zone.Name && d.Ranges == safeat.RangesNSEC && n != zone.Name && n.IsIn(zone.Name) {
				out = append(out, n)
			}
		}
	}
	return out
}

// nearDomain looks for a domain like one that is not registered, at the servers of its suffix, and of a suffix like it.
func (s *search) nearDomain() {
	suffix, tries := s.facts.Domain.Parent(), typosOf(s.facts.Domain.Label())
	var servers []netip.Addr
	if here := s.found(suffix); here != nil && here.Name == s.facts.Zone {
		servers = s.idlest(s.good(here))
	}
	for _, label := range tries.sure {
		if s.delegated(servers, suffix, label) {
			return
		}
	}
	if suffix.NumLabels() == 1 && s.underOther(suffix.Label()) {
		return
	}
	for _, label := range tries.swapped {
		if s.delegated(servers, suffix, label) {
			return
		}
	}
}

// underOther tries a top-level domain that is like another. It takes two queries: one to find it, and one to ask it.
func (s *search) underOther(tld string) bool {
	all := likeTLD(tld)
	if len(all) == 0 || s.left < 2 {
		return false
	}
	other, err := dnsname.Root.Child(all[0])
	return err == nil && s.delegated(s.topServers(other), other, s.facts.Domain.Label())
}

// topServers are servers of a top-level domain: known ones, or those that a root server names.
func (s *search) topServers(tld dnsname.Name) (out []netip.Addr) {
	if z := s.found(tld); z != nil && len(s.good(z)) > 0 {
		return s.idlest(s.good(z))
	}
	roots := s.idlest(s.good(s.found(dnsname.Root)))
	if len(roots) == 0 {
		return nil
	}
	p := s.once(to(dnsname.Root, roots[0], tld, rr.TypeNS))
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

// delegated asks whether a suffix has a domain, and keeps it if so.
func (s *search) delegated(servers []netip.Addr, suffix dnsname.Name, label string) bool {
	n, err := suffix.Child(label)
	if err != nil || len(servers) == 0 {
		return false
	}
	p := s.once(to(suffix, servers[0], n, rr.TypeA))
	if p.view == nil || p.class() != iterate.Referral || len(iterate.Records(p.view.Authority, n, rr.TypeNS)) == 0 {
		return false
	}
	s.keep(n, explain.NearSpelling, p.ids)
	return true
}

// once sends one query, if there is one left.
func (s *search) once(q iterate.Query) (out reply) {
	if s.left == 0 || s.budget.Acquire(s.ctx, q.Server.Addr.Addr()) != nil {
		return out
	}
	s.left--
	s.send(q, s.opts.Timeouts[0], &out)
	return out
}

func (s *search) keep(n dnsname.Name, how string, ids []int) {
	s.facts.Near = append(s.facts.Near, explain.Near{Name: n, How: how, Evidence: ids})
}
