package gather

import (
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
)

// orderExchanges copies the exchanges into the facts in order of time, and renumbers all evidence accordingly. Queries
// run at the same time, so the order in which exchanges were added depends on chance. Reports must not: a reader
// follows the evidence in order of time.
func (r *run) orderExchanges() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]int, len(r.exchanges))
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int { return r.exchanges[a].Compare(r.exchanges[b]) })
	position := make([]int, len(ids))
	r.facts.Exchanges, r.facts.Queries = nil, r.queriesLocked()
	for at, id := range ids {
		position[id] = at
		r.facts.Exchanges = append(r.facts.Exchanges, r.exchanges[id])
	}
	for _, evidence := range evidenceOf(r.facts) {
		for i, id := range *evidence {
			(*evidence)[i] = position[id]
		}
		slices.Sort(*evidence)
		*evidence = slices.Compact(*evidence)
	}
}

// evidenceOf returns all lists of exchange indexes in the facts. A new fact with evidence must be added here.
// Otherwise its numbers point to other exchanges after orderExchanges, and Load does not check them.
func evidenceOf(f *explain.Facts) []*[]int {
	out := []*[]int{&f.Vantage.Intercepted.Evidence}
	for i := range f.Servers {
		s := &f.Servers[i]
		out = append(out, &s.Evidence)
		for _, p := range []*explain.Probe{&s.TCP, &s.EDNS, &s.EDNSVersion, &s.EDNSOption, &s.EDNSFlag, &s.Truncation,
			&s.Case, &s.Source,
			&s.Types, &s.Recursion, &s.Transfer, &s.Limits, &s.NegativeSOA} {
			out = append(out, &p.Evidence)
		}
	}
	for i := range f.Answers {
		out = append(out, &f.Answers[i].Evidence)
	}
	for i := range f.Denials {
		out = append(out, &f.Denials[i].Evidence)
	}
	for i := range f.Mail {
		out = append(out, &f.Mail[i].Evidence)
	}
	if f.Service != nil {
		for i := range f.Service.Lookups {
			out = append(out, &f.Service.Lookups[i].Evidence)
		}
		for i := range f.Service.Records {
			out = append(out, &f.Service.Records[i].Evidence)
		}
	}
	for i := range f.Near {
		out = append(out, &f.Near[i].Evidence)
	}
	if f.Wildcard != nil {
		out = append(out, &f.Wildcard.Evidence)
	}
	if f.Primary != nil {
		out = append(out, &f.Primary.Evidence)
	}
	for i := range f.Caches {
		for j := range f.Caches[i].Samples {
			out = append(out, &f.Caches[i].Samples[j].Evidence)
		}
	}
	return out
}
