package gather

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// derive builds the facts about authoritative servers from the exchanges so far. The order matters: answers contain
// the serial of their server, and outcomes and wildcards are compared with the answers.
func (r *run) derive() {
	recs := r.records()
	r.facts.Servers = r.serversOf(recs)
	r.facts.Answers = r.answersOf(recs)
	r.facts.Chain = r.chainOf(recs)
	r.facts.Outcomes = r.outcomesOf()
	r.facts.Denials = r.denialsOf(recs)
	r.facts.Wildcard = r.wildcardOf(recs)
	r.describeVantage(recs)
}

// reached reports whether any server of an address family replied. One reply is proof; silence counts only if no
// server of the family replies. Without an attempt the fact stays unasked, so that a zone without IPv6 servers does
// not count as a host without IPv6.
func reached(recs []record, v4 bool) explain.Fact {
	fact := explain.Unasked
	for _, e := range recs {
		switch {
		case e.Server.Unmap().Is4() != v4 || e.Try == 0 || e.Class == iterate.Unknown:
		case e.view != nil:
			return explain.Yes
		case e.Class == iterate.Unreachable || e.Class == iterate.Timeout:
			fact = explain.No
		}
	}
	return fact
}

// answersOf returns the answers of each server to questions about the names of the chain.
func (r *run) answersOf(recs []record) (out []explain.Answer) {
	names := r.names()
	for _, e := range recs {
		if e.unusual || r.outdated(e) || e.Class == iterate.Unknown || !slices.Contains(names, e.Question.Name) ||
			!r.isData(e.Question) {
			continue
		}
		// Servers above the zone reply with referrals. Only the servers of the zone that holds the name have its data.
		if z := r.zoneFor(e.Question); z == nil || z.Name != e.Zone {
			continue
		}
		i := slices.IndexFunc(out, func(a explain.Answer) bool {
			return a.Question == e.Question && a.Server == e.Server && a.Subnet == e.subnet
		})
		if i < 0 {
			out = append(out, explain.Answer{Question: e.Question, Zone: e.Zone, Server: e.Server, Subnet: e.subnet,
				Serial: r.serial(e.Zone, e.Server)})
			i = len(out) - 1
		}
		addAnswer(&out[i], e)
	}
	slices.SortStableFunc(out, func(a, b explain.Answer) int {
		return cmp.Or(slices.Index(names, a.Question.Name)-slices.Index(names, b.Question.Name),
			cmp.Compare(a.Question.Type, b.Question.Type), a.Server.Compare(b.Server),
			cmp.Compare(a.Subnet.String(), b.Subnet.String()))
	})
	return out
}

// isData reports whether a question is asked because of the name, and not to examine its zone.
func (r *run) isData(q iterate.Question) bool {
	apex := r.facts.Kind == explain.Scan && q.Name == r.facts.Zone && slices.Contains(addresses, q.Type)
	return slices.Contains(r.types, q.Type) || q.Type == typeHTTPS || q.Type == rr.TypeMX || q.Type == rr.TypeTXT || apex
}

// addAnswer adds a reply. The first usable reply is the answer; replies that differ from it are added to Others.
// Replies of one server differ where it has several instances behind one address, or rotates records. Others keeps
// them: a single reply would hide that.
func addAnswer(a *explain.Answer, e record) {
	a.Evidence = append(a.Evidence, e.id)
	if e.view == nil || !e.Class.Usable() {
		if !a.Class.Usable() {
			a.Class = e.Class
		}
		return
	}
	sets := setsOf(e.view.Answer)
	if !a.Class.Usable() {
		a.Class, a.Sets = e.Class, sets
		if e.Class != iterate.Answer {
			a.SOA = soaOf(e.view.Authority)
		}
		return
	}
	if !sameSets(a.Sets, sets) && !slices.ContainsFunc(a.Others, func(o []explain.Set) bool { return sameSets(o, sets) }) {
		a.Others = append(a.Others, sets)
	}
}

// serial returns the serial of the zone at a server, or 0.
func (r *run) serial(zone dnsname.Name, server netip.Addr) uint32 {
	i := slices.IndexFunc(r.facts.Servers, func(s explain.Server) bool {
		return s.Zone == zone && s.Addr == server && s.SOA != nil
	})
	if i < 0 {
		return 0
	}
	return r.facts.Servers[i].SOA.Serial
}

// chainOf returns the chain of aliases. Each hop counts the servers that were asked and those that agree.
func (r *run) chainOf(recs []record) (out []explain.Hop) {
	for _, l := range r.trace.Chain {
		hop := explain.Hop{Link: l, Domain: registry.SuffixOf(l.To).Domain}
		var asked []netip.Addr
		for _, e := range recs {
			q := iterate.Question{Name: l.From, Type: r.types[0]}
			if e.Zone != l.Zone || e.Question != q || r.outdated(e) || !e.Class.Usable() || e.view == nil ||
				slices.Contains(asked, e.Server) {
				continue
			}
			asked = append(asked, e.Server)
			if target, ok := targetOf(e.view.Answer, l.From); ok && target == l.To {
				hop.Agree++
			}
		}
		hop.Servers = len(asked)
		out = append(out, hop)
	}
	return out
}

// ranks orders the results by how much they say. An answer ranks above a denial, because a server with an old version
// of the zone denies names that were added since. Failures have no rank: they say nothing about the name.
var ranks = map[iterate.Class]int{iterate.Answer: 3, iterate.NoData: 2, iterate.NXDomain: 1}

// outcomesOf returns the result for each type at the end of the chain. If servers differ, the result with the highest
// rank counts.
func (r *run) outcomesOf() (out []explain.Outcome) {
	for i, t := range r.types {
		if o, ok := r.aliasItself(t); ok && i > 0 {
			out = append(out, o)
			continue
		}
		o := explain.Outcome{Type: t, Result: iterate.Unknown}
		if names := r.names(); len(names) > 0 {
			o.End = names[len(names)-1]
		}
		for _, end := range r.ends() {
			o.End = end
			if c := r.best(end, t); ranks[c] > ranks[o.Result] {
				o.Result = c
			}
		}
		if z := r.zoneFor(iterate.Question{Name: o.End, Type: t}); z != nil {
			o.Zone = z.Name
		}
		if i == 0 {
			o.Result = r.trace.Result
			o.Plain = r.plainOutcome(o.Result)
		}
		if o.Result == iterate.Answer {
			o.Sets = r.mostCommon(o.End, t)
		}
		out = append(out, o)
	}
	return out
}

// aliasItself returns the outcome of a query for the CNAME of the name, beside other types that follow it.
func (r *run) aliasItself(t rr.Type) (explain.Outcome, bool) {
	if t != rr.TypeCNAME || len(r.trace.Chain) == 0 {
		return explain.Outcome{}, false
	}
	l := r.trace.Chain[0]
	set := explain.Set{Name: l.From, Type: t, TTL: l.TTL, Data: []string{l.To.String()}}
	return explain.Outcome{Type: set.Type, Result: iterate.Answer, End: l.From, Zone: l.Zone, Sets: []explain.Set{set}},
		l.Type == "CNAME"
}

// plainOutcome returns the result for resolvers without QNAME minimisation (RFC 9156), which send the full name to
// every server. A referral means that the servers below decide, and these are asked the same question by both kinds.
func (r *run) plainOutcome(minimised iterate.Class) iterate.Class {
	if r.fullNameClass == iterate.Referral {
		return minimised
	}
	return r.fullNameClass
}

// best returns the class with the highest rank among the answers of the servers. An answer that holds only an alias
// does not count: the walk would have followed it.
func (r *run) best(name dnsname.Name, t rr.Type) (best iterate.Class) {
	best = iterate.Unknown
	for _, a := range r.facts.Answers {
		if a.Question != (iterate.Question{Name: name, Type: t}) || a.Subnet.IsValid() || ranks[a.Class] <= ranks[best] {
			continue
		}
		if _, has := explain.Find(a.Sets, name, t); has || a.Class != iterate.Answer {
			best = a.Class
		}
	}
	return best
}

// mostCommon returns the record set that most servers have; of equally common sets, the first. Votes decide and not
// the first reply: one server that missed a transfer must not determine what the report calls the answer.
func (r *run) mostCommon(name dnsname.Name, t rr.Type) []explain.Set {
	var all []explain.Set
	for _, a := range r.facts.Answers {
		if set, ok := explain.Find(a.Sets, name, t); ok && a.Question.Type == t && !a.Subnet.IsValid() {
			all = append(all, set)
		}
	}
	most, votes := -1, 0
	for i, s := range all {
		n := 0
		for _, o := range all {
			if sameSets([]explain.Set{s}, []explain.Set{o}) {
				n++
			}
		}
		if n > votes {
			most, votes = i, n
		}
	}
	if most < 0 {
		return nil
	}
	return all[most : most+1 : most+1]
}
