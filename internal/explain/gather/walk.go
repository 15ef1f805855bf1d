package gather

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// rootAddrs are how many addresses of root servers are asked when it is not every server that matters: all 26 would use up a
// fifth of the budget of a scan, and nobody who reads the report can mend the root.
const rootAddrs = 4

// walk goes from the root to the name, with the first of the types. What else is asked, is asked of the servers found here.
func (r *run) walk() error {
	share, roots := r.opts.MaxQueries, rootAddrs
	switch r.facts.Kind {
	case explain.Scan:
		share = share * 4 / 5 // the rest is for the conduct of servers
	case explain.Analyze:
		roots = 0 // all
	}
	it := iterate.Iterator{Exchanger: r.Exchanger, Options: iterate.Options{Hints: r.Hints, Probe: r.label, RootAddrs: roots, Family: r.opts.family(),
		Budget: r.budget.Part(share), MaxTime: r.opts.MaxTime * 2 / 3, Timeouts: r.opts.Timeouts}}
	trace, err := it.Run(r.caller, iterate.Question{Name: r.facts.Name, Type: r.types[0]})
	if err != nil {
		return err
	}
	r.take(trace)
	r.trace = trace
	r.facts.Zones, r.facts.Notes = trace.Zones, trace.Notes
	if z := r.zoneOf(r.facts.Name); z != nil {
		r.facts.Zone = z.Name
	}
	r.told(StageWalk)
	return nil
}

// take keeps the exchanges of a walk.
func (r *run) take(t *iterate.Trace) {
	later := r.at(t.Began)
	for _, e := range t.Exchanges {
		e.At += later
		r.record(e)
	}
	for _, l := range t.Unfinished {
		r.limit(l)
	}
}

// names are the name and those that its aliases lead to, in the order of the chain.
func (r *run) names() []dnsname.Name {
	out := []dnsname.Name{r.facts.Name}
	for _, l := range r.trace.Chain {
		if !slices.Contains(out, l.To) {
			out = append(out, l.To)
		}
	}
	return out
}

// ends are the names of the chain that are no aliases; in a loop there are none.
func (r *run) ends() []dnsname.Name {
	return slices.DeleteFunc(r.names(), func(n dnsname.Name) bool {
		return slices.ContainsFunc(r.trace.Chain, func(l iterate.Link) bool { return l.From == n })
	})
}

// answers asks for the types that the walk was not about: all servers of the zones of the name, and of the ends of the chain. The
// aliases between them are the same for all types, so that one server is enough to have their signatures, too.
func (r *run) answers() {
	all := append(r.ends(), r.facts.Name)
	var qs []iterate.Query
	for n, name := range r.names() {
		for i, t := range r.types {
			z := r.zoneFor(iterate.Question{Name: name, Type: t})
			good := r.good(z)
			if len(good) > 0 && !slices.Contains(all, name) {
				good = []netip.Addr{good[n%len(good)]} // another one each time, to be easy on them
			}
			for _, s := range good {
				q := to(z.Name, s, name, t)
				if i > 0 {
					qs = append(qs, q)
				} else if r.opts.ECS.IsValid() {
					q.ECS = r.opts.ECS
					qs = append(qs, q)
				}
			}
		}
	}
	r.askAll(qs)
}

const typeHTTPS = rr.Type(65)

// beside asks for records that may contradict the ones asked for: an alias with others beside it, and HTTPS records, whose
// hints browsers use before addresses are there. One server is enough, the one that was asked least.
func (r *run) beside() {
	var qs []iterate.Query
	one := func(name dnsname.Name, types ...rr.Type) {
		z := r.zoneOf(name)
		for _, s := range r.idlest(r.good(z)) {
			for _, t := range types {
				if !slices.Contains(r.types, t) {
					qs = append(qs, to(z.Name, s, name, t))
				}
			}
		}
	}
	if len(r.trace.Chain) > 0 {
		one(r.facts.Name, rr.TypeMX, rr.TypeTXT)
	}
	if slices.ContainsFunc(r.types, func(t rr.Type) bool { return t == rr.TypeA || t == rr.TypeAAAA }) {
		for _, end := range r.ends() {
			one(end, typeHTTPS)
		}
	}
	r.askAll(qs)
}

// idlest is the server that was asked least, if there is one.
func (r *run) idlest(servers []netip.Addr) []netip.Addr {
	if len(servers) == 0 {
		return nil
	}
	asked := map[netip.Addr]int{}
	for _, e := range r.exchanges {
		asked[e.Server]++
	}
	return []netip.Addr{slices.MinFunc(servers, func(a, b netip.Addr) int { return asked[a] - asked[b] })}
}

// again asks servers whose answers differ some more times: a server that answers in turn finally says what the others say, and one
// with an older version of the zone does not.
func (r *run) again() {
	plain := slices.DeleteFunc(r.answersOf(r.records()), func(a explain.Answer) bool { return a.Subnet.IsValid() || !a.Class.Usable() })
	differences := explain.Differences(&explain.Facts{Answers: plain})
	var qs []iterate.Query
	for _, a := range plain {
		differs := func(d explain.Difference) bool { return d.Question == a.Question && d.Zone == a.Zone }
		if slices.ContainsFunc(differences, differs) && slices.Contains(r.types, a.Question.Type) {
			qs = append(qs, to(a.Zone, a.Server, a.Question.Name, a.Question.Type))
		}
	}
	for range repeats {
		r.askAll(qs)
	}
	r.told(StageAnswers)
}

const repeats = 2

// plain walks down again with the whole name, as resolvers without QNAME minimisation do. At each level one good reply is enough.
// Where no referral comes, the outcome is what comes instead.
func (r *run) plain() {
	q := iterate.Question{Name: r.facts.Name, Type: r.types[0]}
	var levels []*iterate.Zone
	for z := r.zoneFor(q); z != nil && !z.Name.IsRoot(); z = r.found(z.Parent) {
		if parent := r.found(z.Parent); parent != nil && !z.Hidden {
			levels = append(levels, parent)
		}
	}
	slices.Reverse(levels)
	classes := make([]iterate.Class, len(levels))
	var group sync.WaitGroup
	for i, z := range levels {
		group.Go(func() { classes[i] = r.wholeAt(z, q) })
	}
	group.Wait()
	r.whole = iterate.Referral
	if i := slices.IndexFunc(classes, func(c iterate.Class) bool { return c != iterate.Referral && c != iterate.Unknown }); i >= 0 {
		r.whole = classes[i]
	}
}

// wholeAt asks servers of a zone for the whole name, until one replies well.
func (r *run) wholeAt(z *iterate.Zone, q iterate.Question) iterate.Class {
	class := iterate.Unknown
	for i, s := range r.good(z) {
		query := to(z.Name, s, q.Name, q.Type)
		if r.knows(query) { // minimised and whole names are the same where one label is missing
			return iterate.Referral
		}
		if class = r.ask(query).class(); class.Usable() || i > 0 {
			break
		}
	}
	return class
}

// knows reports whether a question was asked on the walk.
func (r *run) knows(q iterate.Query) bool {
	return slices.ContainsFunc(r.trace.Exchanges, func(e iterate.Exchange) bool {
		return e.Server == q.Server.Addr.Addr() && e.Question == q.Question && e.Class.Usable()
	})
}
