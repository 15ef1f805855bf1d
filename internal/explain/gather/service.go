package gather

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/rr"
)

// ServiceInput is a hostname with what is known about its service before anything is asked.
type ServiceInput struct {
	Host    string // as in an object: "www.example.com" or "*.example.com"
	Objects *service.Objects
	Whole   bool // Objects has all objects of a cluster
	Targets service.Targets

	// The proofs of ownership, of which one is enough. Without any, no proof is needed.
	Proof       *service.Record
	Token       *service.Token
	Nameservers []dnsname.Name
	// Ownership is the result of earlier checks; nil: that of Options.Past.
	Ownership *service.Ownership
}

// ParseService returns the input for a hostname from texts of a user. Without a target, objects must have one. proof
// has the form NAME=VALUE; both may be empty.
func ParseService(host, target, proof string, objects *service.Objects) (in ServiceInput, err error) {
	in = ServiceInput{Host: strings.TrimSuffix(strings.ToLower(host), "."), Objects: objects}
	switch {
	case target != "":
		if in.Targets, err = service.ParseTarget(target); err != nil {
			return in, fmt.Errorf("target %s: must be a host name or an address", target)
		}
	case objects == nil:
		return in, fmt.Errorf("the target is missing: what must %s point to?", host)
	default:
		in.Targets = objects.Targets(in.Host)
	}
	if objects != nil {
		in.Objects = objects.Related(in.Host)
	}
	if proof != "" {
		in.Proof, err = parseProof(in.Host, proof)
	}
	return in, err
}

// Service gathers the facts of a hostname: its records at all servers of its zone, what it must point to, and the
// certificates and pages of the addresses that it has. No recursive resolver is queried.
func (g *Gatherer) Service(ctx context.Context, in ServiceInput) (*explain.Facts, error) {
	r, err := g.begin(ctx, explain.KindService, in.Host, addresses)
	if err != nil {
		return nil, err
	}
	defer r.end()
	s := &explain.Service{Host: in.Host, Objects: in.Objects, Whole: in.Whole, Targets: in.Targets, Proof: in.Proof,
		Token: in.Token, Nameservers: in.Nameservers, Ownership: in.Ownership}
	if s.Ownership == nil {
		s.Ownership = explain.PastOwnership(r.opts.Past, r.facts.Name, s)
	}
	r.facts.Service = s
	if err := r.walk(); err != nil {
		return nil, fmt.Errorf("service %s: %w", r.facts.Name, err)
	}
	r.answers()
	r.askRelated()
	r.settle()
	r.askAgain()
	r.lookupTargets()
	r.derive() // connections need the outcomes, and suspects the answers
	s.HasAlias = r.hostedHere()
	r.askProof()
	r.lookupSuspects()
	r.lookupCAA()
	r.connect()
	r.reportStage(StageService)
	return r.finish("service")
}

// hostedHere reports whether the servers of the zone serve what this server has. A copy of the zone that is not
// delegated here has another serial after the first change.
func (r *run) hostedHere() bool {
	if r.Hosted == nil {
		return false
	}
	serial, ok := r.Hosted(r.facts.Zone)
	return ok && slices.ContainsFunc(r.facts.Servers, func(s explain.Server) bool {
		return s.Zone == r.facts.Zone && s.SOA != nil && s.SOA.Serial == serial
	})
}

// lookupService looks up a record for the service.
func (r *run) lookupService(name dnsname.Name, t rr.Type) explain.Lookup {
	return r.lookup(&r.facts.Service.Lookups, name, t)
}

// lookupTargets looks up the addresses of the host names that the service must point to.
func (r *run) lookupTargets() {
	for _, host := range r.facts.Service.Targets.Hosts {
		for _, t := range addresses {
			r.lookupService(host, t)
		}
	}
}

// lookupSuspects looks up, for records that the zone does not have, the names at which they may have been entered by
// mistake. Only servers of the zone are queried.
func (r *run) lookupSuspects() {
	want := explain.ExpectedRecords(r.facts)
	records := len(want)
	if p := r.facts.Service.Proof; p != nil {
		want = append(want, *p)
	}
	live := explain.LiveRecords(r.facts)
	for i, w := range want {
		here := func(l service.Live) bool {
			return l.Owner == w.Owner && (l.Type == w.Type || l.Type == rr.TypeCNAME)
		}
		if slices.ContainsFunc(live, here) || !w.Owner.IsIn(r.facts.Zone) {
			continue
		}
		if w.Type != rr.TypeTXT {
			r.lookupService(w.Owner, rr.TypeTXT) // a value with the wrong type
		}
		if r.hasWildcard(w.Type) {
			continue // every name has the record, so a suspect proves nothing
		}
		for _, suspect := range service.Suspects(w, r.facts.Zone) {
			r.lookupService(suspect, w.Type)
		}
		if i < records {
			r.lookupElsewhere(w)
		}
	}
}

// hasWildcard reports whether a random name of the zone has records of a type.
func (r *run) hasWildcard(t rr.Type) bool {
	name, err := r.facts.Zone.Child(r.probeLabel)
	return err == nil && len(r.lookupService(name, t).Data)+len(r.lookupService(name, t).Alias.Wire()) > 0
}

// lookupCAA looks up the CAA records that apply to the name: the first from the name upwards (RFC 8659 §3).
func (r *run) lookupCAA() {
	name := r.facts.Name
	if name.IsWildcard() {
		name = name.Parent()
	}
	for ; !name.IsRoot() && name.IsIn(r.facts.Domain) && !r.facts.Domain.IsZero(); name = name.Parent() {
		if l := r.lookupService(name, typeCAA); !l.Result.Usable() || len(l.Data) > 0 {
			return
		}
	}
}

// maxAddresses limits the addresses of a service that are connected to.
const maxAddresses = 8

// hostAddrs returns the addresses of the hostname, each once.
func (r *run) hostAddrs() (out []netip.Addr) {
	for _, o := range r.facts.Outcomes {
		for _, s := range o.Sets {
			for _, d := range s.Data {
				if a, err := netip.ParseAddr(d); err == nil && r.family(a) && !slices.Contains(out, a) {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

// endpoint is an address to connect to.
type endpoint struct {
	addr netip.AddrPort
	servicePort
}

// servicePort is a port of a listener.
type servicePort struct {
	number uint16
	tls    bool
	page   bool // it speaks HTTP
	path   string
	most   int // bytes of the page to keep; 0: keptPage
}

// portsOf returns the ports on which a service serves its hostname.
func portsOf(s *explain.Service) (out []servicePort) {
	add := func(p servicePort) {
		if p.number != 0 && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if s.Objects == nil {
		return []servicePort{{number: 443, tls: true, page: true, path: "/"}}
	}
	for _, a := range s.Objects.At(s.Host) {
		switch l := a.Listener; {
		case a.Ingress != nil:
			if a.Ingress.HasTLS(s.Host) {
				add(servicePort{number: 443, tls: true, page: true, path: "/"})
			} else {
				add(servicePort{number: 80, page: true, path: "/"})
			}
		case a.Problem != "" || l == nil || l.Port < 1 || l.Port > 65535:
		case l.Protocol == "HTTPS":
			add(servicePort{number: uint16(l.Port), tls: true, page: true, path: pathOf(a.Route)})
		case l.Protocol == "HTTP":
			add(servicePort{number: uint16(l.Port), page: true, path: pathOf(a.Route)})
		case l.Protocol == "TLS":
			add(servicePort{number: uint16(l.Port), tls: true})
		}
	}
	return out
}

// pathOf returns a path that a route serves.
func pathOf(r *service.Route) string {
	if r == nil || r.Kind != "HTTPRoute" {
		return "/"
	}
	for _, rule := range r.Spec.Rules {
		for _, m := range rule.Matches {
			if m.Path != nil && m.Path.Type != "RegularExpression" && strings.HasPrefix(m.Path.Value, "/") {
				return m.Path.Value
			}
		}
	}
	return "/"
}
