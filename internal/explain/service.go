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
	Proof   *service.Record  `json:"proof,omitempty"` // the TXT record that proves the ownership; nil: none is needed
	// Lookups are the addresses of the targets, the CAA records, the proof, and the records at names where the records
	// of the service may have been entered by mistake.
	Lookups     []Lookup     `json:"lookups,omitempty"`
	Connections []Connection `json:"connections,omitempty"`
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
	if f.Service != nil {
		for _, l := range f.Service.Lookups {
			if l.Question.Name.IsIn(f.Zone) && l.Alias.IsZero() {
				add(l.Question.Name, l.Question.Type, l.Data)
			} else if l.Question.Name.IsIn(f.Zone) {
				add(l.Question.Name, rr.TypeCNAME, []string{l.Alias.String()})
			}
		}
	}
	return out
}
