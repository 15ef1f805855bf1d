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
	Proof   *service.Record
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
	if proof == "" {
		return in, nil
	}
	name, value, ok := strings.Cut(proof, "=")
	owner, err := dnsname.Parse(name)
	if !ok || err != nil || value == "" {
		return in, fmt.Errorf("proof %s: must have the form NAME=VALUE", proof)
	}
	set, err := explain.ParseExpect("TXT=" + value)
	if err != nil {
		return in, fmt.Errorf("proof %s: %w", proof, err)
	}
	in.Proof = &service.Record{Owner: owner, Type: set.Type, Data: set.Data, TTL: 300}
	return in, nil
}

// Service gathers the facts of a hostname: its records at all servers of its zone, what it must point to, and the
// certificates and pages of the addresses that it has. No recursive resolver is queried.
func (g *Gatherer) Service(ctx context.Context, in ServiceInput) (*explain.Facts, error) {
	r, err := g.begin(ctx, explain.KindService, in.Host, addresses)
	if err != nil {
		return nil, err
	}
	defer r.end()
	r.facts.Service = &explain.Service{Host: in.Host, Objects: in.Objects, Whole: in.Whole, Targets: in.Targets,
		Proof: in.Proof}
	if err := r.walk(); err != nil {
		return nil, fmt.Errorf("service %s: %w", r.facts.Name, err)
	}
	r.answers()
	r.askRelated()
	r.settle()
	r.askAgain()
	r.lookupTargets()
	r.derive() // connections need the outcomes, and suspects the answers
	r.lookupSuspects()
	r.lookupCAA()
	r.connect()
	r.reportStage(StageService)
	return r.finish("service")
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

// lookupSuspects looks up the proof of ownership and, for records that the zone does not have, the names at which they
// may have been entered by mistake. Only servers of the zone are queried.
func (r *run) lookupSuspects() {
	want := explain.ExpectedRecords(r.facts)
	if p := r.facts.Service.Proof; p != nil && p.Owner.IsIn(r.facts.Zone) {
		r.lookupService(p.Owner, p.Type)
		want = append(want, *p)
	}
	live := explain.LiveRecords(r.facts)
	for _, w := range want {
		here := func(l service.Live) bool { return l.Owner == w.Owner && l.Type == w.Type }
		if slices.ContainsFunc(live, here) {
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

// endpoints returns the addresses and ports of the service. Ports are those of the listeners of the hostname; without
// objects, the port of HTTPS.
func (r *run) endpoints() (out []endpoint) {
	for _, o := range r.facts.Outcomes {
		for _, s := range o.Sets {
			for _, d := range s.Data {
				a, err := netip.ParseAddr(d)
				if err != nil || !r.family(a) {
					continue
				}
				for _, p := range portsOf(r.facts.Service) {
					e := endpoint{addr: netip.AddrPortFrom(a, p.number), tls: p.tls, page: p.page, path: p.path}
					if !slices.Contains(out, e) && len(out) < maxAddresses {
						out = append(out, e)
					}
				}
			}
		}
	}
	return out
}

// endpoint is an address to connect to.
type endpoint struct {
	addr netip.AddrPort
	tls  bool
	page bool // it speaks HTTP
	path string
}

// servicePort is a port of a listener.
type servicePort struct {
	number    uint16
	tls, page bool
	path      string
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
			if slices.ContainsFunc(a.Ingress.Spec.TLS, func(t service.IngressTLS) bool {
				return slices.Contains(t.Hosts,
					s.Host)
			}) {
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
