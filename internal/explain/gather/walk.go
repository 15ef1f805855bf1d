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

// askApex queries every server of the zone for addresses, mail exchangers and texts, so that a server that fails for
// one type, or has other records, is found. It also asks one address of each server for CDS and CDNSKEY: a parent acts
// on these records only if all servers have the same (RFC 7344 §6.1).
func (r *run) askApex() {
	z := r.zoneAt(r.facts.Zone)
	if z == nil {
		return
	}
	first, rest := oneAddressPerHost(z, r.usableServers(z))
	common := []rr.Type{rr.TypeMX, rr.TypeTXT, rr.TypeA, rr.TypeAAAA}
	var qs []iterate.Query
	for _, s := range first {
		for _, t := range append(common, typeCDS, typeCDNSKEY) {
			qs = append(qs, newQuery(z.Name, s, z.Name, t))
		}
	}
	// The second addresses of servers are less important than the probes and the records of mail.
	spare := r.budget.Left() - len(qs) - len(first)*probeQueries - mailQueries
	for _, s := range rest[:max(0, min(len(rest), spare/len(common)))] {
		for _, t := range common {
			qs = append(qs, newQuery(z.Name, s, z.Name, t))
		}
	}
	r.askAll(qs)
}

// askDS queries one address of each server of the parent zone for the DS records of a zone that has some or has keys. A
// server may fail for them although it refers to the zone.
func (r *run) askDS() {
	z := r.zoneAt(r.facts.Zone)
	if z == nil || z.Hidden || r.zoneAt(z.Parent) == nil || !r.signed(z.Name) {
		return
	}
	parent := r.zoneAt(z.Parent)
	first, _ := oneAddressPerHost(parent, r.usableServers(parent))
	var qs []iterate.Query
	for _, s := range first {
		qs = append(qs, newQuery(parent.Name, s, z.Name, rr.TypeDS))
	}
	r.askAll(qs)
}

// signed reports whether a reply of the walk has a DS record or a key of a zone.
func (r *run) signed(zone dnsname.Name) bool {
	for _, e := range r.trace.Exchanges {
		v, err := e.View()
		if err == nil && (len(iterate.Records(v.Authority, zone, rr.TypeDS)) > 0 ||
			len(iterate.Records(v.Answer, zone, typeDNSKEY)) > 0) {
			return true
		}
	}
	return false
}

// askInParent asks for the addresses of a domain that is not delegated: it may be a name of the parent zone.
func (r *run) askInParent() {
	z := r.zoneOf(r.facts.Domain)
	if r.facts.Domain.IsZero() || z == nil || z.Name == r.facts.Domain || r.trace.Result != iterate.NoData {
		return
	}
	var qs []iterate.Query
	for _, s := range r.leastAsked(r.usableServers(z)) {
		for _, t := range addresses {
			qs = append(qs, newQuery(z.Name, s, r.facts.Domain, t))
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
// the others; a server with an older version of the zone will not. A server that seems not to rotate, beside others
// that do, is asked more often.
func (r *run) askAgain() {
	r.repeatQueries(repeats, func(d explain.Difference) bool { return true })
	r.repeatQueries(moreRepeats, func(d explain.Difference) bool { return d.Manner == explain.Rotating })
	r.reportStage(StageAnswers)
}

const (
	repeats     = 2
	moreRepeats = 4
)

// repeatQueries repeats the queries whose answers differ in a manner, to servers that gave one answer so far.
func (r *run) repeatQueries(times int, repeated func(explain.Difference) bool) {
	plain := slices.DeleteFunc(r.answersOf(r.records()),
		func(a explain.Answer) bool { return a.Subnet.IsValid() || !a.Class.Usable() })
	differences := explain.Differences(&explain.Facts{Answers: plain})
	var qs []iterate.Query
	for _, a := range plain {
		differs := func(d explain.Difference) bool {
			return d.Question == a.Question && d.Zone == a.Zone && repeated(d)
		}
		if len(a.Others) == 0 && slices.ContainsFunc(differences, differs) {
			qs = append(qs, newQuery(a.Zone, a.Server, a.Question.Name, a.Question.Type))
		}
	}
	for range times {
		r.askAll(qs)
	}
}

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
