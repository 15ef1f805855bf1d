package gather

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// parseProof parses the TXT record that proves the ownership of a hostname, in the form NAME=VALUE.
func parseProof(host, text string) (*service.Record, error) {
	name, value, ok := strings.Cut(text, "=")
	owner, err := dnsname.Parse(name)
	if !ok || err != nil || value == "" {
		return nil, fmt.Errorf("proof %s: must have the form NAME=VALUE", text)
	}
	set, err := explain.ParseExpect("TXT=" + value)
	if err != nil {
		return nil, fmt.Errorf("proof %s: %w", text, err)
	}
	// A record of another domain proves that somebody owns that one.
	if n, _, err := ParseInput(host); err == nil {
		if domain := registry.SuffixOf(n).Domain; !domain.IsZero() && !owner.IsIn(domain) {
			return nil, fmt.Errorf("proof %s: %s is not in %s", text, name, strings.TrimSuffix(domain.String(), "."))
		}
	}
	return &service.Record{Owner: owner, Type: set.Type, Data: set.Data, TTL: 300}, nil
}

// ParseProofs adds the proofs of ownership by a text at a URL, in the form URL=TEXT, and by delegation to nameservers.
// Both may be empty.
func (in *ServiceInput) ParseProofs(token string, nameservers []string) (err error) {
	if token != "" {
		if in.Token, err = service.ParseToken(in.Host, token); err != nil {
			return fmt.Errorf("proof %s: %w", token, err)
		}
	}
	for _, text := range nameservers {
		n, err := dnsname.Parse(text)
		if err != nil || n.NumLabels() < 2 {
			return fmt.Errorf("proof %q: must be the name of a nameserver", text)
		}
		in.Nameservers = append(in.Nameservers, n)
	}
	return nil
}

// askProof asks all servers of the zone for the TXT record that proves the ownership. No cache is asked: it could have
// the record for a while after it was deleted, and would remember a record that is entered too late as missing.
func (r *run) askProof() {
	p := r.facts.Service.Proof
	if p == nil {
		return
	}
	z := r.zoneOf(p.Owner)
	if z == nil {
		return
	}
	servers := r.usableServers(z)
	qs := make([]iterate.Query, len(servers))
	for i, s := range servers {
		qs[i] = newQuery(z.Name, s, p.Owner, p.Type)
	}
	for i, reply := range r.askAll(qs) {
		a := explain.Answer{Question: qs[i].Question, Zone: z.Name, Server: servers[i], Class: reply.class(),
			Serial: r.serial(z.Name, servers[i]), Evidence: reply.ids}
		if reply.view != nil {
			a.Sets = setsOf(reply.view.Answer)
		}
		r.facts.Service.Records = append(r.facts.Service.Records, a)
	}
	r.lookupService(p.Owner, p.Type) // from the replies above; only an alias needs more queries
}

// fetchToken requests the text that proves the ownership from all addresses of the hostname.
func (r *run) fetchToken() {
	t := r.facts.Service.Token
	if t == nil {
		return
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(t.URL, "http://"), "/")
	r.facts.Service.Tokens = r.openAll(r.endpoints([]servicePort{
		{number: 80, page: true, path: "/" + path, most: service.MaxToken + 1}}))
}

// challengePath is the path of HTTP-01 (RFC 8555 §8.3).
const challengePath = "/.well-known/acme-challenge/"

// fetchChallenge requests a page as a CA does for HTTP-01, if a Challenge of the hostname waits for it.
func (r *run) fetchChallenge() {
	s := r.facts.Service
	if !explain.WaitsForHTTP(s) || !s.Objects.Listens(s.Host, "HTTP", 80) {
		return
	}
	s.Challenges = r.openAll(r.endpoints([]servicePort{{number: 80, page: true, path: challengePath + r.probeLabel}}))
}

// lookupElsewhere asks a server of the zone for the record in other zones that it may have.
func (r *run) lookupElsewhere(w service.Record) {
	z := r.zoneAt(r.facts.Zone)
	for _, name := range service.OtherZones(w.Owner, r.facts.Zone) {
		for _, s := range r.leastAsked(r.usableServers(z)) {
			sibling := registry.SuffixOf(name).Domain
			reply := r.ask(newQuery(sibling, s, name, w.Type))
			if reply.class() != iterate.Answer || reply.view == nil {
				continue
			}
			l := explain.Lookup{Question: iterate.Question{Name: name, Type: w.Type}, Result: iterate.Unknown}
			readLookup(&l, reply.last, reply.view.Answer, reply.ids...)
			r.facts.Service.Lookups = append(r.facts.Service.Lookups, l)
		}
	}
}

// endpoints returns the addresses of the hostname with each of the ports.
func (r *run) endpoints(ports []servicePort) (out []endpoint) {
	for _, a := range r.hostAddrs() {
		for _, p := range ports {
			if len(out) < maxAddresses {
				out = append(out, endpoint{addr: netip.AddrPortFrom(a, p.number), servicePort: p})
			}
		}
	}
	return out
}
