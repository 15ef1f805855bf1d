// Package registry asks domain registries about registrations: RDAP first, WHOIS where that is missing or fails.
//
// What servers say is read leniently, and believed carefully: what cannot be found out is Unknown, never Free. They are asked
// slowly, within bounds of time and size, and only at public addresses, because referrals and redirects come from others.
package registry

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Client asks registries. The zero Client asks those of the public internet. It must not be copied once it was used.
type Client struct {
	// Dial opens connections by host name, for HTTP and WHOIS; default: a net.Dialer's. It is how a lab puts famous names
	// on loopback.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Allow func(netip.Addr) bool // the addresses that may be connected to; default: public ones
	Roots *x509.CertPool        // whom to trust for certificates; default: whom the system trusts

	Bootstrap string // URL of the list of RDAP servers (RFC 9224); default: IANA's
	WhoisRoot string // host:port of the server that knows the servers of all top-level domains; default: IANA's

	Log *slog.Logger // gets each question to a server, and nothing of the replies; default: none

	once      sync.Once // makes the following
	http      *http.Client
	limits    limiter
	bootstrap bootstrap
	roots     whoisRoots
}

const (
	timeout = 10 * time.Second // of one question to one server
	maxTime = 30 * time.Second // of a lookup in all
)

// The names of IANA's servers.
const (
	ianaBootstrap = "https://data.iana.org/rdap/dns.json"
	ianaWhois     = "whois.iana.org:43"
)

func (c *Client) prepare() {
	c.http = c.newHTTP()
	c.bootstrap.busy = make(chan struct{}, 1)
}

// Lookup finds out about the registration of the domain that name is in: example.com for www.example.com. It fails only if
// the caller left, that is, cancelled the context. What else went wrong is in the Registration.
func (c *Client) Lookup(ctx context.Context, name dnsname.Name) (Registration, error) {
	c.once.Do(c.prepare)
	suffix := SuffixOf(name)
	l := lookup{Client: c, domain: suffix.Domain}
	l.Registration = Registration{Domain: name.String(), State: Unknown}
	switch _, err := ascii(name); {
	case err != nil:
		l.Why = "Nobody was asked: " + err.Error() + "."
	case suffix.Domain.IsZero():
		l.Why = "Nobody was asked: this is a suffix under which others register, not a domain that somebody registered."
	default:
		l.Domain, l.Unicode, l.Suffix = suffix.Domain.String(), unicodeOf(suffix.Domain), suffix.Public.String()
		bounded, cancel := context.WithTimeout(ctx, maxTime)
		defer cancel()
		l.run(bounded)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return l.Registration, ctx.Err()
	}
	return l.Registration, nil
}

// lookup is a Registration in the making.
type lookup struct {
	*Client
	Registration
	domain dnsname.Name
}

// run asks by RDAP, and if that does not tell, by WHOIS.
func (l *lookup) run(ctx context.Context) {
	// A third of the time is kept for WHOIS, which a server that never ends its reply must not eat.
	end, _ := ctx.Deadline()
	rdap, cancel := context.WithTimeout(ctx, time.Until(end)*2/3)
	noRDAP := l.askRDAP(rdap)
	cancel()
	if noRDAP == nil {
		return
	}
	noWhois := l.askWhois(ctx)
	if noWhois != nil {
		l.State, l.Source = Unknown, ""
		l.Why = fmt.Sprintf("It could not be found out. RDAP: %v. WHOIS: %v.", noRDAP, noWhois)
	}
}

// ascii is the domain as servers want it: A-labels, no final dot.
func (l *lookup) ascii() string { return strings.TrimSuffix(l.Domain, ".") }

// decide sets the state, as host told it.
func (l *lookup) decide(s State, source Source, host string) {
	l.State, l.Source, l.Registry = s, source, host
	if s == Free {
		l.Why = "The registry's server " + host + " has no such domain."
		return
	}
	l.Why = "The registry's server " + host + " has it."
}

// asked keeps an attempt as evidence and in the log.
func (l *lookup) asked(ctx context.Context, a Attempt, result string) {
	a.Took = time.Since(a.At)
	a.Result = clean(result)
	l.Asked = append(l.Asked, a)
	if l.Log != nil {
		l.Log.DebugContext(ctx, "asked a registry", "domain", l.Domain, "kind", a.Kind, "server", a.Server, "took", a.Took, "result", a.Result)
	}
}

func (l *lookup) problem(format string, args ...any) {
	l.Problems = append(l.Problems, clean(fmt.Sprintf(format, args...)))
}

// fill takes from the registrar what is his to tell, and what the registry left out. Statuses, name servers and DS records are
// the registry's alone, as it is its zone that they end up in.
func (r *Registration) fill(from Registration) {
	if at := cmpTime(from.Dates.RegistrarExpires, from.Dates.Expires); !at.IsZero() {
		r.Dates.RegistrarExpires = at
	}
	r.Dates.Created = cmpTime(r.Dates.Created, from.Dates.Created)
	r.Dates.Updated = cmpTime(r.Dates.Updated, from.Dates.Updated)
	r.Dates.Transferred = cmpTime(r.Dates.Transferred, from.Dates.Transferred)
	r.Registrar.Name = cmp.Or(r.Registrar.Name, from.Registrar.Name)
	r.Registrar.IANAID = cmp.Or(r.Registrar.IANAID, from.Registrar.IANAID)
	r.Registrar.URL = cmp.Or(r.Registrar.URL, from.Registrar.URL)
	r.Registrar.AbuseEmail = cmp.Or(r.Registrar.AbuseEmail, from.Registrar.AbuseEmail)
	r.Registrar.AbusePhone = cmp.Or(r.Registrar.AbusePhone, from.Registrar.AbusePhone)
}

func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// take makes what a registry's reply says the registration's own.
func (r *Registration) take(from Registration) {
	r.Handle, r.Registrar, r.Dates, r.Statuses = from.Handle, from.Registrar, from.Dates, from.Statuses
	r.Nameservers, r.DNSSEC, r.Confidence = from.Nameservers, from.DNSSEC, from.Confidence
}
