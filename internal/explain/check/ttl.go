package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// sets returns the record sets that lead to the answer: the aliases, and the sets at their end.
func sets(f *explain.Facts) (out []explain.Set) {
	for _, h := range f.Chain {
		t, _ := rr.ParseType(h.Type)
		out = append(out, explain.Set{Name: h.From, Type: t, TTL: h.TTL, Data: []string{h.To.String()}})
	}
	for _, o := range f.Outcomes {
		for _, s := range o.Sets {
			if s.Name == o.End && s.Type == o.Type {
				out = append(out, s)
			}
		}
	}
	return out
}

// setText returns the name and type of a set.
func setText(s explain.Set) string { return fmt.Sprintf("%s %s", text(s.Name), s.Type) }

// lowTTL is check TTL01: The TTL is an hour or less before a change.
func lowTTL(f *explain.Facts) []explain.Finding {
	if !f.Change {
		return nil
	}
	name, all := text(f.Name), sets(f)
	var out []explain.Finding
	for _, s := range all {
		// An hour is what people can plan for on the day of a change. A TTL of a day needs a plan for the day before.
		if s.TTL > 3600 {
			x := fail("", explain.DNSHost, setText(s),
				"Resolvers keep %s for %s: users get the old record for that long after a change.", setText(s),
				words.Seconds(s.TTL))
			if plan, ok := explain.PlanChange(f); ok {
				// 300 s is short enough to undo a mistake, and long enough that caches still take most of the load.
				x.Fix = fmt.Sprintf("Lower the TTL to 300 now, make the change at %s, and raise the TTL when everything works.",
					words.By(plan.Change, f.At))
				x.Visible = plan.Safe
			}
			out = append(out, x)
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(all) == 0:
		return unknown(name, "The TTL of %s is not known.", name)
	}
	// The chain is as slow as its slowest set.
	most := slices.MaxFunc(all, func(a, b explain.Set) int { return int(a.TTL) - int(b.TTL) })
	return pass(name, "Everyone sees a change of %s after %s.", setText(most), words.Seconds(most.TTL))
}

// noRanges is check TTL04: Cached NSEC records cannot hide a new name.
func noRanges(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	absent := slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return o.Result == iterate.NXDomain && o.End == f.Name
	})
	// A week is the longest time for which BIND keeps an answer by default, and other resolvers keep them shorter.
	isNew := slices.ContainsFunc(f.Past, func(p explain.Past) bool {
		return p.Name == f.Name && len(p.Absent) > 0 && f.At.Sub(p.At) < 7*oneDay
	})
	if !absent && !isNew || undelegated(f) {
		return nil // cached NSEC records do not cover a name that existed when they were fetched
	}
	for _, d := range f.Denials {
		if d.Zone != f.Zone {
			continue
		}
		switch d.Ranges {
		case safeat.RangesNone:
			return pass(name, "Cached denials of other names in %s do not hide %s.", text(f.Zone), name)
		case safeat.RangesNSEC:
			// RFC 9077 §3 limits the TTL of an NSEC record to the negative TTL, but not all signers do. Resolvers may use the
			// larger one (RFC 8198 §5.4).
			when := max(d.NSECTTL, min(d.TTL, d.Minimum))
			x := fail("", explain.Nobody, name,
				"%s is signed with NSEC: resolvers that never queried %s may deny it for up to %s after it is created, "+
					"because they cached the NSEC record of a neighbouring name.", text(f.Zone), name, words.Seconds(when))
			if len(d.Covers) == 2 {
				x.Words += fmt.Sprintf(" One record denies all names from %s to %s.", strings.TrimSuffix(d.Covers[0], "."),
					strings.TrimSuffix(d.Covers[1], "."))
			}
			x.Visible = after(f, created(f, f.Name, f.Zone))
			return []explain.Finding{seen(x, d.Evidence)}
		}
	}
	return unknown(name, "How %s denies names is not known.", text(f.Zone))
}

// sameTTL is check TTL05: The records of a set have one TTL, on all servers. Without that, nobody can say when a
// change is visible: the time depends on the server that a resolver asked.
func sameTTL(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	type seenTTL struct {
		ttl    uint32
		server string
	}
	first := map[string]seenTTL{}
	reported := map[string]bool{}
	for _, a := range f.Answers {
		for _, s := range a.Sets {
			key := setText(s)
			if s.Name != a.Question.Name || a.Class != iterate.Answer || a.Subnet.IsValid() {
				continue
			}
			// Compare each server with the first one: a list of all pairs would repeat the same difference.
			at, by := first[key], serverAt(f, a.Zone, a.Server)
			switch {
			// RFC 2181 §5.2 requires one TTL for all records of a set. Resolvers use the lowest one.
			case len(s.TTLs) > 1 && !reported[key]:
				reported[key] = true
				out = append(out, seen(fail("", actorFor(f, a.Zone, explain.DNSHost), key,
					"The records of %s have different TTLs in one answer from %s: %s.", key, by,
					words.Some(words.Each(s.TTLs, func(t uint32) string { return fmt.Sprint(t) }))), a.Evidence))
			case at.server == "":
				first[key] = seenTTL{s.TTL, by}
			case at.ttl != s.TTL && !reported[key]:
				reported[key] = true
				out = append(out, seen(fail("", actorFor(f, a.Zone, explain.DNSHost), key, "%s has the TTL %d at %s and %d at %s.",
					key, at.ttl, at.server, s.TTL, by), a.Evidence))
			}
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(first) == 0 && noRecords(f):
		return nil
	case len(first) == 0:
		return unknown(name, "The TTLs of %s are not known.", name)
	}
	return pass(name, "The records of each set have one TTL, on all servers.")
}

// notTooLow is check TTL06: The TTL is at least 30 seconds. Below that, users wait for lookups, and an outage of the
// nameservers is an outage of the name at once. Some resolvers raise such values on their own, so little is gained.
func notTooLow(f *explain.Facts) []explain.Finding {
	name, all := text(f.Name), sets(f)
	var out []explain.Finding
	for _, s := range all {
		if s.TTL < 30 {
			actor := explain.DNSHost
			// The TTL of an alias target belongs to its owner.
			if s.Name != f.Name {
				actor = explain.Target
			}
			out = append(out, fail("", actor, setText(s),
				"The TTL of %s is %s: nearly every visit must query the nameservers first.", setText(s), words.Seconds(s.TTL)))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(all) == 0 && noRecords(f):
		return nil
	case len(all) == 0:
		return unknown(name, "The TTL of %s is not known.", name)
	}
	return pass(name, "No TTL of the answer or its aliases is below 30 s.")
}

// nsChanged reports whether an earlier scan saw other nameservers, recently enough that caches may still hold them.
func nsChanged(f *explain.Facts, now []dnsname.Name) bool {
	return slices.ContainsFunc(f.Past, func(p explain.Past) bool {
		return len(p.NS) > 0 && f.At.Sub(p.At) < 7*oneDay && !slices.Equal(sorted(p.NS), now)
	})
}

// parentTTL is check TTL07: No change has to wait for a TTL of the parent zone.
func parentTTL(f *explain.Facts) []explain.Finding {
	zone, z := text(f.Zone), f.ZoneAt(f.Zone)
	if z == nil {
		return nil
	}
	ns, above := iterate.Join(z.ParentNS)
	_, below := iterate.Join(z.ChildNS)
	// Without a plan and without a recent change, the TTL of the parent zone delays nobody, and the owner cannot change
	// it.
	planned := len(f.PlanNS) > 0
	if !planned && !nsChanged(f, ns) {
		return nil
	}
	if len(ns) == 0 {
		return unknown(zone, "The TTL of the nameservers of %s in the parent zone is not known.", zone)
	}
	what := "nameservers"
	if ds, ok := securedZone(f, f.Zone); ok {
		for _, d := range ds.DS {
			// A move of a signed zone also waits for the DS, which often has a longer TTL than the NS records.
			if d.TTL > above {
				above, what = d.TTL, "DS"
			}
		}
	}
	// An hour, or no longer than the zone itself allows, needs no warning.
	if above <= 3600 || above <= below {
		return pass(zone, "%s lets resolvers keep the %s of %s for %s, no longer than the zone itself does.", text(z.Parent),
			what, zone, words.Seconds(above))
	}
	x := fail("", explain.Nobody, zone,
		"%s lets resolvers keep the %s of %s for %s: some users still use the old ones for that long after a change.",
		text(z.Parent), what, zone, words.Seconds(above))
	x.Visible = nsVisible(f, *z)
	if !planned {
		x.Visible = everyone(f, f.At)
	}
	return []explain.Finding{x}
}
