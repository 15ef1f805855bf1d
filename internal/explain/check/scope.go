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

// judged are the zones that are judged: those of the domain, and those that its aliases lead through. The root and the
// top-level domains are not: nobody who asks can mend them.
func judged(f *explain.Facts) []iterate.Zone {
	return only(f.Zones, func(z iterate.Zone) bool { return !z.Quick && (own(f, z.Name) || onChain(f, z.Name)) })
}

// own reports whether a zone is of the domain that was asked about.
func own(f *explain.Facts, zone dnsname.Name) bool {
	if f.Domain.IsZero() { // a public suffix
		return !zone.IsZero() && zone == f.Zone
	}
	return !zone.IsZero() && zone.IsIn(f.Domain)
}

func onChain(f *explain.Facts, zone dnsname.Name) bool {
	return zone.NumLabels() > 1 && (slices.ContainsFunc(f.Chain, func(h explain.Hop) bool { return h.Zone == zone }) ||
		slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Zone == zone && len(f.Chain) > 0 }))
}

// who is who acts: the one given for the asker's own zones, and else the owner of what the alias leads to.
func who(f *explain.Facts, zone dnsname.Name, mine explain.Actor) explain.Actor {
	if own(f, zone) {
		return mine
	}
	return explain.Target
}

// listed are the servers of a zone that the delegation or the zone lists.
func listed(f *explain.Facts, zone dnsname.Name) []explain.Server {
	return only(f.Servers, func(s explain.Server) bool {
		return s.Zone == zone && (len(s.Listed) == 0 || slices.Contains(s.Listed, "parent") || slices.Contains(s.Listed, "child"))
	})
}

func sorted(names []dnsname.Name) []dnsname.Name {
	return slices.Compact(slices.SortedFunc(slices.Values(names), dnsname.Name.Compare))
}

// only returns those of all for which is holds.
func only[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !is(x) })
}

// find returns the first of all for which is holds.
func find[T any](all []T, is func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return found, false
	}
	return all[i], true
}

// without is what of a is not in b.
func without[T comparable](a, b []T) []T {
	return only(a, func(x T) bool { return !slices.Contains(b, x) })
}

// usable reports whether the machine that asked can reach addresses of a family. If that is not known, it is not assumed.
func usable(f *explain.Facts, a netip.Addr) bool {
	if a.Is4() || a.Is4In6() {
		return f.Vantage.IPv4 == explain.Yes
	}
	return f.Vantage.IPv6 == explain.Yes
}

// unroutable says why servers were not asked, if the machine has no way for a family of addresses: as the end of a sentence.
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

// outcome is what the question for a type led to.
func outcome(f *explain.Facts, t rr.Type) (explain.Outcome, bool) {
	return find(f.Outcomes, func(o explain.Outcome) bool { return o.Type == t })
}

// denied reports whether a zone above a name says that there is nothing at it, and which.
func denied(f *explain.Facts, name dnsname.Name) (zone dnsname.Name, evidence []int) {
	no := func(c iterate.Class) bool { return c == iterate.NXDomain || c == iterate.NoData || c == iterate.NoSOA }
	for _, a := range f.Answers {
		if no(a.Class) && a.Zone != name && name.IsIn(a.Zone) && a.Question.Name.IsIn(name) {
			zone, evidence = a.Zone, append(evidence, a.Evidence...)
		}
	}
	for _, o := range f.Outcomes {
		if zone.IsZero() && no(o.Result) && o.End.IsIn(name) && o.Zone != name && !o.Zone.IsZero() && name.IsIn(o.Zone) {
			zone = o.Zone
		}
	}
	return zone, evidence
}

// after is the moment from which everyone sees that sets are not what they were until now.
func after(f *explain.Facts, links ...safeat.Link) time.Time {
	return safeat.Compute(safeat.Facts{Now: f.At, Links: links}).At
}

// replaced is a set that is changed now.
func replaced(f *explain.Facts, zone dnsname.Name, t rr.Type, role safeat.Role, ttl uint32) safeat.Link {
	return safeat.Link{Owner: zone, Type: t, Role: role, TTL: safeat.Seconds(ttl), Seen: f.At, OldServersUpdated: true,
		Before: []safeat.Version{{Until: f.At, TTL: safeat.Seconds(ttl)}}}
}

// created is a set that is created now in a zone: until the zone's negative TTL is over, resolvers may deny it.
func created(f *explain.Facts, name, zone dnsname.Name) safeat.Link {
	return safeat.Link{Owner: name, Type: rr.TypeA, Role: safeat.Data, Seen: f.At, Denial: explain.DenialOf(f, zone),
		Before: []safeat.Version{{Until: f.At, Absent: true}}}
}

// mended is when everyone sees that what some answers say is said no more: it is kept for its TTL, and a denial for that of the zone.
func mended(f *explain.Facts, some func(explain.Answer) bool) time.Time {
	var links []safeat.Link
	for _, a := range f.Answers {
		name := a.Question.Name
		switch {
		case a.Subnet.IsValid() || !some(a):
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

// nsVisible is when everyone sees a change of the nameservers of a zone, at its parent and in itself.
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

// seen are findings with their evidence.
func seen(x explain.Finding, evidence []int) explain.Finding {
	x.Evidence = append(x.Evidence, evidence...)
	return x
}
