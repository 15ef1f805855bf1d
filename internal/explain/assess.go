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
	"github.com/nameplane/nameplane/internal/wire"
)

// Assessment is a resolver with its answers, each compared with those of the authority.
type Assessment struct {
	Cache
	Answers []Assessed // one for each of Samples, in the same order
}

// State returns the overall state of the resolver, for reports and times alike. Answers with CD set count only if
// there are no others: its users do not get them.
func (c Assessment) State() safeat.State {
	var states, unchecked []safeat.State
	for _, s := range c.Answers {
		if s.NoCheck {
			unchecked = append(unchecked, s.State)
		} else {
			states = append(states, s.State)
		}
	}
	if len(states) == 0 {
		states = unchecked
	}
	return safeat.Overall(states...)
}

// Assessed is an answer of a resolver, compared with those of the authority.
type Assessed struct {
	Sample
	State safeat.State
	Left  uint32 // remaining TTL of the set that decides the state; for a negative answer, that of its SOA record
	Known bool   // an earlier scan saw a set of this answer at the authority, which no longer has it

	differs difference
}

// Assess compares the answers of resolvers with those of the authority. It depends on Facts alone, so that facts saved
// by an earlier program get the verdict of this one.
//
// An answer is old only if nothing else explains it: neither a filter, nor an authority that answers by client network
// or rotates.
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

// hasError reports whether the answer has one of these extended error codes.
func (s Sample) hasError(codes ...uint16) bool {
	return slices.ContainsFunc(s.Errors, func(e iterate.EDE) bool { return slices.Contains(codes, e.Code) })
}

// SaysStale reports whether the resolver says that the TTL of its answer has expired (RFC 8767).
func (s Sample) SaysStale() bool { return s.hasError(wire.EDEStale, wire.EDEStaleNXDomain) }

// SaysFiltered reports whether the resolver says that its answer comes from a filter.
func (s Sample) SaysFiltered() bool {
	return s.hasError(wire.EDEBlocked, wire.EDECensored, wire.EDEFiltered, wire.EDEForged)
}

// Version returns a key for the question and the data of an answer, without the TTLs.
func (s Sample) Version() string {
	var b strings.Builder
	b.WriteString(s.Question.String())
	for _, set := range s.Sets {
		b.WriteString("\n" + set.Name.String() + " " + set.Type.String() + " " + strings.Join(set.Data, ","))
	}
	return b.String()
}

// authority holds the answers of the authoritative servers for a name and its aliases.
type authority struct {
	*Facts
	names  []dnsname.Name // the name and the targets of its aliases
	varied func() bool    // reports whether servers answer differently on purpose; computed once
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

// assess finds the state of one answer. The order of the cases matters: what the resolver says about its answer comes
// before a comparison, and every harmless explanation comes before Old.
func (a *authority) assess(c Cache, s Sample) Assessed {
	out := Assessed{Sample: s, Known: a.hadBefore(s.Sets)}
	out.differs, out.Left = a.firstDifference(s)
	mayAlter := c.Filters || c.NoVote
	switch {
	case s.Rcode == "":
		out.State = safeat.Silent
	case s.SaysFiltered():
		out.State = safeat.Filtered
	case s.Rcode == "SERVFAIL":
		out.State = safeat.Failed
	case s.Rcode != "NOERROR" && s.Rcode != "NXDOMAIN":
		out.State = safeat.Silent // REFUSED and other errors say nothing about the cache
	case s.SaysStale():
		out.State = safeat.Stale
	case out.differs == same:
		out.State = safeat.Current
	case out.differs == sinkhole,
		out.differs == nothing && (a.foreignDenial(s.SOA) || mayAlter && !a.denialFromChain(s.SOA)):
		out.State = safeat.Filtered
	case out.differs == nothing:
		out.State = safeat.Negative
	case !out.Known && (a.varied() || a.scoped(s.Question.Type)):
		out.State = safeat.Current
	case !out.Known && mayAlter && out.differs == other:
		out.State = safeat.Filtered
	default:
		out.State = safeat.Old
	}
	return out
}

// difference is the kind of difference between an answer and those of the authority.
type difference int

const (
	same     difference = iota
	other               // another target, or other data
	part                // only some of the records that the authority always returns
	nothing             // no records at the end of the chain
	sinkhole            // an unspecified or loopback address, as filters return
)

// firstDifference follows the aliases of an answer to the first set that the authority does not have, and returns the
// remaining TTL of that set. Without a difference it returns the lowest TTL of all sets.
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

// sets calls yield with each set for a name and type that any authoritative server returned.
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
	for _, h := range a.Chain { // a resolver shows a DNAME as the synthesised CNAME (RFC 6672 section 3.1)
		if h.From == name && (t == rr.TypeCNAME || t == typeOf(h.Type)) {
			yield(Set{Name: name, Type: t, TTL: h.TTL, Data: []string{h.To.String()}})
		}
	}
}

// has reports whether the authority has all records of a set.
func (a *authority) has(set Set) bool {
	known := map[string]bool{}
	a.sets(set.Name, set.Type, func(s Set) {
		for _, d := range s.Data {
			known[d] = true
		}
	})
	return !slices.ContainsFunc(set.Data, func(d string) bool { return !known[d] })
}

// hasExactly reports whether an authoritative server returned exactly this set.
func (a *authority) hasExactly(set Set) (found bool) {
	a.sets(set.Name, set.Type, func(s Set) { found = found || slices.Equal(s.Data, set.Data) })
	return found
}

// isWhole reports whether a set has all records that the authority has. A cache stores whole sets, so a part of one is
// a version from before a record was added. Where servers differ or rotate, every part counts as whole.
func (a *authority) isWhole(set Set) bool {
	var all []string
	differ := false
	a.sets(set.Name, set.Type, func(s Set) {
		differ = differ || all != nil && !slices.Equal(all, s.Data)
		all = s.Data
	})
	return differ || len(set.Data) >= len(all)
}

// hadBefore reports whether an earlier scan saw one of the sets at the authority, which no longer has it.
func (a *authority) hadBefore(sets []Set) bool {
	return slices.ContainsFunc(sets, func(set Set) bool {
		return slices.ContainsFunc(a.Past, func(p Past) bool {
			was, ok := Find(p.Sets, set.Name, set.Type)
			return ok && slices.Equal(was.Data, set.Data)
		}) && !a.hasExactly(set)
	})
}

// isSinkhole reports whether data is an address that filters return for blocked names.
func isSinkhole(data string) bool {
	addr, err := netip.ParseAddr(data)
	return err == nil && (addr.IsUnspecified() || addr.IsLoopback())
}

// foreignDenial reports whether the SOA record of a denial belongs to a zone that contains no name of the chain. Only a
// filter creates such a denial.
func (a *authority) foreignDenial(soa *SOA) bool {
	return soa != nil && !slices.ContainsFunc(a.names, func(n dnsname.Name) bool { return n.IsIn(soa.Owner) })
}

// denialFromChain reports whether the SOA record of a denial belongs to a zone of the chain.
func (a *authority) denialFromChain(soa *SOA) bool {
	return soa != nil && (soa.Owner == a.Zone ||
		slices.ContainsFunc(a.Chain, func(h Hop) bool { return h.Zone == soa.Owner }) ||
		slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Zone == soa.Owner }))
}

// scoped reports whether a server limits its answer for a type to some client networks (RFC 7871 section 7.2.1).
func (a *authority) scoped(t rr.Type) bool {
	return slices.ContainsFunc(a.Answers, func(answer Answer) bool {
		return answer.Question.Type == t && answer.Class == iterate.Answer &&
			slices.Contains(a.names, answer.Question.Name) &&
			slices.ContainsFunc(answer.Evidence, func(id int) bool {
				v, ok := a.view(id)
				return ok && v.ECS.IsValid() && v.ECS.Bits() > 0
			})
	})
}

// view returns the parsed reply of an exchange.
func (a *authority) view(id int) (iterate.View, bool) {
	if id < 0 || id >= len(a.Exchanges) {
		return iterate.View{}, false
	}
	v, err := a.Exchanges[id].View()
	return v, err == nil
}

// manyVersions is the number of different unknown answers that shows an authority that answers by network. One change
// leaves one older version in caches, and two changes leave two.
const manyVersions = 3

// reconcile compares answers of different resolvers that the authority did not give here. They are current if there are
// too many versions, or if a resolver has just fetched one: then the authority gives that answer to that network. An
// answer that is suspected only because its resolver filters does not come from the filter if a resolver without a
// filter has it too.
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

// Suspected reports whether the answer counts as filtered only because its resolver is known to filter. It may also be
// an older answer.
func (s Assessed) Suspected() bool {
	return s.State == safeat.Filtered && len(s.Errors) == 0 && s.Rcode == "NOERROR" && len(s.Sets) > 0 &&
		s.differs != sinkhole
}

// justFetched reports whether a resolver had nothing cached, and then returned an answer with the full TTL.
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

// missed reports whether the resolver had nothing cached when it was queried without recursion just before.
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
		denies := v.Rcode == "NXDOMAIN" ||
			slices.ContainsFunc(v.Authority, func(r iterate.Record) bool { return r.Type == rr.TypeSOA })
		return ok && !v.RD && len(v.Answer) == 0 && v.Rcode != "REFUSED" && !denies
	}
	return false
}

// Find returns the set for a name and type.
func Find(sets []Set, name dnsname.Name, t rr.Type) (Set, bool) {
	i := slices.IndexFunc(sets, func(s Set) bool { return s.Name == name && s.Type == t })
	if i < 0 {
		return Set{}, false
	}
	return sets[i], true
}
