package safeat

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// caches returns the minimum number of caches behind an address. Entries that expire at different times are in
// different caches, unless the first had expired before the second was seen.
func (f Facts) caches(samples []Sample) int {
	most := 0
	for i := range f.Links {
		var ends []time.Time
		of := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool {
			return s.Link != i || s.State != Old && s.State != Negative && s.State != Current
		})
		slices.SortStableFunc(of, func(a, b Sample) int { return a.Seen.Compare(b.Seen) })
		for _, s := range of {
			end := s.Seen.Add(time.Duration(s.Left) * time.Second)
			at := slices.IndexFunc(ends, func(e time.Time) bool { return e.Sub(end).Abs() <= cluster })
			if at < 0 {
				at = slices.IndexFunc(ends, func(e time.Time) bool { return !e.After(s.Seen.Add(tick)) })
			}
			if at < 0 {
				ends = append(ends, end)
			} else {
				ends[at] = end
			}
		}
		most = max(most, len(ends))
	}
	return most
}

// delegations returns the bounds for the previous servers of a zone: a resolver with the older NS set queries them
// and caches their answers. per holds the bounds of each link.
func (f Facts) delegations(r Resolver, per [][]Bound) []Bound {
	var out []Bound
	for i, l := range f.Links {
		if l.Role != ParentNS && l.Role != ChildNS || l.OldServersUpdated {
			continue
		}
		for _, b := range per[i] {
			worst, inputs := f.keptFromOldServers(r, l)
			b.Latest = b.Latest.Add(max(worst, failureTTL)) // they may also not reply
			b.Inputs = slices.Concat(b.Inputs, []Input{{"left", "", true}}, inputs)
			b.Because = fmt.Sprintf("the answers of the previous servers are not known, and resolvers may ask them until %s",
				stamp(b.At))
			b.Assumed = true
			out = append(out, b)
		}
	}
	return out
}

// keptFromOldServers returns how long answers of the previous servers are cached: first their own NS set, which a
// resolver that asks at the last moment prefers over the parent's, and then the data.
func (f Facts) keptFromOldServers(r Resolver, ns Link) (worst time.Duration, inputs []Input) {
	var sets, data span
	for i, l := range f.Links {
		if l.Owner == ns.Owner && l.Role == ChildNS && ns.Role == ParentNS {
			sets = longer(sets, f.longest(i, r))
		}
		if l.Role == Data && l.Owner.IsIn(ns.Owner) {
			data = longer(data, f.longest(i, r))
		}
	}
	const slack = 2 * (tick + inFlight) // one for the NS set and one for the data, which are fetched one after the other
	return sets.worst + data.worst + slack, []Input{{"childNS", strconv.Itoa(int(sets.likely / time.Second)),
		sets.assumed},
		{"data", strconv.Itoa(int(data.likely / time.Second)), data.assumed}, slackOf(slack)}
}

// longest returns how long r may cache any version of a link, including the present one, which previous servers may
// have.
func (f Facts) longest(i int, r Resolver) span {
	l := f.Links[i]
	out := r.Clamps.versionSpan(l, Version{TTL: l.TTL}, TTL{})
	if !l.TTL.known {
		out = span{}
	}
	for _, v := range l.versions() {
		out = longer(out, r.Clamps.versionSpan(l, v, f.fallbackTTL(i)))
	}
	return out
}

// longer returns the longer of two spans, with the worse of both worst cases.
func longer(a, b span) span {
	if b.likely > a.likely || b.likely == a.likely && !b.assumed {
		a, b = b, a
	}
	a.worst = max(a.worst, b.worst)
	return a
}

func (p *Part) conclude(now time.Time) {
	behind := ""
	if p.Caches > 1 {
		behind = fmt.Sprintf(" At least %d caches answer there, so the answer may change from one question to the next.",
			p.Caches)
	}
	switch {
	case p.State == Filtered:
		p.Summary = p.Name + " filters this name on purpose; waiting does not help."
	case len(p.Undetermined) > 0:
		p.Summary = fmt.Sprintf("%s: not known, because %s.", p.Name, p.Undetermined[0])
	case !p.At.After(now):
		p.Summary = fmt.Sprintf("%s: gives the new answer%s.", p.Name, assumption(p.Assumed, p.At, p.Latest))
	case p.Held.After(now):
		p.Summary = fmt.Sprintf("%s: was seen with an older answer until %s; all its caches have the new one by %s%s.",
			p.Name, stamp(p.Held), stamp(p.At), assumption(p.Assumed, p.At, p.Latest))
	default:
		p.Summary = fmt.Sprintf("%s: new by %s%s, because %s.", p.Name, stamp(p.At), assumption(p.Assumed, p.At, p.Latest),
			p.Bounds[0].Because)
	}
	p.Summary += behind
}
