package safeat

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// stateOf is the state of a resolver: the worst that it was seen in. One that filters was not seen to be late.
func stateOf(samples []Sample) State {
	for _, s := range []State{Stale, Old, Negative, Failed, Filtered, Current} {
		if slices.ContainsFunc(samples, func(x Sample) bool { return x.State == s }) {
			return s
		}
	}
	return Silent
}

// caches is how many caches must be behind an address, at least: entries that expire at different moments are in different
// caches, unless the one had gone before the other was seen.
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

// delegations are the bounds that come of servers that were left: a resolver that has the older NS set asks them, and what
// they say is kept in turn. per are the bounds of each link.
func (f Facts) delegations(r Resolver, per [][]Bound) []Bound {
	var out []Bound
	for i, l := range f.Links {
		if l.Role != ParentNS && l.Role != ChildNS || l.LeftNew {
			continue
		}
		for _, b := range per[i] {
			worst, inputs := f.afterLeft(r, l)
			b.Latest = b.Latest.Add(max(worst, failure)) // silence may be what they answer
			b.Inputs = slices.Concat(b.Inputs, []Input{{"left", "", true}}, inputs)
			b.Because = fmt.Sprintf("what the servers that were left do is not known; their answers are asked for until %s", stamp(b.At))
			b.Assumed = true
			out = append(out, b)
		}
	}
	return out
}

// afterLeft is how long answers of left servers are kept: their own NS set, which a resolver takes over the parent's when
// it asks them at the last moment, and then the data.
func (f Facts) afterLeft(r Resolver, ns Link) (worst time.Duration, inputs []Input) {
	var sets, data span
	for i, l := range f.Links {
		if l.Owner == ns.Owner && l.Role == ChildNS && ns.Role == ParentNS {
			sets = longer(sets, f.longest(i, r))
		}
		if l.Role == Data && l.Owner.IsIn(ns.Owner) {
			data = longer(data, f.longest(i, r))
		}
	}
	const slack = 2 * (tick + flight) // both are fetched in turn
	return sets.worst + data.worst + slack, []Input{{"childNS", strconv.Itoa(int(sets.likely / time.Second)), sets.assumed},
		{"data", strconv.Itoa(int(data.likely / time.Second)), data.assumed}, slackOf(slack)}
}

// longest is how long r may keep any version of a link, that of today among them, as left servers may have it.
func (f Facts) longest(i int, r Resolver) span {
	l := f.Links[i]
	out := r.Clamps.keepVersion(l, Version{TTL: l.TTL}, TTL{})
	if !l.TTL.known {
		out = span{}
	}
	for _, v := range l.versions() {
		out = longer(out, r.Clamps.keepVersion(l, v, f.instead(i)))
	}
	return out
}

// longer is the longer of two spans; the worst cases of both stay.
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
		behind = fmt.Sprintf(" At least %d caches answer there, so the answer may change from one question to the next.", p.Caches)
	}
	switch {
	case p.State == Filtered:
		p.Summary = p.Name + " filters this name on purpose; waiting does not help."
	case len(p.CannotTell) > 0:
		p.Summary = fmt.Sprintf("%s: cannot tell, as %s.", p.Name, p.CannotTell[0])
	case !p.At.After(now):
		p.Summary = fmt.Sprintf("%s: gives the new answer%s.", p.Name, assumption(p.Assumed, p.At, p.Latest))
	case p.Held.After(now):
		p.Summary = fmt.Sprintf("%s: was seen with an older answer that goes by %s; all behind it is new by %s%s.", p.Name, stamp(p.Held), stamp(p.At), assumption(p.Assumed, p.At, p.Latest))
	default:
		p.Summary = fmt.Sprintf("%s: new by %s%s, because %s.", p.Name, stamp(p.At), assumption(p.Assumed, p.At, p.Latest), p.Bounds[0].Because)
	}
	p.Summary += behind
}
