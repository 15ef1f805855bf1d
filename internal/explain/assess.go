package explain

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// Assessment is a resolver and how its answers compare with those of the authority.
type Assessment struct {
	Cache
	Answers []Assessed // one for each of Samples, in the same order
}

// Assessed is an answer of a resolver and how it compares with those of the authority.
type Assessed struct {
	Sample
	State safeat.State
	Left  uint32 // remaining TTL of the record set that decides the state; of a negative answer, that of its SOA
	Known bool   // an earlier scan saw a set of this answer at the authority, which no longer has it

	differs difference
}

// Assess compares what resolvers answered with what the authority answers. It is a function of Facts alone: a record that was
// written by an earlier program gets the verdict of this one.
//
// An answer is old only if nothing else explains it: not a filter, not an authority that answers by network or in turn.
func Assess(f *Facts) []Assessment {
	a := newAuthority(f)
	out := make([]Assessment, len(f.Caches))
	for i, c := range f.Caches {
		out[i].Cache = c
		for _, s := range c.Samples {
			out[i].Answers = append(out[i].Answers, a.assess(c, s))
		}
	}
	a.reconcile(out)
	return out
}

// Extended errors (RFC 8914 section 4).
const (
	edeStale    = 3
	edeForged   = 4
	edeBlocked  = 15
	edeCensored = 16
	edeFiltered = 17
	edeStaleNX  = 19
)

func (s Sample) said(codes ...uint16) bool {
	return slices.ContainsFunc(s.Errors, func(e iterate.EDE) bool { return slices.Contains(codes, e.Code) })
}

// SaysStale reports whether the resolver says that its answer has expired.
func (s Sample) SaysStale() bool { return s.said(edeStale, edeStaleNX) }

// SaysFiltered reports whether the resolver says that a filter made its answer.
func (s Sample) SaysFiltered() bool { return s.said(edeBlocked, edeCensored, edeFiltered, edeForged) }

// Version is a key for the question and the data of an answer, without its TTLs.
func (s Sample) Version() string {
	var b strings.Builder
	b.WriteString(s.Question.String())
	for _, set := range s.Sets {
		b.WriteString("\n" + set.Name.String() + " " + set.Type.String() + " " + strings.Join(set.Data, ","))
	}
	return b.String()
}

// authority is what the servers of the zones of a name and its aliases answer.
type authority struct {
	*Facts
	names  []dnsname.Name // the name and the targets of its aliases
	varied func() bool    // servers answer differently on purpose
}

func newAuthority(f *Facts) *authority {
	a := &authority{Facts: f, names: []dnsname.Name{f.Name}}
	for _, h := range f.Chain {
		a.names = append(a.names, h.To)
	}
	a.varied = sync.OnceValue(func() bool {
		return slices.ContainsFunc(Differences(f), func(d Difference) bool { return d.Manner != Divided })
	})
	return a
}

func (a *authority) assess(c Cache, s Sample) Assessed {
	out := Assessed{Sample: s, Known: a.had(s.Sets)}
	out.differs, out.Left = a.firstDifference(s)
	alters := c.Filters || c.NoVote
	switch {
	case s.Rcode == "":
		out.State = safeat.Silent
	case s.SaysFiltered():
		out.State = safeat.Filtered
	case s.Rcode == "SERVFAIL":
		out.State = safeat.Failed
	case s.Rcode != "NOERROR" && s.Rcode != "NXDOMAIN":
		out.State = safeat.Silent // REFUSED and the like say nothing about the cache
	case s.SaysStale():
		out.State = safeat.Stale
	case out.differs == same:
		out.State = safeat.Current
	case out.differs == sinkhole, out.differs == nothing && (a.madeUp(s.SOA) || alters && !a.ofChain(s.SOA)):
		out.State = safeat.Filtered
	case out.differs == nothing:
		out.State = safeat.Negative
	case !out.Known && (a.varied() || a.scoped(s.Question.Type)):
		out.State = safeat.Current
	case !out.Known && alters && out.differs == other:
		out.State = safeat.Filtered
	default:
		out.State = safeat.Old
	}
	return out
}

// difference is how an answer differs from those of the authority.
type difference int

const (
	same     difference = iota
	other               // another target, or other data
	part                // some of the records, where the authority always gives all
	nothing             // no records at the end of the chain
	sinkhole            // an address that leads nowhere
)

// firstDifference follows the aliases of an answer to the first set that the authority does not have. It returns the remaining
// TTL of that set; without a difference, the least TTL of all sets.
func (a *authority) firstDifference(s Sample) (difference, uint32) {
	least := ^uint32(0)
	name := s.Question.Name
	for range len(s.Sets) + 1 {
		if set, ok := Find(s.Sets, name, s.Question.Type); ok {
			switch {
			case a.has(set) && a.isWhole(set):
				return same, min(least, set.TTL)
			case a.has(set):
				return part, set.TTL
			case !slices.ContainsFunc(set.Data, func(d string) bool { return !isSinkhole(d) }):
				return sinkhole, set.TTL
			}
			return other, set.TTL
		}
		set, ok := Find(s.Sets, name, rr.TypeCNAME)
		if !ok || len(set.Data) == 0 {
			break
		}
		target, err := dnsname.Parse(set.Data[0])
		if err != nil || !a.has(set) {
			return other, set.TTL
		}
		name, least = target, min(least, set.TTL)
	}
	if s.SOA == nil {
		return nothing, 0
	}
	return nothing, s.SOA.TTL
}

// sets calls yield with each set of a name and type that the authority was seen to have.
func (a *authority) sets(name dnsname.Name, t rr.Type, yield func(Set)) {
	take := func(sets []Set) {
		if s, ok := Find(sets, name, t); ok {
			yield(s)
		}
	}
	for _, answer := range a.Answers {
		take(answer.Sets)
		for _, sets := range answer.Others {
			take(sets)
		}
	}
	for _, o := range a.Outcomes {
		take(o.Sets)
	}
	for _, h := range a.Chain { // a cache shows a DNAME as the CNAME that it makes (RFC 6672 section 3.1)
		if h.From == name && (t == rr.TypeCNAME || t == typeOf(h.Type)) {
			yield(Set{Name: name, Type: t, TTL: h.TTL, Data: []string{h.To.String()}})
		}
	}
}

// has reports whether the authority was seen to have all records of a set.
func (a *authority) has(set Set) bool {
	known := map[string]bool{}
	a.sets(set.Name, set.Type, func(s Set) {
		for _, d := range s.Data {
			known[d] = true
		}
	})
	return !slices.ContainsFunc(set.Data, func(d string) bool { return !known[d] })
}

// gives reports whether the authority was seen to have exactly this set.
func (a *authority) gives(set Set) (found bool) {
	a.sets(set.Name, set.Type, func(s Set) { found = found || slices.Equal(s.Data, set.Data) })
	return found
}

// isWhole reports whether a set has all records that the authority has. A cache keeps sets whole: a part is a version from
// before a record was added. Where servers differ, or give a part at a time, every part counts as whole.
func (a *authority) isWhole(set Set) bool {
	var all []string
	differ := false
	a.sets(set.Name, set.Type, func(s Set) {
		differ = differ || all != nil && !slices.Equal(all, s.Data)
		all = s.Data
	})
	return differ || len(set.Data) >= len(all)
}

// had reports whether an earlier scan saw one of the sets at the authority, which no longer has it.
func (a *authority) had(sets []Set) bool {
	return slices.ContainsFunc(sets, func(set Set) bool {
		return slices.ContainsFunc(a.Past, func(p Past) bool {
			was, ok := Find(p.Sets, set.Name, set.Type)
			return ok && slices.Equal(was.Data, set.Data)
		}) && !a.gives(set)
	})
}

// isSinkhole reports whether data is an address that filters answer with.
func isSinkhole(data string) bool {
	addr, err := netip.ParseAddr(data)
	return err == nil && (addr.IsUnspecified() || addr.IsLoopback())
}

// madeUp reports whether a denial is of a zone that no name of the chain is in: a filter made it.
func (a *authority) madeUp(soa *SOA) bool {
	return soa != nil && !slices.ContainsFunc(a.names, func(n dnsname.Name) bool { return n.IsIn(soa.Owner) })
}

// ofChain reports whether a denial is of a zone that the answer comes from.
func (a *authority) ofChain(soa *SOA) bool {
	return soa != nil && (soa.Owner == a.Zone ||
		slices.ContainsFunc(a.Chain, func(h Hop) bool { return h.Zone == soa.Owner }) ||
		slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Zone == soa.Owner }))
}

// scoped reports whether a server says that its answer for a type is for some networks only (RFC 7871 section 7.2.1).
func (a *authority) scoped(t rr.Type) bool {
	return slices.ContainsFunc(a.Answers, func(answer Answer) bool {
		return answer.Question.Type == t && answer.Class == iterate.Answer && slices.Contains(a.names, answer.Question.Name) &&
			slices.ContainsFunc(answer.Evidence, func(id int) bool {
				v, ok := a.view(id)
				return ok && v.ECS.IsValid() && v.ECS.Bits() > 0
			})
	})
}

// view is the reply of an exchange, if there is one.
func (a *authority) view(id int) (iterate.View, bool) {
	if id < 0 || id >= len(a.Exchanges) {
		return iterate.View{}, false
	}
	v, err := a.Exchanges[id].View()
	return v, err == nil
}

// manyVersions is how many different answers that no authority gives here show that it answers by network: a change leaves one
// older version behind, two changes leave two.
const manyVersions = 3

// reconcile compares answers of different resolvers that the authority did not give here. They are current if there are too many
// versions, or if a resolver was seen to fetch one: then the authority gives it there. An answer that only the name of a filtering
// resolver makes suspicious is no filter's if a resolver without a filter has it.
func (a *authority) reconcile(all []Assessment) {
	old, fetched, count := map[string]bool{}, map[string]bool{}, map[iterate.Question]int{}
	each := func(do func(s *Assessed, version string)) {
		for i := range all {
			for j := range all[i].Answers {
				s := &all[i].Answers[j]
				if (s.State == safeat.Old || s.Suspected() && s.differs == other) && !s.Known {
					do(s, s.Version())
				}
			}
		}
	}
	each(func(s *Assessed, v string) {
		if s.State == safeat.Old && !old[v] {
			old[v] = true
			count[s.Question]++
		}
		fetched[v] = fetched[v] || a.justFetched(s)
	})
	each(func(s *Assessed, v string) {
		switch {
		case fetched[v], old[v] && count[s.Question] >= manyVersions:
			s.State = safeat.Current
		case old[v]:
			s.State = safeat.Old
		}
	})
}

// Suspected reports whether only the name of the resolver says that a filter made the answer. It may be an older one.
func (s Assessed) Suspected() bool {
	return s.State == safeat.Filtered && len(s.Errors) == 0 && s.Rcode == "NOERROR" && len(s.Sets) > 0 && s.differs != sinkhole
}

// justFetched reports whether a resolver that did not have an answer came back with one that has the whole TTL.
func (a *authority) justFetched(s *Assessed) bool {
	if !a.missed(s.Sample) {
		return false
	}
	return slices.ContainsFunc(a.Answers, func(answer Answer) bool {
		return slices.ContainsFunc(answer.Sets, func(set Set) bool {
			_, ok := Find(s.Sets, set.Name, set.Type)
			return ok && set.TTL == s.Left
		})
	})
}

// missed reports whether the resolver, asked without recursion right before, had nothing.
func (a *authority) missed(s Sample) bool {
	if len(s.Evidence) == 0 || s.Evidence[0] < 0 || s.Evidence[0] >= len(a.Exchanges) {
		return false
	}
	this := &a.Exchanges[s.Evidence[0]]
	for id := s.Evidence[0] - 1; id >= 0; id-- {
		if e := &a.Exchanges[id]; e.Server != this.Server || e.Question != this.Question {
			continue
		}
		v, ok := a.view(id)
		denies := v.Rcode == "NXDOMAIN" || slices.ContainsFunc(v.Authority, func(r iterate.Record) bool { return r.Type == rr.TypeSOA })
		return ok && !v.RD && len(v.Answer) == 0 && v.Rcode != "REFUSED" && !denies
	}
	return false
}

// Find returns the set of a name and type.
func Find(sets []Set, name dnsname.Name, t rr.Type) (Set, bool) {
	i := slices.IndexFunc(sets, func(s Set) bool { return s.Name == name && s.Type == t })
	if i < 0 {
		return Set{}, false
	}
	return sets[i], true
}
