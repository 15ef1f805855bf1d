package gather

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// compare judges all samples by what authorities have.
func (r *run) compare() {
	for i := range r.facts.Caches {
		c := &r.facts.Caches[i]
		for j := range c.Samples {
			r.judgeSample(*c, &c.Samples[j])
		}
	}
	r.settlePlaces()
}

// maxForThem bounds how many answers that seem to be old are asked for on behalf of the resolver.
const maxForThem = 4

// askForThem asks authorities, on behalf of the networks of resolvers (RFC 7871), for what these gave and we were not given. An
// authority that answers by place gives it to us then, and it is not old. It reports whether it asked.
func (r *run) askForThem() bool {
	seen := map[string]bool{}
	var qs []iterate.Query
	for _, c := range r.facts.Caches {
		for _, s := range c.Samples {
			key := s.Question.String() + version(s.Sets)
			if s.State != safeat.Old || seen[key] || len(seen) >= maxForThem || r.wasServed(s) {
				continue
			}
			seen[key] = true
			for _, name := range r.ends() {
				z := r.zoneOf(name)
				for _, server := range r.idlest(r.good(z)) {
					q := to(z.Name, server, name, s.Question.Type)
					q.ECS = network(c.Addr)
					qs = append(qs, q)
				}
			}
		}
	}
	r.askAll(qs)
	return len(qs) > 0
}

// network is as much of an address as is told to strangers (RFC 7871 §11.1).
func network(a netip.Addr) netip.Prefix {
	bits := 56
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits)
	return p
}

// Extended errors (RFC 8914 §4).
const (
	edeStale    = 3
	edeForged   = 4
	edeBlocked  = 15
	edeCensored = 16
	edeFiltered = 17
	edeStaleNX  = 19
)

// judgeSample is how an answer compares with those of authorities.
func (r *run) judgeSample(c explain.Cache, s *explain.Sample) {
	said := func(codes ...uint16) bool {
		return slices.ContainsFunc(s.Errors, func(e explain.EDE) bool { return slices.Contains(codes, e.Code) })
	}
	differs, left := r.firstDifference(*s)
	s.Left = left
	alters := c.Filters || c.NoVote
	switch {
	case s.Rcode == "":
		s.State = safeat.Silent
	case said(edeBlocked, edeCensored, edeFiltered, edeForged):
		s.State = safeat.Filtered
	case s.Rcode == "SERVFAIL":
		s.State = safeat.Failed
	case s.Rcode != "NOERROR" && s.Rcode != "NXDOMAIN":
		s.State = safeat.Silent // it does not want to tell
	case said(edeStale, edeStaleNX):
		s.State = safeat.Stale
	case differs == same:
		s.State = safeat.Current
	case differs == sinkhole, differs == nothing && r.madeUp(*s), alters && differs == other && !r.wasServed(*s):
		s.State = safeat.Filtered
	case alters && differs == nothing && !r.ofChain(s.SOA):
		s.State = safeat.Filtered
	case differs == nothing:
		s.State = safeat.Negative
	case r.varies(s.Question) && !r.wasServed(*s):
		s.State = safeat.Current
	default:
		s.State = safeat.Old
	}
}

// difference is what is different in an answer.
type difference int

const (
	same     difference = iota
	other               // another target, or other data
	part                // some of the records, where the authority always gives all
	nothing             // there is nothing at the end
	sinkhole            // an address that leads nowhere
)

// firstDifference follows the aliases of an answer to the first link that no authority has, and is the TTL left of that; if
// there is none, the least of all.
func (r *run) firstDifference(s explain.Sample) (difference, uint32) {
	least := ^uint32(0)
	name := s.Question.Name
	for range len(s.Sets) + 1 {
		if set, ok := find(s.Sets, name, s.Question.Type); ok {
			switch {
			case r.has(set) && r.allOf(set):
				return same, min(least, set.TTL)
			case r.has(set):
				return part, set.TTL
			case !slices.ContainsFunc(set.Data, func(d string) bool { return !isSinkhole(d) }):
				return sinkhole, set.TTL
			}
			return other, set.TTL
		}
		set, ok := find(s.Sets, name, rr.TypeCNAME)
		if !ok || len(set.Data) == 0 {
			break
		}
		target, err := dnsname.Parse(set.Data[0])
		if err != nil || !r.leads(name, target) {
			return other, set.TTL
		}
		name, least = target, min(least, set.TTL)
	}
	return nothing, negativeLeft(s)
}

func negativeLeft(s explain.Sample) uint32 {
	if s.SOA == nil {
		return 0
	}
	return s.SOA.TTL
}

// has reports whether all records of a set are among those that servers of the zone have given.
func (r *run) has(set explain.Set) bool {
	known := map[string]bool{}
	for _, a := range r.facts.Answers {
		for _, sets := range append([][]explain.Set{a.Sets}, a.Others...) {
			if s, ok := find(sets, set.Name, set.Type); ok {
				for _, d := range s.Data {
					known[d] = true
				}
			}
		}
	}
	return !slices.ContainsFunc(set.Data, func(d string) bool { return !known[d] })
}

// allOf reports whether a set of what the authority has is all of it. A cache keeps sets whole: with a part, it has what there was before
// a record was added. Where servers differ, or give out a part at a time, that cannot be told.
func (r *run) allOf(set explain.Set) bool {
	var all []string
	for _, a := range r.facts.Answers {
		for _, sets := range append([][]explain.Set{a.Sets}, a.Others...) {
			s, ok := find(sets, set.Name, set.Type)
			switch {
			case !ok:
			case all == nil:
				all = s.Data
			case !slices.Equal(all, s.Data):
				return true
			}
		}
	}
	return len(set.Data) >= len(all)
}

// leads reports whether an alias is one that a server of the zone has.
func (r *run) leads(from, to dnsname.Name) bool {
	return slices.ContainsFunc(r.trace.Chain, func(l iterate.Link) bool { return l.From == from && l.To == to }) ||
		r.has(explain.Set{Name: from, Type: rr.TypeCNAME, Data: []string{to.String()}})
}

// isSinkhole reports whether data is an address that filters answer with.
func isSinkhole(data string) bool {
	a, err := netip.ParseAddr(data)
	return err == nil && (a.IsUnspecified() || a.IsLoopback())
}

// madeUp reports whether a denial is of no zone that the name, or what its aliases lead to, is in: a filter made it.
func (r *run) madeUp(s explain.Sample) bool {
	return s.SOA != nil && !slices.ContainsFunc(r.names(), func(n dnsname.Name) bool { return n.IsIn(s.SOA.Owner) })
}

// ofChain reports whether a denial is one of a zone of the chain, and no filter's own.
func (r *run) ofChain(soa *explain.SOA) bool {
	return soa != nil && slices.ContainsFunc(r.names(), func(n dnsname.Name) bool {
		z := r.zoneOf(n)
		return z != nil && z.Name == soa.Owner
	})
}

// varies reports whether the authority gives different answers on purpose: in turns, or by place. Then an answer that was not
// seen there says nothing about its age.
func (r *run) varies(q iterate.Question) bool {
	names := r.names()
	for _, a := range r.facts.Answers {
		if !slices.Contains(names, a.Question.Name) || a.Question.Type != q.Type || a.Class != iterate.Answer {
			continue
		}
		if len(a.Others) > 0 || a.Subnet.IsValid() && r.elsewhere(a) || r.scoped(a) {
			return true
		}
	}
	return false
}

// elsewhere reports whether a server answers a subnet otherwise than us.
func (r *run) elsewhere(a explain.Answer) bool {
	return slices.ContainsFunc(r.facts.Answers, func(b explain.Answer) bool {
		return a.Question == b.Question && a.Server == b.Server && !b.Subnet.IsValid() && !sameSets(a.Sets, b.Sets)
	})
}

// scoped reports whether a server says that an answer is for a part of the world only.
func (r *run) scoped(a explain.Answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(a.Evidence, func(id int) bool {
		v, err := r.exchanges[id].View()
		return err == nil && v.ECS.IsValid() && v.ECS.Bits() > 0
	})
}

// wasServed reports whether an earlier look saw at the authority what the sample has.
func (r *run) wasServed(s explain.Sample) bool {
	for _, past := range r.facts.Past {
		for _, set := range s.Sets {
			if old, ok := find(past.Sets, set.Name, set.Type); ok && slices.Equal(old.Data, set.Data) {
				return true
			}
		}
	}
	return false
}

// manyVersions is how many answers that no authority gives here show that it answers by place: a change leaves one older
// version behind, two leave two.
const manyVersions = 3

// settlePlaces takes for current what was taken for old, if there are too many versions of it, or if a resolver was seen to fetch
// it: then the authority gives it to that one, though not to us. And it takes for old what was taken for a filter's, if others have it.
func (r *run) settlePlaces() {
	type of struct {
		iterate.Question
		version string
	}
	versions, served := map[of]bool{}, map[of]bool{}
	count := map[iterate.Question]int{}
	each := func(do func(*explain.Sample, of)) {
		for i := range r.facts.Caches {
			for j := range r.facts.Caches[i].Samples {
				if s := &r.facts.Caches[i].Samples[j]; (s.State == safeat.Old || r.perhapsFiltered(*s)) && !r.wasServed(*s) {
					do(s, of{s.Question, version(s.Sets)})
				}
			}
		}
	}
	each(func(s *explain.Sample, v of) {
		if !versions[v] && s.State == safeat.Old {
			versions[v] = true
			count[s.Question]++
		}
		served[v] = served[v] || r.justFetched(*s)
	})
	each(func(s *explain.Sample, v of) {
		switch {
		case served[v], versions[v] && count[s.Question] >= manyVersions:
			s.State = safeat.Current
		case versions[v]:
			s.State = safeat.Old // resolvers that do not filter have it, too
		}
	})
}

// perhapsFiltered reports whether nothing but the name of the resolver says that an answer is a filter's.
func (r *run) perhapsFiltered(s explain.Sample) bool {
	differs, _ := r.firstDifference(s)
	return s.State == safeat.Filtered && differs == other && len(s.Errors) == 0
}

// justFetched reports whether a resolver that did not have an answer came back with one that is as young as can be.
func (r *run) justFetched(s explain.Sample) bool {
	if len(s.Evidence) == 0 || !r.fetched[s.Evidence[len(s.Evidence)-1]] {
		return false
	}
	_, left := r.firstDifference(s)
	for _, a := range r.facts.Answers {
		for _, set := range a.Sets {
			if set.TTL == left && slices.ContainsFunc(s.Sets, func(o explain.Set) bool { return o.Name == set.Name && o.Type == set.Type }) {
				return true
			}
		}
	}
	return false
}

// version is the data of an answer.
func version(sets []explain.Set) string {
	var b strings.Builder
	for _, s := range sets {
		b.WriteString(s.Name.String() + " " + s.Type.String() + " " + strings.Join(s.Data, ",") + "\n")
	}
	return b.String()
}
