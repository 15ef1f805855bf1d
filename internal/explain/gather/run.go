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
	"github.com/nameplane/nameplane/internal/rr"
)

// run is one gathering. Its steps run one after the other; the queries of one step run concurrently.
type run struct {
	*Gatherer
	opts          Options
	facts         *explain.Facts
	types         []rr.Type
	probeLabel    string // random label that no zone has; used in names that must not exist
	trace         *iterate.Trace
	fullNameClass iterate.Class // result of querying with the full name instead of minimised names; empty: not tried
	caller        context.Context
	ctx           context.Context // ends at MaxTime or with caller
	stop          context.CancelFunc
	budget        *resolve.Budget // queries to authoritative servers
	background    sync.WaitGroup  // goroutines that run beside the steps, such as slow registry lookups

	plans         []plannedServer
	probes        map[netip.Addr][]probeResult
	lookupDomains []dnsname.Name // domains that were looked up at registries

	reportMu sync.Mutex // serializes calls of Progress

	mu             sync.Mutex // guards the fields below, and fields of facts that goroutines append to
	exchanges      []iterate.Exchange
	subnets        map[int]netip.Prefix         // client subnet of the exchange with this index
	limitsReached  map[string]bool              // names of the limits that were reached
	unusual        map[int]bool                 // exchanges with probe queries
	unusualQueries int                          // number of probe queries
	updatedAt      map[zoneServer]time.Duration // when a server was seen with a newer version of a zone

	unusedExchange *iterate.Exchange // exchange with Options.Unused, where there is no server
	registrations  []indexedRegistration
}

// addresses are the default types.
var addresses = []rr.Type{rr.TypeA, rr.TypeAAAA}

const (
	typeDNSKEY  = rr.Type(48)
	typeTLSA    = rr.Type(52)
	typeCDS     = rr.Type(59)
	typeCDNSKEY = rr.Type(60)
)

// typesFor returns the types to ask for if the caller names none: addresses, or the usual type of names that have no
// addresses, such as PTR below in-addr.arpa and SRV below _tcp.
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

// withName returns a copy of sets in which sets without a name get name.
func withName(sets []explain.Set, name dnsname.Name) []explain.Set {
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
			types = append(types, s.Type) // without an answer the expectation could not be checked
		}
	}
	if types, err = askable(types); err != nil {
		return nil, &InputError{err}
	}
	opts := g.Options.withDefaults(kind)
	r := &run{Gatherer: g, opts: opts, types: types, caller: ctx,
		budget:  resolve.NewBudget(opts.MaxQueries, opts.Rate, opts.Pace),
		subnets: map[int]netip.Prefix{}, limitsReached: map[string]bool{}, probes: map[netip.Addr][]probeResult{},
		unusual: map[int]bool{}, updatedAt: map[zoneServer]time.Duration{}, probeLabel: randomLabel(opts.Seed)}
	now := time.Now().Round(0)
	r.ctx, r.stop = context.WithDeadline(ctx, now.Add(opts.MaxTime))
	suffix := registry.SuffixOf(name)
	r.facts = &explain.Facts{Schema: explain.Schema, Kind: kind, Input: input, Trimmed: trimmed, Name: name, Types: types,
		At: now.UTC(), Anchors: g.Anchors,
		Vantage: explain.Vantage{Name: opts.Vantage, NAT64: opts.NAT64, Private: opts.Private},
		Domain:  suffix.Domain, Owner: suffix.Owner,
		Expect: withName(opts.Expect, name), PlanNS: opts.PlanNS, Change: opts.Change, Past: opts.Past}
	r.excludeUnroutable()
	r.askUnused()
	return r, nil
}

// askable returns the types without duplicates. Meta types are refused: servers need not answer ANY (RFC 8482).
func askable(types []rr.Type) (out []rr.Type, err error) {
	for _, t := range types {
		switch {
		case !t.IsData():
			return nil, fmt.Errorf("%s is not a type of resource records", t)
		case !slices.Contains(out, t):
			out = append(out, t)
		}
	}
	// A query for CNAME is not redirected by the alias. The walk follows the first type from the root, so CNAME goes
	// last.
	slices.SortStableFunc(out, func(a, b rr.Type) int { return cmp.Compare(typeOrder(a), typeOrder(b)) })
	if len(out) > explain.MaxTypes {
		return nil, fmt.Errorf("%d types are too many; at most %d are allowed", len(out), explain.MaxTypes)
	}
	return out, nil
}

func typeOrder(t rr.Type) int {
	if t == rr.TypeCNAME {
		return 1
	}
	return 0
}

// randomLabel returns a label that no zone has.
func randomLabel(seed uint64) string {
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

// end cancels the context and waits for all goroutines.
func (r *run) end() {
	r.stop()
	r.background.Wait()
}

// finish waits for the background goroutines and returns the facts.
func (r *run) finish(verb string) (*explain.Facts, error) {
	r.background.Wait()
	r.intercepted()
	if err := r.caller.Err(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, r.facts.Name, err)
	}
	if r.ctx.Err() != nil {
		r.addLimit(r.opts.MaxTime.String())
	}
	r.assemble()
	return r.facts, nil
}

func (r *run) addLimit(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limitsReached[limit] = true
}

// reportProgress reports that one item of a stage is finished.
func (r *run) reportProgress(stage, subject string, done, total int) {
	r.report(Event{Stage: stage, Subject: subject, Done: done, Total: total})
}

// reportStage reports the end of a stage, with a snapshot of the facts.
func (r *run) reportStage(stage string) {
	if r.Progress != nil {
		r.report(Event{Stage: stage, Facts: r.snapshot()})
	}
}

// report calls Progress under a lock of its own, so that a slow callback does not block queries, which need mu.
func (r *run) report(e Event) {
	if r.Progress == nil {
		return
	}
	r.reportMu.Lock()
	defer r.reportMu.Unlock()
	r.mu.Lock()
	e.Queries = r.queriesLocked()
	r.mu.Unlock()
	r.Progress(e)
}

// queriesLocked returns the number of queries sent so far. Callers hold mu.
func (r *run) queriesLocked() int {
	n := r.unusualQueries
	for id, e := range r.exchanges {
		if e.Try > 0 && !r.unusual[id] {
			n++
		}
	}
	return n
}

// snapshot returns a copy of the facts so far, which later steps do not change.
func (r *run) snapshot() *explain.Facts {
	mine, facts := r.facts, *r.facts
	r.facts = &facts // assemble replaces everything that is derived from exchanges
	r.assemble()
	r.facts = mine
	return &facts
}

// assemble derives the facts from everything recorded so far. The result shares no memory that the run still changes.
func (r *run) assemble() {
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
	r.facts.Mail = slices.Clone(r.facts.Mail)
	for i := range r.facts.Mail {
		r.facts.Mail[i].Evidence = slices.Clone(r.facts.Mail[i].Evidence)
	}
	if s := r.facts.Service; s != nil {
		c := *s
		c.Lookups = slices.Clone(s.Lookups)
		for i := range c.Lookups {
			c.Lookups[i].Evidence = slices.Clone(c.Lookups[i].Evidence)
		}
		c.Records = slices.Clone(s.Records)
		for i := range c.Records {
			c.Records[i].Evidence = slices.Clone(c.Records[i].Evidence)
		}
		c.Connections, c.Tokens = slices.Clone(s.Connections), slices.Clone(s.Tokens)
		c.Challenges = slices.Clone(s.Challenges)
		r.facts.Service = &c
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
	r.addRegistrations()
	r.orderExchanges()
	r.facts.Validate()
	r.facts.Took = time.Since(r.facts.At).Round(time.Microsecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.Unfinished = slices.Sorted(maps.Keys(r.limitsReached))
}

// sinceStart returns t as exchanges record it: as the duration since the start.
func (r *run) sinceStart(t time.Time) time.Duration { return t.Sub(r.facts.At).Round(time.Microsecond) }

// addExchange appends an exchange and returns its index.
func (r *run) addExchange(e iterate.Exchange) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, e)
	return len(r.exchanges) - 1
}

// ownsZone reports whether the zone belongs to the owner of the domain, so that its servers may be probed. If the
// domain is not delegated, the zone is the registry's.
func (r *run) ownsZone() bool {
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

// zoneAt returns a zone of the walk, or nil.
func (r *run) zoneAt(zone dnsname.Name) *iterate.Zone { return r.trace.Zone(zone) }

// zoneFor returns the zone that answers a question. The parent answers for DS records (RFC 4035 §2.4).
func (r *run) zoneFor(q iterate.Question) *iterate.Zone {
	z := r.zoneOf(q.Name)
	if z != nil && q.Type == rr.TypeDS && z.Name == q.Name && !q.Name.IsRoot() {
		return r.zoneAt(z.Parent)
	}
	return z
}

// zoneOf returns the lowest zone of the walk that contains a name, or nil.
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

// addrs returns the addresses of the servers of a zone that may be queried, in the order of the server names.
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

// family reports whether the options allow queries to an address.
func (r *run) family(a netip.Addr) bool {
	return !(r.opts.IPv4Only && !a.Unmap().Is4() || r.opts.IPv6Only && a.Unmap().Is4())
}
