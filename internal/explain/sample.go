package explain

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// samples returns what one answer of a resolver says about each link. An answer with aliases has a set for each alias,
// with its own TTL. The first set that the authority does not have makes the answer old.
func samples(a *authority, links []safeat.Link, s Assessed) (out []safeat.Sample) {
	seen := a.At.Add(s.At)
	add := func(link int, state safeat.State, left uint32) {
		if link >= 0 {
			out = append(out, safeat.Sample{Link: link, State: state, Left: left, Seen: seen})
		}
	}
	if s.State == safeat.Current {
		for _, set := range s.Sets {
			add(linkOf(links, set.Name, set.Type), safeat.Current, set.TTL)
		}
		if len(out) == 0 {
			add(firstLink(links, s.Question), safeat.Current, s.Left)
		}
		return out
	}
	found := false
	at := s.Question.Name
	for _, set := range s.Sets {
		i := linkOf(links, set.Name, set.Type)
		switch {
		case i >= 0 && a.hasExactly(set):
			add(i, safeat.Current, set.TTL)
			if set.Type == rr.TypeCNAME && len(set.Data) == 1 {
				_ = at.UnmarshalText([]byte(set.Data[0]))
			}
		case s.State == safeat.Old && !found:
			if i < 0 {
				i = firstLink(links, s.Question)
			}
			add(i, safeat.Old, set.TTL)
			found = true
		}
	}
	if !found {
		add(firstLink(links, iterate.Question{Name: at, Type: s.Question.Type}), s.State, s.Left)
	}
	return out
}

// linkOf returns the index of the link for a name and type, or -1.
func linkOf(links []safeat.Link, name dnsname.Name, t rr.Type) int {
	return slices.IndexFunc(links, func(l safeat.Link) bool {
		return l.Role == safeat.Data && l.Owner == name && l.Type == t
	})
}

// firstLink returns the index of the link that answers a question first: the queried set, or the alias at its name.
func firstLink(links []safeat.Link, q iterate.Question) int {
	if i := linkOf(links, q.Name, q.Type); i >= 0 {
		return i
	}
	return slices.IndexFunc(links, func(l safeat.Link) bool {
		return l.Role == safeat.Data && l.Owner == q.Name && (l.Type == rr.TypeCNAME || l.Type == rr.TypeDNAME)
	})
}
