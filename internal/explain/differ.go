package explain

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// Manner is the reason why answers differ.
type Manner string

// The manners. Only Divided is certainly a fault.
const (
	Divided   Manner = "divided"  // servers of one zone have different records
	Computed  Manner = "computed" // servers with the same serial have different addresses: each computes its own answer
	ByNetwork Manner = "by place" // a server answers by client network (EDNS Client Subnet)
	Rotating  Manner = "rotating" // one server returned different parts of a larger set to repeated queries
)

// Difference is how the answers of a zone's servers to one question differ.
type Difference struct {
	Question iterate.Question `json:"question"`
	Zone     dnsname.Name     `json:"zone"`
	Manner   Manner           `json:"manner"`
	Groups   []Group          `json:"groups"`
}

// Group is one answer, and the servers that give it.
type Group struct {
	Class    iterate.Class  `json:"class"`
	Data     []string       `json:"data,omitempty"`
	Servers  []netip.Addr   `json:"servers"`
	Subnets  []netip.Prefix `json:"subnets,omitempty"` // the client subnets that got this answer
	Serials  []uint32       `json:"serials,omitempty"`
	Evidence []int          `json:"evidence,omitempty"`
}

// Differences returns the questions to which authoritative servers give different answers, and whether that is
// intended.
func Differences(f *Facts) (out []Difference) {
	type key struct {
		zone dnsname.Name
		q    iterate.Question
	}
	var order []key
	asked := map[key][]Answer{}
	for _, a := range f.Answers {
		k := key{a.Zone, a.Question}
		if asked[k] == nil {
			order = append(order, k)
		}
		if a.Class == iterate.Answer || a.Class == iterate.NoData || a.Class == iterate.NXDomain || a.Class == iterate.NoSOA {
			asked[k] = append(asked[k], a)
		}
	}
	for _, k := range order {
		for _, d := range differ(classifyDenials(asked[k])) {
			d.Zone, d.Question = k.zone, k.q
			out = append(out, d)
		}
	}
	return out
}

// dividedAt reports whether servers have different records for a name and type, and not on purpose.
func dividedAt(f *Facts, name dnsname.Name, t rr.Type) bool {
	return slices.ContainsFunc(Differences(f), func(d Difference) bool {
		return d.Manner == Divided && d.Question.Name == name && (d.Question.Type == t || t == rr.TypeCNAME)
	})
}

// rotatesAt reports whether servers return parts of a larger set of records for a name and type in rotation.
func rotatesAt(f *Facts, name dnsname.Name, t rr.Type) bool {
	return slices.ContainsFunc(Differences(f), func(d Difference) bool {
		return d.Manner == Rotating && d.Question.Name == name && d.Question.Type == t
	})
}

// classifyDenials gives negative answers without an SOA record the class of those that have one. Without the SOA record
// it is not known whether they deny the name or the type.
func classifyDenials(answers []Answer) []Answer {
	class := iterate.NoData
	if slices.ContainsFunc(answers, func(a Answer) bool { return a.Class == iterate.NXDomain }) {
		class = iterate.NXDomain
	}
	for i := range answers {
		if answers[i].Class == iterate.NoSOA {
			answers[i].Class = class
		}
	}
	return answers
}

// differ returns the differences between the answers to one question. It first tests for rotation and for answers by
// client network. Any other difference is Divided or Computed.
func differ(answers []Answer) (out []Difference) {
	plain := slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return a.Subnet.IsValid() })
	rotating := slices.ContainsFunc(answers, rotates)
	byNetwork := !rotating && differByNetwork(answers)
	groups := group(plain)
	switch {
	case rotating:
		out = append(out, Difference{Manner: Rotating, Groups: group(answers)})
	case byNetwork:
		out = append(out, Difference{Manner: ByNetwork, Groups: group(answers)})
	}
	manner := Divided
	switch {
	case len(groups) < 2:
		return out
	case someDeny(groups), rotating && outsidePool(plain):
	case rotating && stuck(plain):
		if computable(plain[0].Question.Type) {
			manner = Computed
		}
	case rotating || byNetwork:
		return out
	case !oneVersion(groups):
	case computable(plain[0].Question.Type):
		manner = Computed
	}
	return append(out, Difference{Manner: manner, Groups: groups})
}

// computable reports whether servers may compute records of a type at query time: addresses, because the server
// resolves an ALIAS or selects a location near the user. All other types are written by people and are the same for one
// serial.
func computable(t rr.Type) bool { return t == rr.TypeA || t == rr.TypeAAAA || t == typeHTTPS }

const typeHTTPS = rr.Type(65)

// data returns the data that answers the question: of the queried type, or of the alias at the name.
func (a Answer) data() []string { return dataFor(a.Question, a.Sets) }

func dataFor(q iterate.Question, sets []Set) (out []string) {
	for _, s := range sets {
		if s.Name != q.Name || s.Type != q.Type && s.Type != rr.TypeCNAME {
			continue
		}
		for _, d := range s.Data {
			if s.Type != q.Type {
				d = s.Type.String() + " " + d
			}
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// rotates reports whether a server gave other data when it was queried again.
func rotates(a Answer) bool {
	return slices.ContainsFunc(a.Others, func(sets []Set) bool {
		now, then := a.data(), dataFor(a.Question, sets)
		return len(now) > 0 && len(then) > 0 && !slices.Equal(now, then)
	})
}

// differByNetwork reports whether one server gives different data for different client networks.
func differByNetwork(answers []Answer) bool {
	for i, a := range answers {
		for _, b := range answers[i+1:] {
			if a.Server == b.Server && a.Subnet != b.Subnet && a.Class == b.Class && !slices.Equal(a.data(), b.data()) {
				return true
			}
		}
	}
	return false
}

// outsidePool reports whether a server that does not rotate gives only data that no rotating server gave.
func outsidePool(answers []Answer) bool {
	pool := map[string]bool{}
	for _, a := range answers {
		if !rotates(a) {
			continue
		}
		for _, sets := range append(a.Others, a.Sets) {
			for _, d := range dataFor(a.Question, sets) {
				pool[d] = true
			}
		}
	}
	return slices.ContainsFunc(answers, func(a Answer) bool {
		return !rotates(a) && !slices.ContainsFunc(a.data(), func(d string) bool { return pool[d] })
	})
}

// manySamples is the number of equal replies that show that a server does not rotate. One that selects one of two
// addresses at random gives six equal replies in 3 % of all cases.
const manySamples = 6

// stuck reports whether a server always gives the same part of the records that the others return in rotation.
func stuck(answers []Answer) bool {
	pool := 0
	for _, a := range answers {
		if rotates(a) {
			pool = max(pool, len(a.data()))
			for _, sets := range a.Others {
				pool = max(pool, len(dataFor(a.Question, sets)))
			}
		}
	}
	return slices.ContainsFunc(answers, func(a Answer) bool {
		return !rotates(a) && len(a.Evidence) >= manySamples && len(a.data()) > 0 && len(a.data()) <= pool
	})
}

// someDeny reports whether some servers deny the records and others have them.
func someDeny(groups []Group) bool {
	return slices.ContainsFunc(groups, func(g Group) bool { return g.Class != groups[0].Class })
}

// oneVersion reports whether all groups answer from the same serial of the zone.
func oneVersion(groups []Group) bool {
	return !slices.ContainsFunc(groups, func(g Group) bool {
		return len(g.Serials) != 1 || g.Serials[0] == 0 || g.Serials[0] != groups[0].Serials[0] || g.Class != iterate.Answer
	})
}

// group collects the servers that give the same answer. The answer of most servers comes first.
func group(answers []Answer) (out []Group) {
	for _, a := range answers {
		data := a.data()
		i := slices.IndexFunc(out, func(g Group) bool { return g.Class == a.Class && slices.Equal(g.Data, data) })
		if i < 0 {
			i = len(out)
			out = append(out, Group{Class: a.Class, Data: data})
		}
		g := &out[i]
		if !slices.Contains(g.Servers, a.Server) {
			g.Servers = append(g.Servers, a.Server)
		}
		if a.Subnet.IsValid() && !slices.Contains(g.Subnets, a.Subnet) {
			g.Subnets = append(g.Subnets, a.Subnet)
		}
		if !slices.Contains(g.Serials, a.Serial) {
			g.Serials = append(g.Serials, a.Serial)
		}
		g.Evidence = append(g.Evidence, a.Evidence...)
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(b.Servers), len(a.Servers)),
			strings.Compare(strings.Join(a.Data, " "), strings.Join(b.Data, " ")))
	})
	return out
}
