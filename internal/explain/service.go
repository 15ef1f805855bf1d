package explain

import (
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// Service holds what was found about the service behind a hostname.
type Service struct {
	Host    string           `json:"host"`              // "*.example.com" for all names below
	Objects *service.Objects `json:"objects,omitempty"` // nil: none were given
	Whole   bool             `json:"whole,omitempty"`   // Objects has all objects of a cluster: others do not exist
	Targets service.Targets  `json:"targets,omitzero"`

	// The proofs of ownership. One that is complete is enough; without any, no proof is needed.
	Proof       *service.Record `json:"proof,omitempty"`       // the TXT record
	Token       *service.Token  `json:"token,omitempty"`       // the text at a URL
	Nameservers []dnsname.Name  `json:"nameservers,omitempty"` // the zone must be delegated to these servers only
	// Ownership is the result of earlier checks; nil: there were none.
	Ownership *service.Ownership `json:"ownership,omitempty"`
	Records   []Answer           `json:"records,omitempty"` // the answers of each server to the question for Proof
	Tokens    []Connection       `json:"tokens,omitempty"`  // the replies of each address to the request for Token

	// HasAlias says that the DNS host of the zone has the record type ALIAS, because it is this server.
	HasAlias bool `json:"hasAlias,omitempty"`

	// Lookups are the addresses of the targets, the CAA records, the proof, and the records at names where the records
	// of the service may have been entered by mistake.
	Lookups     []Lookup     `json:"lookups,omitempty"`
	Connections []Connection `json:"connections,omitempty"`
	// Challenges are the replies to requests as a CA sends them for HTTP-01, if the hostname has such a Challenge.
	Challenges []Connection `json:"challenges,omitempty"`
}

// Lookup returns the result of a question, if it was asked.
func (s *Service) Lookup(name dnsname.Name, t rr.Type) (Lookup, bool) {
	q := iterate.Question{Name: name, Type: t}
	i := slices.IndexFunc(s.Lookups, func(l Lookup) bool { return l.Question == q })
	if i < 0 {
		return Lookup{}, false
	}
	return s.Lookups[i], true
}

// Resolved returns the addresses of the host names of the targets. ok is false if one of them could not be looked up.
func (s *Service) Resolved() (out []netip.Addr, ok bool) {
	ok = true
	for _, host := range s.Targets.Hosts {
		for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA} {
			l, asked := s.Lookup(host, t)
			ok = ok && asked && l.Result.Usable()
			for _, d := range l.Data {
				if a, err := netip.ParseAddr(d); err == nil {
					out = append(out, a)
				}
			}
		}
	}
	return out, ok
}

// Connection is one connection to an address of the service, with the certificate and the page that it returned.
type Connection struct {
	Addr      netip.AddrPort `json:"addr"`
	Name      string         `json:"name"`      // the name in SNI and in the Host field
	Connected Fact           `json:"connected"` // Unknown: nothing could be sent from here
	Problem   string         `json:"problem,omitempty"`

	TLS  *Handshake `json:"tls,omitempty"`  // nil: the listener has no TLS, or no connection
	Page *Page      `json:"page,omitempty"` // nil: no request was sent, or no reply came
}

// Handshake is what a server showed in a TLS handshake.
type Handshake struct {
	Done     Fact      `json:"done"` // the handshake ended well
	Problem  string    `json:"problem,omitempty"`
	Version  string    `json:"version,omitempty"`
	Protocol string    `json:"protocol,omitempty"` // ALPN
	Subject  string    `json:"subject,omitempty"`
	Issuer   string    `json:"issuer,omitempty"`
	Names    []string  `json:"names,omitempty"` // subject alternative names
	From     time.Time `json:"from,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	Covers   Fact      `json:"covers"`  // the certificate is valid for Name
	Trusted  Fact      `json:"trusted"` // its chain ends at a CA that clients trust
	Why      string    `json:"why,omitempty"`
	HTTP2    Fact      `json:"http2,omitempty"` // the server offers HTTP/2; empty: not tried
}

// Page is the reply to a request.
type Page struct {
	URL      string `json:"url"`
	Status   int    `json:"status"`
	Server   string `json:"server,omitempty"`
	Location string `json:"location,omitempty"`
	Body     string `json:"body,omitempty"` // its beginning
	Problem  string `json:"problem,omitempty"`
}

// ExpectedRecords returns the record sets that the zone must have for the service. It returns none if the zone or the
// targets are not known.
func ExpectedRecords(f *Facts) []service.Record {
	if f.Service == nil || f.Zone.IsZero() || f.Service.Targets.IsZero() {
		return nil
	}
	resolved, _ := f.Service.Resolved()
	return service.Expected(f.Name, f.Zone, f.Service.Targets, resolved)
}

// EntryRecords returns the record sets to enter at the DNS host. They are those of ExpectedRecords, except that an apex
// gets an ALIAS if the DNS host has this type: it follows the target when its addresses change.
func EntryRecords(f *Facts) []service.Record {
	want := ExpectedRecords(f)
	if len(want) == 0 || f.Name != f.Zone || len(f.Service.Targets.Hosts) == 0 || !CanAlias(f) {
		return want
	}
	return []service.Record{{Owner: f.Name, Type: rr.TypeALIAS, Data: []string{f.Service.Targets.Hosts[0].String()},
		TTL: want[0].TTL}}
}

// CanAlias reports whether the DNS host of the zone is known to have the record type ALIAS.
func CanAlias(f *Facts) bool {
	parent, _, ok := nsSets(f)
	return f.Service != nil && (f.Service.HasAlias || ok && service.HasAlias(parent.NS))
}

// LiveRecords returns the record sets that the servers of the zone have at the name and where the records of the
// service may have been entered by mistake.
func LiveRecords(f *Facts) (out []service.Live) {
	add := func(owner dnsname.Name, t rr.Type, data []string) {
		same := func(l service.Live) bool { return l.Owner == owner && l.Type == t }
		if len(data) > 0 && !slices.ContainsFunc(out, same) {
			out = append(out, service.Live{Owner: owner, Type: t, Data: data})
		}
	}
	for _, a := range f.Answers {
		for _, s := range a.Sets {
			if a.Question.Name == f.Name && s.Name == f.Name && !a.Subnet.IsValid() {
				add(s.Name, s.Type, s.Data)
			}
		}
	}
	if f.Service == nil {
		return out
	}
	owners := recordOwners(f)
	for _, l := range f.Service.Lookups {
		switch name := l.Question.Name; {
		case !slices.Contains(owners, name):
		case l.Alias.IsZero():
			add(name, l.Question.Type, l.Data)
		default:
			add(name, rr.TypeCNAME, []string{l.Alias.String()})
		}
	}
	return out
}

// recordOwners returns the names of the records of the service, and those at which they may have been entered by
// mistake. Other names, such as the random one that finds wildcards, prove nothing.
func recordOwners(f *Facts) (out []dnsname.Name) {
	want := ExpectedRecords(f)
	if f.Service.Proof != nil {
		want = append(want, *f.Service.Proof)
	}
	for _, w := range want {
		out = slices.Concat(out, []dnsname.Name{w.Owner}, service.Suspects(w, f.Zone), service.OtherZones(w.Owner, f.Zone))
	}
	return out
}

// WaitsForHTTP reports whether a CA has yet to test the hostname with HTTP-01.
func WaitsForHTTP(s *Service) bool {
	return s.Objects != nil && slices.ContainsFunc(s.Objects.Challenges, func(c service.Challenge) bool {
		return c.Spec.Type == "HTTP-01" && c.Status.State != "valid"
	})
}
