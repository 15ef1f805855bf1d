package explain

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// StateOf is the state of a cache's answer. What differs by place or in turn at the authority, too, is not old unless an earlier
// look saw it there; and a denial by a resolver that filters, or whose answers are not counted, is its own unless it shows the SOA of the zone.
func StateOf(f *Facts, c Cache, s Sample) safeat.State {
	switch {
	case s.State == safeat.Old && varies(f) && !was(f, s.Sets):
		return safeat.Current
	case s.State == safeat.Negative && (c.Filters || c.NoVote) && (s.SOA == nil || !ofChain(f, s.SOA.Owner)):
		return safeat.Filtered
	}
	return s.State
}

// varies reports whether the answer is meant to differ.
func varies(f *Facts) bool {
	return slices.ContainsFunc(Differences(f), func(d Difference) bool { return d.Manner != Divided })
}

// was reports whether an earlier look saw one of the sets, and the authority does not have it any more.
func was(f *Facts, sets []Set) bool {
	return slices.ContainsFunc(sets, func(set Set) bool {
		return !same(f, set) && slices.ContainsFunc(f.Past, func(p Past) bool {
			return slices.ContainsFunc(p.Sets, func(s Set) bool {
				return s.Name == set.Name && s.Type == set.Type && slices.Equal(s.Data, set.Data)
			})
		})
	})
}

// ofChain reports whether a zone is one that the answer comes from.
func ofChain(f *Facts, zone dnsname.Name) bool {
	return zone == f.Zone || slices.ContainsFunc(f.Chain, func(h Hop) bool { return h.Zone == zone }) ||
		slices.ContainsFunc(f.Outcomes, func(o Outcome) bool { return o.Zone == zone })
}

// samples are what one answer of a cache says of each link. An answer along aliases has a set for each, with a TTL of its
// own; the first that is not the authority's is what makes it old.
func samples(f *Facts, links []safeat.Link, s Sample) (out []safeat.Sample) {
	seen := f.At.Add(s.At)
	put := func(link int, state safeat.State, left uint32) {
		if link >= 0 {
			out = append(out, safeat.Sample{Link: link, State: state, Left: left, Seen: seen})
		}
	}
	if s.State == safeat.Current {
		for _, set := range s.Sets {
			put(linkOf(links, set.Name, set.Type), safeat.Current, set.TTL)
		}
		if len(out) == 0 {
			put(first(links, s), safeat.Current, s.Left)
		}
		return out
	}
	found := false
	at := s.Question.Name
	for _, set := range s.Sets {
		i := linkOf(links, set.Name, set.Type)
		switch {
		case i >= 0 && same(f, set):
			put(i, safeat.Current, set.TTL)
			if set.Type == rr.TypeCNAME && len(set.Data) == 1 {
				_ = at.UnmarshalText([]byte(set.Data[0]))
			}
		case s.State == safeat.Old && !found:
			if i < 0 {
				i = first(links, Sample{Question: s.Question})
			}
			put(i, safeat.Old, set.TTL)
			found = true
		}
	}
	if !found {
		s.Question.Name = at
		put(first(links, s), s.State, s.Left)
	}
	return out
}

// linkOf is the index of the link of a name and type; -1 if there is none.
func linkOf(links []safeat.Link, name dnsname.Name, t rr.Type) int {
	return slices.IndexFunc(links, func(l safeat.Link) bool { return l.Role == safeat.Data && l.Owner == name && l.Type == t })
}

// first is the link that a question begins at: what is asked for, or the alias in its place.
func first(links []safeat.Link, s Sample) int {
	if i := linkOf(links, s.Question.Name, s.Question.Type); i >= 0 {
		return i
	}
	return slices.IndexFunc(links, func(l safeat.Link) bool {
		return l.Role == safeat.Data && l.Owner == s.Question.Name && (l.Type == rr.TypeCNAME || l.Type == rr.TypeDNAME)
	})
}

// same reports whether any server of the authority gives a set.
func same(f *Facts, set Set) bool {
	equal := func(s Set) bool { return s.Name == set.Name && s.Type == set.Type && slices.Equal(s.Data, set.Data) }
	for _, a := range f.Answers {
		if slices.ContainsFunc(a.Sets, equal) {
			return true
		}
	}
	for _, h := range f.Chain {
		if h.From == set.Name && typeOf(h.Type) == set.Type && slices.Equal(set.Data, []string{h.To.String()}) {
			return true
		}
	}
	return slices.ContainsFunc(f.Outcomes, func(o Outcome) bool { return slices.ContainsFunc(o.Sets, equal) })
}
