package explain

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// samples are what one answer of a cache says of each link. An answer along aliases has a set for each, with a TTL of its
// own; the first that is not the authority's is what makes it old.
func samples(a *authority, links []safeat.Link, s Assessed) (out []safeat.Sample) {
	seen := a.At.Add(s.At)
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
			put(first(links, s.Question), safeat.Current, s.Left)
		}
		return out
	}
	found := false
	at := s.Question.Name
	for _, set := range s.Sets {
		i := linkOf(links, set.Name, set.Type)
		switch {
		case i >= 0 && a.gives(set):
			put(i, safeat.Current, set.TTL)
			if set.Type == rr.TypeCNAME && len(set.Data) == 1 {
				_ = at.UnmarshalText([]byte(set.Data[0]))
			}
		case s.State == safeat.Old && !found:
			if i < 0 {
				i = first(links, s.Question)
			}
			put(i, safeat.Old, set.TTL)
			found = true
		}
	}
	if !found {
		put(first(links, iterate.Question{Name: at, Type: s.Question.Type}), s.State, s.Left)
	}
	return out
}

// linkOf is the index of the link of a name and type; -1 if there is none.
func linkOf(links []safeat.Link, name dnsname.Name, t rr.Type) int {
	return slices.IndexFunc(links, func(l safeat.Link) bool { return l.Role == safeat.Data && l.Owner == name && l.Type == t })
}

// first is the link that a question begins at: what is asked for, or the alias in its place.
func first(links []safeat.Link, q iterate.Question) int {
	if i := linkOf(links, q.Name, q.Type); i >= 0 {
		return i
	}
	return slices.IndexFunc(links, func(l safeat.Link) bool {
		return l.Role == safeat.Data && l.Owner == q.Name && (l.Type == rr.TypeCNAME || l.Type == rr.TypeDNAME)
	})
}
