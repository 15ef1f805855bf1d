package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// week is the longest time that resolvers keep a record. A record that has not changed for a week is the same in all
// caches.
const week = 7 * 24 * time.Hour

// Safe computes from which time everyone sees the answer of the authority.
func Safe(f *Facts) safeat.Report {
	links := Links(f)
	facts := safeat.Facts{Now: f.At, Links: links}
	for _, c := range Assess(f) {
		if c.NoVote || len(c.Answers) == 0 {
			continue
		}
		r := resolverOf(f, links, c)
		for _, s := range r.Samples {
			if s.State == safeat.Old || s.State == safeat.Negative {
				links[s.Link].Unchanged = false // an older answer in a cache proves a change
			}
		}
		facts.Resolvers = append(facts.Resolvers, r)
	}
	return safeat.Compute(facts)
}

// SafeAt computes the same for a single resolver, even if its answers do not count for Safe.
func SafeAt(f *Facts, c Assessment) safeat.Part {
	links := Links(f)
	return safeat.Compute(safeat.Facts{Now: f.At, Links: links,
		Resolvers: []safeat.Resolver{resolverOf(f, links, c)}}).Resolvers[0]
}

func resolverOf(f *Facts, links []safeat.Link, c Assessment) safeat.Resolver {
	r := safeat.Resolver{Name: cmp.Or(c.Operator, c.ID), Addr: c.Addr, Clamps: c.Clamps, State: c.State()}
	a := newAuthority(f)
	for _, s := range c.Answers {
		r.Samples = append(r.Samples, samples(a, links, s)...)
	}
	return r
}

// Links returns the record sets that the answer depends on: the aliases, the sets at their end, and NS and DS sets that
// have changed. A set counts as unchanged unless the user or an earlier scan says otherwise. A delegation that has not
// changed is left out, because its TTLs delay nothing.
func Links(f *Facts) (links []safeat.Link) {
	add := func(name dnsname.Name, zone dnsname.Name, t rr.Type, ttl uint32, data []string) {
		if slices.ContainsFunc(links, func(l safeat.Link) bool { return l.Owner == name && l.Type == t }) {
			return // a query for CNAME finds the same alias as the chain
		}
		l := safeat.Link{Owner: name, Type: t, Role: safeat.Data, TTL: safeat.Seconds(ttl), Seen: answered(f),
			Denial: DenialOf(f, zone)}
		l.Before, l.Since = versions(f, name, t, ttl, data)
		l.Unchanged = len(l.Before) == 0 && f.At.Sub(l.Since) >= week
		// The user can only have changed records of the domain.
		changed := f.Change && (f.Domain.IsZero() || name.IsIn(f.Domain))
		l.Unchanged = l.Unchanged || !changed && len(l.Before) == 0
		l.Divided = dividedAt(f, name, t)
		links = append(links, l)
	}
	for _, h := range f.Chain {
		add(h.From, h.Zone, typeOf(h.Type), h.TTL, []string{h.To.String()})
	}
	for _, o := range f.Outcomes {
		switch i := slices.IndexFunc(o.Sets, func(s Set) bool { return s.Name == o.End && s.Type == o.Type }); {
		case i >= 0:
			add(o.End, o.Zone, o.Type, o.Sets[i].TTL, o.Sets[i].Data)
		case f.Change && (o.Result == iterate.NXDomain || o.Result == iterate.NoData):
			add(o.End, o.Zone, o.Type, negativeTTL(f, o.Zone), nil)
		}
	}
	return slices.Concat(links, nsLinks(f), dsLinks(f))
}

// DenialOf returns how a zone denies names, and for how long resolvers keep that.
func DenialOf(f *Facts, zone dnsname.Name) safeat.Denial {
	for _, d := range f.Denials {
		switch {
		case d.Zone != zone:
		case d.Class == iterate.NoSOA:
			return safeat.Denial{TTL: safeat.Seconds(0), Ranges: safeat.RangesNone}
		default:
			out := safeat.Denial{TTL: safeat.NegativeTTL(d.TTL, d.Minimum), Ranges: d.Ranges}
			if d.NSECTTL > 0 {
				out.NSEC = safeat.Seconds(d.NSECTTL)
			}
			return out
		}
	}
	i := slices.IndexFunc(f.Servers, func(s Server) bool { return s.Zone == zone && s.SOA != nil })
	if i < 0 {
		return safeat.Denial{}
	}
	return safeat.Denial{TTL: safeat.NegativeTTL(f.Servers[i].SOA.TTL, f.Servers[i].SOA.Minimum)}
}

// negativeTTL returns the negative TTL of a zone in seconds, or 0 if it is not known.
func negativeTTL(f *Facts, zone dnsname.Name) uint32 {
	for _, d := range f.Denials {
		if d.Zone == zone && d.Class != iterate.NoSOA {
			return min(d.TTL, d.Minimum)
		}
	}
	return 0
}

// answered returns the time of the last authoritative answer. The records have been the current ones since then at the
// latest.
func answered(f *Facts) time.Time {
	var last time.Duration
	for _, a := range f.Answers {
		for _, id := range a.Evidence {
			if id < len(f.Exchanges) {
				last = max(last, f.Exchanges[id].At+f.Exchanges[id].RTT)
			}
		}
	}
	return f.At.Add(last)
}

// versions returns the older versions of a set that earlier scans saw, and since when the set has been unchanged. Each
// version may have lasted until the scan that first saw the next one. Answers that rotate by design are not older
// versions. A change that happens during a scan resembles rotation: one server gives the old and then the new data. It
// counts as a change if the scans before saw no rotation.
func versions(f *Facts, name dnsname.Name, t rr.Type, ttl uint32, data []string) (out []safeat.Version,
	since time.Time) {
	until := answered(f)
	since = until
	rotating, now := rotatesAt(f, name, t) && !steady(f.Past, name, t), t
	for _, p := range f.Past {
		if p.Name != f.Name {
			continue
		}
		was, ok := p.setAt(name, t)
		absent := slices.ContainsFunc(p.Absent, func(a rr.Type) bool { return a == t || t == rr.TypeCNAME }) && name == f.Name
		switch {
		case ok && (was.Type != now || was.TTL != ttl || !rotating && !slices.Equal(was.Data, data)):
			out = append(out, safeat.Version{Until: until, TTL: safeat.Seconds(was.TTL)})
			if absent && was.Type != now { // the alias replaced several types, and one of them did not exist
				out = append(out, safeat.Version{Until: until, Absent: true})
			}
			now, ttl, data = was.Type, was.TTL, was.Data
		case !ok && absent && len(data) > 0:
			out = append(out, safeat.Version{Until: until, Absent: true})
			data = nil
		case !ok && !absent:
			continue // that scan did not query this set
		}
		until = p.At
		if len(out) == 0 {
			since = p.At
		}
		if f.At.Sub(p.At) >= week {
			break
		}
	}
	return out, since
}

// steady reports whether the two latest scans that saw a record set saw the same data.
func steady(past []Past, name dnsname.Name, t rr.Type) bool {
	var seen []Set
	for _, p := range past {
		if s, ok := p.setAt(name, t); ok {
			seen = append(seen, s)
		}
	}
	return len(seen) > 1 && slices.Equal(seen[0].Data, seen[1].Data)
}

// nsLinks returns the NS sets of the zone at the parent and at the zone itself, if an earlier scan saw other
// nameservers.
func nsLinks(f *Facts) []safeat.Link {
	until, changed := answered(f), false
	parent, child, ok := nsSets(f)
	for _, p := range f.Past {
		if p.Name != f.Name || len(p.NS) == 0 || changed {
			continue
		}
		if changed = !slices.Equal(p.NS, parent.NS); !changed {
			until = p.At
		}
	}
	if !ok || !changed {
		return nil
	}
	link := func(role safeat.Role, set iterate.NSSet, d safeat.Denial) safeat.Link {
		return safeat.Link{Owner: f.Zone, Type: rr.TypeNS, Role: role, TTL: safeat.Seconds(set.TTL), Seen: f.At, Denial: d,
			Before: []safeat.Version{{Until: until, TTL: safeat.Seconds(set.TTL)}}}
	}
	links := []safeat.Link{link(safeat.ParentNS, parent, safeat.Denial{})}
	if len(child.NS) > 0 {
		links = append(links, link(safeat.ChildNS, child, DenialOf(f, f.Zone)))
	}
	return links
}

// dsLinks returns the DS set of the zone at the parent, if an earlier scan saw another one: a resolver that still has
// the old DS cannot validate signatures of the new keys. A zone that had no DS before is not affected.
func dsLinks(f *Facts) []safeat.Link {
	until, now := answered(f), dsOf(f)
	if now == nil {
		return nil
	}
	for _, p := range f.Past {
		switch {
		case p.Name != f.Name || p.DS == nil:
		case slices.Equal(p.DS.Keys, now.Keys):
			until = p.At
		case len(p.DS.Keys) == 0:
			return nil
		default:
			return []safeat.Link{{Owner: f.Zone, Type: rr.TypeDS, Role: safeat.DS, TTL: safeat.Seconds(now.TTL), Seen: f.At,
				Before: []safeat.Version{{Until: until, TTL: safeat.Seconds(p.DS.TTL)}}}}
		}
	}
	return nil
}

// dsOf returns the DS set of the zone at the parent, or nil if it is not known.
func dsOf(f *Facts) *PastDS {
	for _, r := range f.Secure {
		for _, z := range r.Zones {
			if z.Name != f.Zone || len(z.DS) == 0 && z.Cause != secure.NoDS {
				continue
			}
			out := &PastDS{}
			for _, ds := range z.DS {
				out.TTL = max(out.TTL, ds.TTL)
				out.Keys = append(out.Keys,
					fmt.Sprintf("%d %d %d %s", ds.KeyTag, ds.Algorithm, ds.DigestType, strings.ToUpper(ds.Digest)))
			}
			slices.Sort(out.Keys)
			out.Keys = slices.Compact(out.Keys)
			return out
		}
	}
	return nil
}

// nsSets returns the NS sets of the zone at the parent and at the zone itself, each joined over all servers, in
// canonical order.
func nsSets(f *Facts) (parent, child iterate.NSSet, ok bool) {
	z := f.ZoneAt(f.Zone)
	if z == nil || len(z.ParentNS) == 0 {
		return parent, child, false
	}
	parent.NS, parent.TTL = iterate.Join(z.ParentNS)
	child.NS, child.TTL = iterate.Join(z.ChildNS)
	return parent, child, true
}
