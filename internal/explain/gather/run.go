package gather

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// run is the gathering of one Facts. Steps follow each other; within a step questions are asked at the same time.
type run struct {
	*Gatherer
	opts    Options
	facts   *explain.Facts
	types   []rr.Type
	label   string // nobody has a record of it
	trace   *iterate.Trace
	whole   iterate.Class // what the whole name led to; empty: not tried
	caller  context.Context
	ctx     context.Context // ends when the time is up, too
	stop    context.CancelFunc
	budget  *resolve.Budget // of queries to authorities
	working sync.WaitGroup  // registries, which are slow, are asked meanwhile

	plans      []plan
	probes     map[netip.Addr][]probed
	registered []dnsname.Name // domains that registries were asked about

	telling sync.Mutex // one event at a time

	mu        sync.Mutex // guards the following, and the facts that are added meanwhile
	exchanges []iterate.Exchange
	subnets   map[int]netip.Prefix    // of exchanges that had one
	unsent    map[string]bool         // limits that were reached
	strange   map[int]bool            // exchanges with unusual queries
	unusual   int                     // queries of those
	fresh     map[place]time.Duration // when servers were seen to have come to a newer version of a zone

	strayed       *iterate.Exchange // with an address at which there is no server
	registrations []placed
}

// addresses are asked for if nothing else is.
var addresses = []rr.Type{rr.TypeA, rr.TypeAAAA}

const typeTLSA = rr.Type(52)

// typesFor are the types that are asked for if nothing else is: addresses, but of names that never have any what they are there for.
func typesFor(name dnsname.Name) []rr.Type {
	if name.IsIn(dnsname.MustParse("in-addr.arpa")) || name.IsIn(dnsname.MustParse("ip6.arpa")) {
		return []rr.Type{rr.TypePTR}
	}
	for ; !name.IsRoot(); name = name.Parent() {
		label, ok := strings.CutPrefix(name.Label(), "_")
		switch {
		case !ok:
			continue
		case !slices.Contains([]string{"_tcp", "_udp", "_tls", "_sctp"}, name.Parent().Label()):
			return []rr.Type{rr.TypeTXT}
		case strings.Trim(label, "0123456789") == "": // a port
			return []rr.Type{typeTLSA}
		}
		return []rr.Type{rr.TypeSRV}
	}
	return addresses
}

// named are sets of which those without a name are of name.
func named(sets []explain.Set, name dnsname.Name) []explain.Set {
	out := slices.Clone(sets)
	for i := range out {
		if out[i].Name.IsZero() {
			out[i].Name = name
		}
	}
	return out
}

func (g *Gatherer) begin(ctx context.Context, kind explain.Kind, input string, types []rr.Type) (*run, error) {
	name, trimmed, err := ParseInput(input)
	if err != nil {
		return nil, &InputError{err}
	}
	if len(types) == 0 {
		types = typesFor(name)
	}
	types = slices.Clone(types)
	for _, s := range g.Options.Expect {
		if kind != explain.Scan && !slices.Contains(types, s.Type) {
			types = append(types, s.Type) // or nobody would know whether it is so
		}
	}
	if types, err = askable(types); err != nil {
		return nil, &InputError{err}
	}
	opts := g.Options.withDefaults(kind)
	r := &run{Gatherer: g, opts: opts, types: types, caller: ctx, budget: resolve.NewBudget(opts.MaxQueries, opts.Rate, opts.Pace),
		subnets: map[int]netip.Prefix{}, unsent: map[string]bool{}, probes: map[netip.Addr][]probed{}, strange: map[int]bool{}, fresh: map[place]time.Duration{}, label: label(opts.Seed)}
	now := time.Now().Round(0)
	r.ctx, r.stop = context.WithDeadline(ctx, now.Add(opts.MaxTime))
	suffix := registry.SuffixOf(name)
	r.facts = &explain.Facts{Schema: explain.Schema, Kind: kind, Input: input, Trimmed: trimmed, Name: name, Types: types, At: now.UTC(),
		Vantage: explain.Vantage{Name: opts.Vantage}, Domain: suffix.Domain, Owner: suffix.Owner,
		Expect: named(opts.Expect, name), PlanNS: opts.PlanNS, Change: opts.Change, Past: opts.Past}
	r.routes()
	r.stray()
	return r, nil
}

// maxTypes is how many types are asked for at once: each is asked of every server.
const maxTypes = 8

// askable are the types without those that are there twice. Only records are asked for: never ANY, which servers need not answer
// (RFC 8482).
func askable(types []rr.Type) (out []rr.Type, err error) {
	for _, t := range types {
		switch {
		case !t.IsData():
			return nil, fmt.Errorf("%s is no type of records", t)
		case !slices.Contains(out, t):
			out = append(out, t)
		}
	}
	// Who asks for an alias is not sent along it, so the first question, which is followed from the root on, is one for something else.
	slices.SortStableFunc(out, func(a, b rr.Type) int { return cmp.Compare(order(a), order(b)) })
	if len(out) > maxTypes {
		return nil, fmt.Errorf("%d types are too many at once; %d can be asked for", len(out), maxTypes)
	}
	return out, nil
}

func order(t rr.Type) int {
	if t == rr.TypeCNAME {
		return 1
	}
	return 0
}

// label is one that nobody has a record of.
func label(seed uint64) string {
	if seed == 0 {
		seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(seed, 0))
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var b strings.Builder
	b.WriteString("probe-")
	for range 12 {
		b.WriteByte(letters[random.IntN(len(letters))])
	}
	return b.String()
}

// end leaves nothing behind.
func (r *run) end() {
	r.stop()
	r.working.Wait()
}

// finish is what was gathered, once everything has been.
func (r *run) finish(verb string) (*explain.Facts, error) {
	r.working.Wait()
	r.intercepted()
	if err := r.caller.Err(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, r.facts.Name, err)
	}
	if r.ctx.Err() != nil {
		r.limit(r.opts.MaxTime.String())
	}
	r.complete()
	return r.facts, nil
}

func (r *run) limit(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsent[what] = true
}

// tell reports progress.
func (r *run) tell(stage, subject string, done, total int) {
	r.report(Event{Stage: stage, Subject: subject, Done: done, Total: total})
}

// told reports the end of a stage, with what is known by then.
func (r *run) told(stage string) {
	if r.Progress != nil {
		r.report(Event{Stage: stage, Facts: r.soFar()})
	}
}

// report has a lock of its own, so that nobody who asks waits for those who listen.
func (r *run) report(e Event) {
	if r.Progress == nil {
		return
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mu.Lock()
	e.Queries = r.queriesLocked()
	r.mu.Unlock()
	r.Progress(e)
}

// queriesLocked is how many were sent so far.
func (r *run) queriesLocked() int {
	n := r.unusual
	for id, e := range r.exchanges {
		if e.Try > 0 && !r.strange[id] {
			n++
		}
	}
	return n
}

// soFar are the facts so far, which nobody changes any more.
func (r *run) soFar() *explain.Facts {
	mine, facts := r.facts, *r.facts
	r.facts = &facts // what is made of exchanges is made anew
	r.complete()
	r.facts = mine
	return &facts
}

// complete makes of everything so far what others may see. It keeps nothing that the run goes on to use.
func (r *run) complete() {
	if p := r.facts.Primary; p != nil {
		c := *p
		c.Evidence = slices.Clone(p.Evidence)
		r.facts.Primary = &c
	}
	r.facts.Vantage.Intercepted.Evidence = slices.Clone(r.facts.Vantage.Intercepted.Evidence)
	r.facts.Near = slices.Clone(r.facts.Near)
	for i := range r.facts.Near {
		r.facts.Near[i].Evidence = slices.Clone(r.facts.Near[i].Evidence)
	}
	r.facts.Caches = slices.Clone(r.facts.Caches)
	for i, c := range r.facts.Caches {
		c.Samples = slices.Clone(c.Samples)
		for j := range c.Samples {
			c.Samples[j].Evidence = slices.Clone(c.Samples[j].Evidence)
		}
		r.facts.Caches[i] = c
	}
	r.derive()
	r.collect()
	r.validate()
	r.order()
	r.facts.Took = time.Since(r.facts.At).Round(time.Microsecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.Unfinished = slices.Sorted(maps.Keys(r.unsent))
}

// at is the time of a moment as exchanges have it.
func (r *run) at(t time.Time) time.Duration { return t.Sub(r.facts.At).Round(time.Microsecond) }

// record keeps an exchange, and is its index.
func (r *run) record(e iterate.Exchange) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, e)
	return len(r.exchanges) - 1
}

// ours reports whether the zone is one that belongs to whoever has the domain, so that its servers may be looked into: those
// of a registry are not, when the domain is not there.
func (r *run) ours() bool {
	z := r.facts.Zone
	switch domain := r.facts.Domain; {
	case z.IsZero():
		return false
	case domain.IsZero():
		return z == r.facts.Name
	default:
		return z.IsIn(domain)
	}
}

// found is a zone of the walk; nil if it is not there.
func (r *run) found(zone dnsname.Name) *iterate.Zone { return r.trace.Zone(zone) }

// zoneFor is the zone that has the answer to a question: DS records are the parent's (RFC 4035 §2.4).
func (r *run) zoneFor(q iterate.Question) *iterate.Zone {
	z := r.zoneOf(q.Name)
	if z != nil && q.Type == rr.TypeDS && z.Name == q.Name && !q.Name.IsRoot() {
		return r.found(z.Parent)
	}
	return z
}

// zoneOf is the lowest zone that a name is in, of those that were looked at.
func (r *run) zoneOf(name dnsname.Name) *iterate.Zone {
	var best *iterate.Zone
	for i := range r.trace.Zones {
		z := &r.trace.Zones[i]
		if !z.Quick && name.IsIn(z.Name) && (best == nil || z.Name.NumLabels() > best.Name.NumLabels()) {
			best = z
		}
	}
	return best
}

// addrs are the addresses of the servers of a zone, in the order of their names, that may be asked.
func (r *run) addrs(z *iterate.Zone) (out []netip.Addr) {
	if z == nil {
		return nil
	}
	for _, h := range z.Hosts {
		if h.Problem == "not asked" {
			continue
		}
		for _, a := range h.Addrs() {
			if !slices.Contains(out, a) && r.family(a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// family reports whether an address is one that may be asked.
func (r *run) family(a netip.Addr) bool {
	return !(r.opts.IPv4Only && !a.Unmap().Is4() || r.opts.IPv6Only && a.Unmap().Is4())
}

// validate follows the chain of trust of each type. It sees what was asked for beside the walk, too.
func (r *run) validate() {
	r.mu.Lock()
	exchanges := slices.Clone(r.exchanges)
	r.mu.Unlock()
	slices.SortStableFunc(exchanges, iterate.Exchange.Compare)
	trace := *r.trace
	trace.Exchanges = exchanges
	r.facts.Secure = secure.Validate(&trace, r.types, r.Anchors, r.facts.At)
}
