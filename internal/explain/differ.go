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

// Manner is in which way answers differ.
type Manner string

// The manners. Only Divided is a fault for certain.
const (
	Divided  Manner = "divided"  // servers of one zone have different records
	Computed Manner = "computed" // servers of one version of the zone have different addresses: each makes its own answer
	ByPlace  Manner = "by place" // a server answers by the network that it is asked for
	Rotating Manner = "rotating" // a server gives some of a larger set in turn
)

// Difference is how the answers of a zone's servers to one question differ.
type Difference struct {
	Question iterate.Question `json:"question"`
	Zone     dnsname.Name     `json:"zone"`
	Manner   Manner           `json:"manner"`
	Groups   []Group          `json:"groups"`
}

// Group is what some servers say.
type Group struct {
	Class    iterate.Class  `json:"class"`
	Data     []string       `json:"data,omitempty"`
	Servers  []netip.Addr   `json:"servers"`
	Subnets  []netip.Prefix `json:"subnets,omitempty"` // that it was said for
	Serials  []uint32       `json:"serials,omitempty"`
	Evidence []int          `json:"evidence,omitempty"`
}

// Differences finds where authoritative answers differ, and tells apart what is meant to from what is not.
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
		for _, d := range differ(denials(asked[k])) {
			d.Zone, d.Question = k.zone, k.q
			out = append(out, d)
		}
	}
	return out
}

// dividedAt reports whether servers that do not differ on purpose have different records of a name and type.
func dividedAt(f *Facts, name dnsname.Name, t rr.Type) bool {
	return slices.ContainsFunc(Differences(f), func(d Difference) bool {
		return d.Manner == Divided && d.Question.Name == name && (d.Question.Type == t || t == rr.TypeCNAME)
	})
}

// turnsAt reports whether servers give some of a larger set of records of a name and type in turn.
func turnsAt(f *Facts, name dnsname.Name, t rr.Type) bool {
	return slices.ContainsFunc(Differences(f), func(d Difference) bool {
		return d.Manner == Rotating && d.Question.Name == name && d.Question.Type == t
	})
}

// denials gives denials without an SOA record, of which it cannot be told what they deny, the class that those with one have.
func denials(answers []Answer) []Answer {
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

func differ(answers []Answer) (out []Difference) {
	plain := slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return a.Subnet.IsValid() })
	turns := slices.ContainsFunc(answers, rotates)
	place := !turns && byPlace(answers)
	groups := group(plain)
	switch {
	case turns:
		out = append(out, Difference{Manner: Rotating, Groups: group(answers)})
	case place:
		out = append(out, Difference{Manner: ByPlace, Groups: group(answers)})
	}
	manner := Divided
	switch {
	case len(groups) < 2:
		return out
	case denies(groups), turns && strange(plain):
	case turns || place:
		return out
	case !oneVersion(groups):
	case overlap(groups):
		manner = Rotating
	case computable(plain[0].Question.Type):
		manner = Computed
	}
	return append(out, Difference{Manner: manner, Groups: groups})
}

// computable reports whether servers make records of a type while they are asked: addresses, because they follow an ALIAS
// themselves, or send users to a place near to them. What people write is the same in one version of a zone.
func computable(t rr.Type) bool { return t == rr.TypeA || t == rr.TypeAAAA || t == typeHTTPS }

const typeHTTPS = rr.Type(65)

// said is the data that an answer has for its question: of the type asked for, or the alias in its place.
func (a Answer) said() []string { return said(a.Question, a.Sets) }

func said(q iterate.Question, sets []Set) (out []string) {
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

// rotates reports whether a server was seen to give other data the next time.
func rotates(a Answer) bool {
	return slices.ContainsFunc(a.Others, func(sets []Set) bool {
		now, then := a.said(), said(a.Question, sets)
		return len(now) > 0 && len(then) > 0 && !slices.Equal(now, then)
	})
}

// byPlace reports whether one server gives different data for different networks.
func byPlace(answers []Answer) bool {
	for i, a := range answers {
		for _, b := range answers[i+1:] {
			if a.Server == b.Server && a.Subnet != b.Subnet && a.Class == b.Class && !slices.Equal(a.said(), b.said()) {
				return true
			}
		}
	}
	return false
}

// strange reports whether a server that was not seen to rotate gives only data that those which do never gave.
func strange(answers []Answer) bool {
	pool := map[string]bool{}
	for _, a := range answers {
		if !rotates(a) {
			continue
		}
		for _, sets := range append(a.Others, a.Sets) {
			for _, d := range said(a.Question, sets) {
				pool[d] = true
			}
		}
	}
	return slices.ContainsFunc(answers, func(a Answer) bool {
		return !rotates(a) && !slices.ContainsFunc(a.said(), func(d string) bool { return pool[d] })
	})
}

// denies reports whether some say that there is nothing.
func denies(groups []Group) bool {
	return slices.ContainsFunc(groups, func(g Group) bool { return g.Class != groups[0].Class })
}

// oneVersion reports whether all have an answer from the same version of the zone.
func oneVersion(groups []Group) bool {
	return !slices.ContainsFunc(groups, func(g Group) bool {
		return len(g.Serials) != 1 || g.Serials[0] == 0 || g.Serials[0] != groups[0].Serials[0] || g.Class != iterate.Answer
	})
}

// overlap reports whether the groups look like parts of one set. In one version of the zone, a record that is not shown is not
// a record that is not there.
func overlap(groups []Group) bool {
	for i, g := range groups {
		for _, h := range groups[i+1:] {
			if !slices.ContainsFunc(g.Data, func(d string) bool { return slices.Contains(h.Data, d) }) {
				return false
			}
		}
	}
	return true
}

// group puts together who says the same, what most say first.
func group(answers []Answer) (out []Group) {
	for _, a := range answers {
		data := a.said()
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
		return cmp.Or(cmp.Compare(len(b.Servers), len(a.Servers)), strings.Compare(strings.Join(a.Data, " "), strings.Join(b.Data, " ")))
	})
	return out
}
