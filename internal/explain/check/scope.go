package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// judged returns the zones that are checked: those of the domain, and those of the targets of its aliases. The root and
// the top-level domains are left out, because the user cannot fix them.
func judged(f *explain.Facts) []iterate.Zone {
	return only(f.Zones, func(z iterate.Zone) bool { return !z.Quick && (own(f, z.Name) || onChain(f, z.Name)) })
}

// own reports whether a zone belongs to the domain of the name.
func own(f *explain.Facts, zone dnsname.Name) bool {
	if f.Domain.IsZero() { // a public suffix
		return !zone.IsZero() && zone == f.Zone
	}
	return !zone.IsZero() && zone.IsIn(f.Domain)
}

// onChain reports whether the chain of aliases goes through a zone.
func onChain(f *explain.Facts, zone dnsname.Name) bool {
	return zone.NumLabels() > 1 && (slices.ContainsFunc(f.Chain, func(h explain.Hop) bool { return h.Zone == zone }) ||
		slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Zone == zone && len(f.Chain) > 0 }))
}

// actorFor returns mine for zones of the domain, and the owner of the alias target for others.
func actorFor(f *explain.Facts, zone dnsname.Name, mine explain.Actor) explain.Actor {
	if own(f, zone) {
		return mine
	}
	return explain.Target
}

// listed returns the servers that have an NS record in the parent zone or in the zone itself.
func listed(f *explain.Facts, zone dnsname.Name) []explain.Server {
	return only(f.Servers, func(s explain.Server) bool {
		return s.Zone == zone && (len(s.Listed) == 0 || slices.Contains(s.Listed, "parent") ||
			slices.Contains(s.Listed, "child"))
	})
}

// sorted returns the names in canonical order, without repetitions.
func sorted(names []dnsname.Name) []dnsname.Name {
	return slices.Compact(slices.SortedFunc(slices.Values(names), dnsname.Name.Compare))
}

// only returns the elements of all for which is returns true.
func only[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !is(x) })
}

// find returns the first element of all for which is returns true.
func find[T any](all []T, is func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return found, false
	}
	return all[i], true
}

// without returns the elements of a that are not in b.
func without[T comparable](a, b []T) []T {
	return only(a, func(x T) bool { return !slices.Contains(b, x) })
}

// usable reports whether this machine can reach addresses of the family of a. It returns false if that is not known.
func usable(f *explain.Facts, a netip.Addr) bool {
	if a.Is4() || a.Is4In6() {
		return f.Vantage.IPv4 == explain.Yes
	}
	return f.Vantage.IPv6 == explain.Yes
}

// unroutable returns the end of a sentence that says why servers were not queried, if this machine has no route for an
// address family.
func unroutable(f *explain.Facts, all []explain.Server) string {
	for _, s := range all {
		family := "IPv6"
		if s.Addr.Unmap().Is4() {
			family = "IPv4"
		}
		if (s.Class == iterate.Unknown || s.Class == "") && slices.Contains(f.Vantage.NoRoute, family) {
			return fmt.Sprintf(", as this machine has no route over %s", family)
		}
	}
	return ""
}

// outcome returns the outcome for a type.
func outcome(f *explain.Facts, t rr.Type) (explain.Outcome, bool) {
	return find(f.Outcomes, func(o explain.Outcome) bool { return o.Type == t })
}

// denied returns the ancestor zone that denies a name, or the zero name if none does.
func denied(f *explain.Facts, name dnsname.Name) (zone dnsname.Name, evidence []int) {
	for _, a := range f.Answers {
		if negative(a.Class) && a.Zone != name && name.IsIn(a.Zone) && a.Question.Name.IsIn(name) {
			zone, evidence = a.Zone, append(evidence, a.Evidence...)
		}
	}
	for _, o := range f.Outcomes {
		if zone.IsZero() && negative(o.Result) && o.End.IsIn(name) && o.Zone != name && !o.Zone.IsZero() &&
			name.IsIn(o.Zone) {
			zone = o.Zone
		}
	}
	return zone, evidence
}

// after returns the time from which everyone sees that these sets have changed.
func after(f *explain.Facts, links ...safeat.Link) time.Time {
	return safeat.Compute(safeat.Facts{Now: f.At, Links: links}).At
}

// replaced returns a link for a set that is changed now.
func replaced(f *explain.Facts, zone dnsname.Name, t rr.Type, role safeat.Role, ttl uint32) safeat.Link {
	return safeat.Link{Owner: zone, Type: t, Role: role, TTL: safeat.Seconds(ttl), Seen: f.At, OldServersUpdated: true,
		Before: []safeat.Version{{Until: f.At, TTL: safeat.Seconds(ttl)}}}
}

// created returns a link for a set that is created now. Resolvers may deny it until the zone's negative TTL has passed.
func created(f *explain.Facts, name, zone dnsname.Name) safeat.Link {
	return safeat.Link{Owner: name, Type: rr.TypeA, Role: safeat.Data, Seen: f.At, Denial: explain.DenialOf(f, zone),
		Before: []safeat.Version{{Until: f.At, Absent: true}}}
}

// fixed returns when everyone sees the fix of the selected answers, if they are fixed now. Resolvers keep records for
// their TTL, and denials for the negative TTL of the zone.
func fixed(f *explain.Facts, some func(explain.Answer) bool) time.Time {
	return fixedIn(f, only(f.Answers, func(a explain.Answer) bool { return !a.Subnet.IsValid() && some(a) }))
}

// fixedIn returns the same for the given answers.
func fixedIn(f *explain.Facts, answers []explain.Answer) time.Time {
	var links []safeat.Link
	for _, a := range answers {
		name := a.Question.Name
		switch {
		case a.Class == iterate.NXDomain || a.Class == iterate.NoData:
			links = append(links, created(f, name, a.Zone))
		default:
			for _, s := range a.Sets {
				if s.Name == name {
					links = append(links, replaced(f, s.Name, s.Type, safeat.Data, s.TTL))
				}
			}
		}
	}
	return after(f, links...)
}

// nsVisible returns when everyone sees a change of the nameservers of a zone, at the parent and in the zone itself.
func nsVisible(f *explain.Facts, z iterate.Zone) time.Time {
	var links []safeat.Link
	if _, ttl := iterate.Join(z.ParentNS); len(z.ParentNS) > 0 {
		links = append(links, replaced(f, z.Name, rr.TypeNS, safeat.ParentNS, ttl))
	}
	if _, ttl := iterate.Join(z.ChildNS); len(z.ChildNS) > 0 {
		links = append(links, replaced(f, z.Name, rr.TypeNS, safeat.ChildNS, ttl))
	}
	if len(links) == 0 {
		return time.Time{}
	}
	return after(f, links...)
}

// seen adds evidence to a finding.
func seen(x explain.Finding, evidence []int) explain.Finding {
	x.Evidence = append(x.Evidence, evidence...)
	return x
}
