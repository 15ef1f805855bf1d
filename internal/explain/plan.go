package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// PlanChange returns a plan for a change that no user notices: of the nameservers if the user named new ones, otherwise
// of the record at the name. It returns false if too little is known, and for comparisons, which are about a change
// already made.
func PlanChange(f *Facts) (safeat.Plan, bool) {
	start := f.At.Truncate(time.Second)
	if len(f.PlanNS) > 0 {
		return planNS(f, start)
	}
	if f.Kind == Compare {
		return safeat.Plan{}, false
	}
	links := slices.DeleteFunc(Links(f), func(l safeat.Link) bool { return l.Role != safeat.Data || l.Owner != f.Name })
	if len(links) > 0 && slices.ContainsFunc(f.Outcomes, has) {
		// The set with the longest TTL decides, such as AAAA beside A.
		l := slices.MaxFunc(links, func(a, b safeat.Link) int { return cmp.Compare(ttlOf(f, a), ttlOf(f, b)) })
		return safeat.MakePlan(safeat.Change{Set: l, Start: start}), true
	}
	i := slices.IndexFunc(f.Outcomes, func(o Outcome) bool { return absent(o) && o.End == f.Name })
	if i < 0 || slices.ContainsFunc(f.Outcomes, has) {
		return safeat.Plan{}, false
	}
	if zone := f.Outcomes[i].Zone; f.Domain.IsZero() && zone != f.Name || zone != f.Domain && !f.Domain.IsZero() &&
		f.Domain.IsIn(zone) {
		return safeat.Plan{}, false // the domain is not delegated: the zone belongs to the registry
	}
	l := safeat.Link{Owner: f.Name, Type: f.Outcomes[i].Type, Role: safeat.Data, Seen: start,
		Denial: DenialOf(f, f.Outcomes[i].Zone)}
	if want := EntryRecords(f); len(want) > 0 {
		l.Type = want[0].Type
	}
	return safeat.MakePlan(safeat.Change{Create: true, Set: l, Start: start}), true
}

func has(o Outcome) bool { return o.Result == iterate.Answer }

func absent(o Outcome) bool { return o.Result == iterate.NXDomain || o.Result == iterate.NoData }

// ttlOf returns the TTL of the record set of a data link, or -1 if there is none.
func ttlOf(f *Facts, l safeat.Link) int64 {
	for _, h := range f.Chain {
		if h.From == l.Owner && typeOf(h.Type) == l.Type {
			return int64(h.TTL)
		}
	}
	for _, o := range f.Outcomes {
		if s, ok := Find(o.Sets, l.Owner, l.Type); ok {
			return int64(s.TTL)
		}
	}
	return -1
}

// planNS returns the plan for a move of the zone to other nameservers.
func planNS(f *Facts, start time.Time) (safeat.Plan, bool) {
	parent, child, ok := nsSets(f)
	if !ok {
		return safeat.Plan{}, false
	}
	if len(child.NS) == 0 {
		child = parent
	}
	c := safeat.Change{Start: start, Zone: safeat.Seconds(longestTTL(f))}
	c.Set = safeat.Link{Owner: f.Zone, Type: rr.TypeNS, Role: safeat.ChildNS, TTL: safeat.Seconds(child.TTL), Seen: start,
		Denial: DenialOf(f, f.Zone)}
	c.Parent = safeat.Link{TTL: safeat.Seconds(parent.TTL), Seen: start}
	if ds := dsOf(f); ds != nil && len(ds.Keys) > 0 {
		c.DS = &safeat.Link{Owner: f.Zone, Type: rr.TypeDS, Role: safeat.DS, TTL: safeat.Seconds(ds.TTL), Seen: start}
	}
	return safeat.MakePlan(c), true
}

// longestTTL returns the longest TTL that was seen in the zone. Until it has passed after the move, caches may hold
// records of the old servers.
func longestTTL(f *Facts) uint32 {
	ttl := negativeTTL(f, f.Zone)
	for _, a := range f.Answers {
		for _, s := range a.Sets {
			if a.Zone == f.Zone && s.Name.IsIn(f.Zone) {
				ttl = max(ttl, s.TTL)
			}
		}
	}
	for _, r := range f.Secure {
		for _, z := range r.Zones {
			for _, k := range z.KeySets {
				if z.Name == f.Zone {
					ttl = max(ttl, k.TTL)
				}
			}
		}
	}
	for _, s := range f.Servers {
		if s.Zone == f.Zone && s.SOA != nil {
			ttl = max(ttl, s.SOA.TTL)
		}
	}
	return ttl
}
