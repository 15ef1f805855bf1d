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

// week is how long a record must have been the same for no cache to differ: the longest that any resolver keeps things.
const week = 7 * 24 * time.Hour

// Safe is from when on everyone sees the answer of the authority.
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
				links[s.Link].Unchanged = false // whoever says so
			}
		}
		facts.Resolvers = append(facts.Resolvers, r)
	}
	return safeat.Compute(facts)
}

// SafeAt is the same for one resolver alone, also one whose word does not count.
func SafeAt(f *Facts, c Assessment) safeat.Part {
	links := Links(f)
	return safeat.Compute(safeat.Facts{Now: f.At, Links: links, Resolvers: []safeat.Resolver{resolverOf(f, links, c)}}).Resolvers[0]
}

func resolverOf(f *Facts, links []safeat.Link, c Assessment) safeat.Resolver {
	r := safeat.Resolver{Name: cmp.Or(c.Operator, c.ID), Addr: c.Addr, Clamps: c.Clamps}
	a := newAuthority(f)
	for _, s := range c.Answers {
		r.Samples = append(r.Samples, samples(a, links, s)...)
	}
	return r
}

// Links are the record sets that the answer depends on: the aliases, what is at their end, and the nameservers if they have
// changed. What nobody says has changed, has not: neither the asker, nor earlier looks. A delegation that has been the same
// is left out altogether.
func Links(f *Facts) (links []safeat.Link) {
	add := func(name dnsname.Name, zone dnsname.Name, t rr.Type, ttl uint32, data []string) {
		if slices.ContainsFunc(links, func(l safeat.Link) bool { return l.Owner == name && l.Type == t }) {
			return // an alias that was asked for itself is on the way, too
		}
		l := safeat.Link{Owner: name, Type: t, Role: safeat.Data, TTL: safeat.Seconds(ttl), Seen: answered(f), Denial: DenialOf(f, zone)}
		l.Before, l.Since = versions(f, name, t, ttl, data)
		l.Unchanged = len(l.Before) == 0 && f.At.Sub(l.Since) >= week
		// The asker can only have changed what is in the domain.
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
			add(o.End, o.Zone, o.Type, negative(f, o.Zone), nil)
		}
	}
	return slices.Concat(links, nsLinks(f), dsLinks(f))
}

// DenialOf is how a zone denies names.
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

// negative is the negative TTL of a zone as a number; 0 if it is not known.
func negative(f *Facts, zone dnsname.Name) uint32 {
	for _, d := range f.Denials {
		if d.Zone == zone && d.Class != iterate.NoSOA {
			return min(d.TTL, d.Minimum)
		}
	}
	return 0
}

// answered is when the last authority had answered: what they say has been so since then at the latest.
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

// versions are what earlier looks saw of a set that is not so any more, each until the look that did not see it, and since when the set
// has been what it is. What differs from one question to the next by design is no older version.
func versions(f *Facts, name dnsname.Name, t rr.Type, ttl uint32, data []string) (out []safeat.Version, since time.Time) {
	until := answered(f)
	since = until
	turns, now := turnsAt(f, name, t), t
	for _, p := range f.Past {
		if p.Name != f.Name {
			continue
		}
		was, ok := p.at(name, t)
		absent := slices.ContainsFunc(p.Absent, func(a rr.Type) bool { return a == t || t == rr.TypeCNAME }) && name == f.Name
		switch {
		case ok && (was.Type != now || was.TTL != ttl || !turns && !slices.Equal(was.Data, data)):
			out = append(out, safeat.Version{Until: until, TTL: safeat.Seconds(was.TTL)})
			if absent && was.Type != now { // of the types that an alias took the place of, one was not there
				out = append(out, safeat.Version{Until: until, Absent: true})
			}
			now, ttl, data = was.Type, was.TTL, was.Data
		case !ok && absent && len(data) > 0:
			out = append(out, safeat.Version{Until: until, Absent: true})
			data = nil
		case !ok && !absent:
			continue // the look did not see it
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

// nsLinks are the nameservers of the zone at the parent and at the zone, if an earlier look saw others.
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

// dsLinks is the DS of the zone at the parent, if an earlier look saw another one: who still has that fails on what the new keys signed.
// That there was none breaks nothing.
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

// dsOf is what the parent has of the keys of the zone; nil if that is not known.
func dsOf(f *Facts) *PastDS {
	for _, r := range f.Secure {
		for _, z := range r.Zones {
			if z.Name != f.Zone || len(z.DS) == 0 && z.Cause != secure.NoDS {
				continue
			}
			out := &PastDS{}
			for _, ds := range z.DS {
				out.TTL = max(out.TTL, ds.TTL)
				out.Keys = append(out.Keys, fmt.Sprintf("%d %d %d %s", ds.KeyTag, ds.Algorithm, ds.DigestType, strings.ToUpper(ds.Digest)))
			}
			slices.Sort(out.Keys)
			out.Keys = slices.Compact(out.Keys)
			return out
		}
	}
	return nil
}

// nsSets are the NS sets of the zone: all that any server of the parent gives, and of the child, in canonical order.
func nsSets(f *Facts) (parent, child iterate.NSSet, ok bool) {
	z := f.ZoneAt(f.Zone)
	if z == nil || len(z.ParentNS) == 0 {
		return parent, child, false
	}
	parent.NS, parent.TTL = iterate.Join(z.ParentNS)
	child.NS, child.TTL = iterate.Join(z.ChildNS)
	return parent, child, true
}
