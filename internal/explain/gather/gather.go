// Package gather asks everything that there is to know about a name, and writes it down as Facts.
//
// Authorities come first. What they do not have is never asked of a resolver that others use, too: it would remember that
// there is no such thing, and those who come next would be told so. All asking is bounded, in queries, in time and by how many
// a second one server gets, and ends with its context. What a bound cuts off is named in Facts.Unfinished, and unknown.
package gather

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// Gatherer asks.
type Gatherer struct {
	Exchanger resolve.Exchanger // a resolve.Client must be AsIs
	Stray     resolve.Exchanger // sends the question to Options.Unused; default: Exchanger
	Registry  Registry          // nil: registries are not asked
	Prober    *probe.Prober     // nil: the conduct of servers is not looked into; its Before is not called
	Resolvers []resolvers.Resolver
	Hints     []iterate.Host        // root servers
	Anchors   []secure.Anchor       // trust anchors of DNSSEC
	Route     func(netip.Addr) bool // whether this machine has a way to an address, found out without sending anything; nil: it has
	Options   Options
	Progress  func(Event) // is called from one goroutine at a time; may be nil
}

// Registry tells of registrations.
type Registry interface {
	Lookup(ctx context.Context, domain dnsname.Name) (registry.Registration, error)
}

// Options are the bounds and ways of gathering. The zero Options are the defaults.
type Options struct {
	MaxQueries  int             // to authorities; default 150 for a scan, else 240
	PerResolver int             // queries to one resolver; default 8
	Rate        int             // queries a second to one server; default 10
	Pace        *resolve.Pace   // that of all who ask at the same time; default: this one asks alone
	MaxTime     time.Duration   // default 30 s
	Timeouts    []time.Duration // of the tries of a query; default 2 s, 3 s and 5 s
	Recursion   time.Duration   // how long a resolver has for a reply, for which it may ask others; default: the first of Timeouts
	Settle      time.Duration   // how long a server with an older version of a zone has to catch up; default 3 s

	IPv4Only, IPv6Only bool
	ECS                netip.Prefix // ask authorities on behalf of this subnet, too; default: not
	NoNear             bool         // do not look for names like one that does not exist
	Force              bool         // ask resolvers even for what the authority does not have
	Await              bool         // ask resolvers only when nothing is missing at the authority (explain.Missing)
	Local              string       // a resolv.conf file whose resolvers are asked, too; default: none
	Unused             netip.Addr   // an address without a server, from which only somebody on the way can reply; default: not tried
	Seed               uint64       // of random labels; default: another one each time
	Vantage            string       // default "here"

	Expect []explain.Set
	PlanNS []dnsname.Name
	Change bool
	Past   []explain.Past
}

// The bounds of facts of each kind. What analyze asks of a name in the middle of the public DNS is about 120; the rest is for
// long chains of aliases.
const (
	scanQueries    = 150
	analyzeQueries = 240
	perResolver    = 8
)

func (o Options) withDefaults(kind explain.Kind) Options {
	queries := analyzeQueries
	if kind == explain.Scan {
		queries = scanQueries
	}
	o.MaxQueries = cmp.Or(o.MaxQueries, queries)
	o.PerResolver = cmp.Or(o.PerResolver, perResolver)
	o.Rate = cmp.Or(o.Rate, 10)
	o.MaxTime = cmp.Or(o.MaxTime, 30*time.Second)
	o.Settle = cmp.Or(o.Settle, 3*time.Second)
	o.Vantage = cmp.Or(o.Vantage, "here")
	if len(o.Timeouts) == 0 {
		o.Timeouts = []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second}
	}
	o.Recursion = cmp.Or(o.Recursion, o.Timeouts[0])
	return o
}

// family is the only one whose addresses are asked.
func (o Options) family() iterate.Family {
	switch {
	case o.IPv4Only:
		return iterate.IPv4Only
	case o.IPv6Only:
		return iterate.IPv6Only
	}
	return ""
}

// Event tells how far gathering is.
type Event struct {
	Stage   string `json:"stage"`             // one of the stages
	Subject string `json:"subject,omitempty"` // what was just finished
	Done    int    `json:"done,omitempty"`    // of the stage
	Total   int    `json:"total,omitempty"`
	Queries int    `json:"queries"` // so far

	// Facts are what is known at the end of a stage, for those who do not want to wait for the rest. They do not change any more.
	Facts *explain.Facts `json:"-"`
}

// The stages.
const (
	StageWalk         = "walk"         // from the root to the name
	StageServers      = "servers"      // the conduct of the servers of its zone
	StageAnswers      = "answers"      // what each of them answers
	StageSettle       = "settle"       // waits for servers with an older version of the zone
	StageRegistration = "registration" // at the registry
	StageResolvers    = "resolvers"    // what they hold
)

// Scan gathers the facts of a domain: its registration, its nameservers as registry, parent and child list them, its SOA, and
// the conduct of its servers.
func (g *Gatherer) Scan(ctx context.Context, input string) (*explain.Facts, error) {
	r, err := g.begin(ctx, explain.Scan, input, []rr.Type{rr.TypeSOA})
	if err != nil {
		return nil, err
	}
	defer r.end()
	r.register(r.facts.Domain)
	if err := r.walk(); err != nil {
		return nil, fmt.Errorf("scan %s: %w", r.facts.Name, err)
	}
	r.registerServers()
	if r.ours() {
		r.deny()
		r.planned()
		r.primary()
		r.conduct()
		r.settle()
	}
	r.near()
	return r.finish("scan")
}

// Analyze gathers the facts of a name, uncached: every server at every level, the chain of aliases, and what each server of
// the zones in it answers. Without types it is about addresses.
func (g *Gatherer) Analyze(ctx context.Context, input string, types []rr.Type) (*explain.Facts, error) {
	r, err := g.begin(ctx, explain.Analyze, input, types)
	if err != nil {
		return nil, err
	}
	defer r.end()
	if err := r.walk(); err != nil {
		return nil, fmt.Errorf("analyze %s: %w", r.facts.Name, err)
	}
	r.answers()
	r.beside()
	if r.ours() {
		r.planned()
	}
	r.settle()
	r.again()
	r.plain()
	if !r.ours() {
		r.register(r.facts.Domain)
	}
	r.registerTargets()
	r.near()
	return r.finish("analyze")
}

// Compare gathers what recursive resolvers hold of a name, and what its authority has. Of what the authority does not have,
// resolvers are not asked.
func (g *Gatherer) Compare(ctx context.Context, input string, types []rr.Type) (*explain.Facts, error) {
	r, err := g.begin(ctx, explain.Compare, input, types)
	if err != nil {
		return nil, err
	}
	defer r.end()
	if err := r.walk(); err != nil {
		return nil, fmt.Errorf("compare %s: %w", r.facts.Name, err)
	}
	r.answers()
	r.settle()
	r.again()
	r.near()
	r.derive() // resolvers are asked only for what authorities have
	if err := r.caches(); err != nil {
		return nil, fmt.Errorf("compare %s: %w", r.facts.Name, err)
	}
	return r.finish("compare")
}
