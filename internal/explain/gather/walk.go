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

// rootAddrs limits the addresses of root servers that are queried, except by Analyze. All 26 would use a fifth of the
// query limit of a scan, and no reader of the report can repair the root.
const rootAddrs = 4

// walk iterates from the root to the name with the first type. Later steps query the servers found here.
func (r *run) walk() error {
	share, roots := r.opts.MaxQueries, rootAddrs
	switch r.facts.Kind {
	case explain.Scan:
		share = share * 4 / 5 // the remainder is for probes of servers
	case explain.Analyze:
		roots = 0 // all
	}
	it := iterate.Iterator{Exchanger: r.Exchanger,
		Options: iterate.Options{Hints: r.Hints, Probe: r.probeLabel, RootAddrs: roots, Family: r.opts.family(),
			Budget: r.budget.Part(share), MaxTime: r.opts.MaxTime * 2 / 3, Timeouts: r.opts.Timeouts}}
	trace, err := it.Run(r.caller, iterate.Question{Name: r.facts.Name, Type: r.types[0]})
	if err != nil {
		return err
	}
	r.addTrace(trace)
	r.trace = trace
	r.facts.Zones, r.facts.Notes = trace.Zones, trace.Notes
	if z := r.zoneOf(r.facts.Name); z != nil {
		r.facts.Zone = z.Name
	}
	r.reportStage(StageWalk)
	return nil
}

// addTrace records the exchanges and limits of a walk.
func (r *run) addTrace(t *iterate.Trace) {
	later := r.sinceStart(t.Began)
	for _, e := range t.Exchanges {
		e.At += later
		r.addExchange(e)
	}
	for _, l := range t.Unfinished {
		r.addLimit(l)
	}
}

// names returns the name and the targets of its aliases, in the order of the chain.
func (r *run) names() []dnsname.Name {
	out := []dnsname.Name{r.facts.Name}
	for _, l := range r.trace.Chain {
		if !slices.Contains(out, l.To) {
			out = append(out, l.To)
		}
	}
	return out
}

// ends returns the names of the chain that are not aliases. A loop has none.
func (r *run) ends() []dnsname.Name {
	return slices.DeleteFunc(r.names(), func(n dnsname.Name) bool {
		return slices.ContainsFunc(r.trace.Chain, func(l iterate.Link) bool { return l.From == n })
	})
}

// answers asks for the types that the walk did not ask for: all servers of the zones of the name and of the ends of
// the chain. Aliases between them do not depend on the type, so one server is enough to get their signatures.
func (r *run) answers() {
	all := append(r.ends(), r.facts.Name)
	var qs []iterate.Query
	for n, name := range r.names() {
		for i, t := range r.types {
			z := r.zoneFor(iterate.Question{Name: name, Type: t})
			good := r.usableServers(z)
			if len(good) > 0 && !slices.Contains(all, name) {
				good = []netip.Addr{good[n%len(good)]} // a different one for each name, to spread the load
			}
			for _, s := range good {
				q := newQuery(z.Name, s, name, t)
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

// askRelated asks for records that may contradict the requested ones: records beside an alias, and HTTPS records,
// whose address hints browsers use before they have addresses. It asks only the least asked server.
func (r *run) askRelated() {
	var qs []iterate.Query
	one := func(name dnsname.Name, types ...rr.Type) {
		z := r.zoneOf(name)
		for _, s := range r.leastAsked(r.usableServers(z)) {
			for _, t := range types {
				if !slices.Contains(r.types, t) {
					qs = append(qs, newQuery(z.Name, s, name, t))
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

// leastAsked returns the server that got the fewest queries, or nothing if there is no server.
func (r *run) leastAsked(servers []netip.Addr) []netip.Addr {
	if len(servers) == 0 {
		return nil
	}
	asked := map[netip.Addr]int{}
	for _, e := range r.exchanges {
		asked[e.Server]++
	}
	return []netip.Addr{slices.MinFunc(servers, func(a, b netip.Addr) int { return asked[a] - asked[b] })}
}

// askAgain repeats queries to servers whose answers differ. A server that rotates its answers will also give those of
// the others; a server with an older version of the zone will not.
func (r *run) askAgain() {
	plain := slices.DeleteFunc(r.answersOf(r.records()),
		func(a explain.Answer) bool { return a.Subnet.IsValid() || !a.Class.Usable() })
	differences := explain.Differences(&explain.Facts{Answers: plain})
	var qs []iterate.Query
	for _, a := range plain {
		differs := func(d explain.Difference) bool { return d.Question == a.Question && d.Zone == a.Zone }
		if slices.ContainsFunc(differences, differs) && slices.Contains(r.types, a.Question.Type) {
			qs = append(qs, newQuery(a.Zone, a.Server, a.Question.Name, a.Question.Type))
		}
	}
	for range repeats {
		r.askAll(qs)
	}
	r.reportStage(StageAnswers)
}

const repeats = 2

// walkFullName repeats the walk with the full name, as resolvers without QNAME minimisation do. At each level one
// usable reply is enough. The result is the first reply that is not a referral.
func (r *run) walkFullName() {
	q := iterate.Question{Name: r.facts.Name, Type: r.types[0]}
	var levels []*iterate.Zone
	for z := r.zoneFor(q); z != nil && !z.Name.IsRoot(); z = r.zoneAt(z.Parent) {
		if parent := r.zoneAt(z.Parent); parent != nil && !z.Hidden {
			levels = append(levels, parent)
		}
	}
	slices.Reverse(levels)
	classes := make([]iterate.Class, len(levels))
	var group sync.WaitGroup
	for i, z := range levels {
		group.Go(func() { classes[i] = r.askFullName(z, q) })
	}
	group.Wait()
	r.fullNameClass = iterate.Referral
	if i := slices.IndexFunc(classes, func(c iterate.Class) bool {
		return c != iterate.Referral && c != iterate.Unknown
	}); i >= 0 {
		r.fullNameClass = classes[i]
	}
}

// askFullName queries servers of a zone for the full name, until one gives a usable reply.
func (r *run) askFullName(z *iterate.Zone, q iterate.Question) iterate.Class {
	class := iterate.Unknown
	for i, s := range r.usableServers(z) {
		query := newQuery(z.Name, s, q.Name, q.Type)
		if r.askedOnWalk(query) { // with one label left, the minimised name is the full name
			return iterate.Referral
		}
		if class = r.ask(query).class(); class.Usable() || i > 0 {
			break
		}
	}
	return class
}

// askedOnWalk reports whether the walk got a usable reply to a query.
func (r *run) askedOnWalk(q iterate.Query) bool {
	return slices.ContainsFunc(r.trace.Exchanges, func(e iterate.Exchange) bool {
		return e.Server == q.Server.Addr.Addr() && e.Question == q.Question && e.Class.Usable()
	})
}
