// Package gather queries authoritative servers, registries and recursive resolvers about a name, and returns
// explain.Facts.
//
// Start with Gatherer in this file: Scan, Analyze and Compare list the steps of each kind of facts, and Service in
// service.go those of a service. run.go holds the state of one gathering, walk.go the walk from the root, caches.go the
// queries to resolvers, connect.go the connections to a service, and proofs.go the proofs of its ownership. derive.go
// builds the facts from the recorded exchanges.
//
// Authoritative servers are queried first. Names and types that they do not have are never asked of a shared
// resolver: it would cache the negative answer, and its other users would get it. Queries are limited in number, in
// time and in rate per server, and stop with the context. Facts.Unfinished names each limit that was reached;
// everything that the limit cut off is unknown.
package gather

import (
	"cmp"
	"context"
	"crypto/x509"
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

// Gatherer holds what the queries need: transports, root hints, trust anchors, resolvers and options.
type Gatherer struct {
	Exchanger       resolve.Exchanger // a resolve.Client must have AsIs set
	UnusedExchanger resolve.Exchanger // sends the query to Options.Unused; default: Exchanger
	Registry        Registry          // nil: registries are not queried
	Prober          *probe.Prober     // nil: the servers are not probed; Before is replaced
	Resolvers       []resolvers.Resolver
	Hints           []iterate.Host  // root servers
	Anchors         []secure.Anchor // DNSSEC trust anchors
	Options         Options
	Progress        func(Event) // called from one goroutine at a time; may be nil

	Connect Dial           // opens the connections of Service; nil: none are opened
	Roots   *x509.CertPool // CAs that clients of a service trust; nil: those of the system

	// Hosted returns the serial of a zone of this server, which has the record type ALIAS; nil: it has no zones.
	Hosted func(zone dnsname.Name) (serial uint32, ok bool)

	// Route reports whether this machine has a route to an address. It must not send anything. nil: every address has one.
	Route func(netip.Addr) bool
}

// Registry looks up the registration of a domain.
type Registry interface {
	Lookup(ctx context.Context, domain dnsname.Name) (registry.Registration, error)
}

// Options are the limits and settings of one gathering. The zero Options are the defaults.
type Options struct {
	MaxQueries  int             // limit of queries to authoritative servers; default 210 for a scan, otherwise 240
	PerResolver int             // limit of queries to one resolver; default 8
	Rate        int             // queries per second to one server; default 10
	Pace        *resolve.Pace   // rate limit shared with other gatherings; default: not shared
	MaxTime     time.Duration   // default 30 s
	Timeouts    []time.Duration // timeout of each attempt of a query; default 2 s, 3 s and 5 s
	Recursion   time.Duration   // timeout of a query to a resolver, which may have to recurse; default: Timeouts[0]
	Settle      time.Duration   // how long a server with an older version of a zone may take to catch up; default 3 s

	IPv4Only, IPv6Only bool
	ECS                netip.Prefix // also query authoritative servers for this client subnet; default: none
	NoSimilar          bool         // do not search for similar names if the name does not exist
	Force              bool         // query resolvers even for records that the authority does not have
	Await              bool         // query resolvers only when nothing is missing at the authority (explain.Missing)
	Local              string       // path of a resolv.conf file whose resolvers are queried as well; default: none
	Seed               uint64       // seed of random labels; default: random
	Vantage            string       // name of this vantage point in reports; default "here"

	// Unused is an address without a server: a reply from it shows that queries are intercepted. Default: not queried.
	Unused netip.Addr

	NAT64   []netip.Prefix // prefixes of the operator's own translators; default: none
	Private bool           // the name is in an internal name space, where private addresses are right
	DKIM    []string       // selectors whose DKIM keys a scan looks up

	Expect []explain.Set
	PlanNS []dnsname.Name
	Change bool
	Past   []explain.Past
}

// The query limits. Analyze needs about 120 queries for a typical public name; the remainder is for long chains of
// aliases.
const (
	scanQueries    = 210
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

// family returns the only address family that is queried, or "" for both.
func (o Options) family() iterate.Family {
	switch {
	case o.IPv4Only:
		return iterate.IPv4Only
	case o.IPv6Only:
		return iterate.IPv6Only
	}
	return ""
}

// Event reports the progress of a gathering.
type Event struct {
	Stage   string `json:"stage"`             // one of the Stage constants
	Subject string `json:"subject,omitempty"` // the item that has just been finished
	Done    int    `json:"done,omitempty"`    // finished items of the stage
	Total   int    `json:"total,omitempty"`
	Queries int    `json:"queries"` // queries sent so far

	// Facts are the facts at the end of a stage, for callers that show results early. They are a copy that does not
	// change.
	Facts *explain.Facts `json:"-"`
}

// The stages of a gathering.
const (
	StageWalk         = "walk"         // from the root to the name
	StageServers      = "servers"      // probes of the servers of the zone
	StageAnswers      = "answers"      // the answers of each server
	StageSettle       = "settle"       // waits for servers with an older version of the zone
	StageMail         = "mail"         // the records of mail and CAA
	StageRegistration = "registration" // lookups at the registry
	StageResolvers    = "resolvers"    // cached answers of resolvers
	StageService      = "service"      // the targets, certificates and pages of a service
)

// Scan gathers the facts of a domain: its registration, its nameservers as listed by registry, parent and child, its
// SOA, and the behaviour of its servers.
func (g *Gatherer) Scan(ctx context.Context, input string) (*explain.Facts, error) {
	r, err := g.begin(ctx, explain.Scan, input, []rr.Type{rr.TypeSOA})
	if err != nil {
		return nil, err
	}
	defer r.end()
	r.lookupDomain(r.facts.Domain)
	if err := r.walk(); err != nil {
		return nil, fmt.Errorf("scan %s: %w", r.facts.Name, err)
	}
	r.lookupServerDomains()
	if r.ownsZone() {
		r.askNonexistent()
		r.askDS()
		r.askApex()
		r.askPlanned()
		r.findPrimary()
		r.probeServers()
		r.settle()
		r.askAgain()
		r.askMail()
	} else {
		r.askInParent()
	}
	r.findSimilar()
	return r.finish("scan")
}

// Analyze gathers the facts of a name without using caches: every server at every level, the chain of aliases, and
// the answers of each server of the zones in the chain. Without types it asks for addresses (see typesFor).
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
	r.askRelated()
	if r.ownsZone() {
		r.askPlanned()
	}
	r.settle()
	r.askAgain()
	r.walkFullName()
	if !r.ownsZone() {
		r.lookupDomain(r.facts.Domain)
	}
	r.lookupTargetDomains()
	r.findSimilar()
	return r.finish("analyze")
}

// Compare gathers the cached answers of recursive resolvers and the answers of the authority. Resolvers are not asked
// for records that the authority does not have.
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
	r.askAgain()
	r.findSimilar()
	r.derive() // safeTypes needs the outcomes at the authority
	if err := r.sampleResolvers(); err != nil {
		return nil, fmt.Errorf("compare %s: %w", r.facts.Name, err)
	}
	return r.finish("compare")
}
