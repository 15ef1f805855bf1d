// Package registry queries domain registries about registrations: with RDAP first, with WHOIS if RDAP is missing or
// fails.
//
// Replies are parsed leniently but trusted carefully: a domain whose state cannot be determined is Unknown, never
// Free. Queries are limited in rate, time and size. They go only to public addresses, because referrals and redirects
// come from third parties.
//
// Start with Client.Lookup in registry.go: it returns a Registration (registration.go). The queries are in askrdap.go
// and askwhois.go, the parsers in rdap.go and whoisparse.go.
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
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Client queries registries. The zero Client queries those of the public internet. A Client must not be copied after
// its first use.
type Client struct {
	// Dial opens connections by host name, for HTTP and WHOIS. Default: that of a net.Dialer. A lab uses it to serve
	// public host names on loopback addresses.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Allow func(netip.Addr) bool // the addresses that may be connected to; default: those that are public by Special
	Roots *x509.CertPool        // the authorities for TLS certificates; default: those of the system
	// Special has the operator's prefixes of NAT64. The command line has no operator, and leaves it empty.
	Special specialaddr.Table

	Bootstrap string // URL of the list of RDAP servers (RFC 9224); default: IANA's
	WhoisRoot string // host:port of the server that knows the servers of all top-level domains; default: IANA's

	Log *slog.Logger // logs each query, but nothing of the replies; default: no log

	once      sync.Once // initializes the following
	http      *http.Client
	limits    limiter
	bootstrap bootstrap
	roots     whoisRoots
}

const (
	timeout = 10 * time.Second // for one query to one server
	maxTime = 30 * time.Second // for a whole lookup
)

// The servers of IANA.
const (
	ianaBootstrap = "https://data.iana.org/rdap/dns.json"
	ianaWhois     = "whois.iana.org:43"
)

func (c *Client) prepare() {
	c.http = c.newHTTP()
	c.bootstrap.busy = make(chan struct{}, 1)
}

// Lookup returns the registration of the domain that contains name: example.com for www.example.com. It returns an
// error only if the caller cancels the context. All other failures are in the Registration.
func (c *Client) Lookup(ctx context.Context, name dnsname.Name) (Registration, error) {
	c.once.Do(c.prepare)
	suffix := SuffixOf(name)
	l := lookup{Client: c, domain: suffix.Domain}
	l.Registration = Registration{Domain: name.String(), State: Unknown}
	switch _, err := ascii(name); {
	case err != nil:
		l.Why = "No server was queried: " + err.Error() + "."
	case suffix.Domain.IsZero():
		l.Why = "No server was queried: the name is a public suffix, not a registered domain."
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

// lookup is the state of one call of Lookup.
type lookup struct {
	*Client
	Registration
	domain dnsname.Name
}

// run queries with RDAP, and with WHOIS if RDAP does not determine the state.
func (l *lookup) run(ctx context.Context) {
	// Keep a third of the time for WHOIS. An RDAP server that never ends its reply must not use it up.
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
		l.Why = fmt.Sprintf("Whether the domain is registered could not be determined. RDAP: %v. WHOIS: %v.",
			noRDAP, noWhois)
	}
}

// ascii returns the domain as servers expect it: with A-labels and without the final dot.
func (l *lookup) ascii() string { return strings.TrimSuffix(l.Domain, ".") }

// decide sets the state that host returned.
func (l *lookup) decide(s State, source Source, host string) {
	l.State, l.Source, l.Registry = s, source, host
	if s == Free {
		l.Why = "The registry's server " + host + " has no such domain."
		return
	}
	l.Why = "The registry's server " + host + " has the domain."
}

// asked records an attempt as evidence and in the log.
func (l *lookup) asked(ctx context.Context, a Attempt, result string) {
	a.Took = time.Since(a.At)
	a.Result = clean(result)
	l.Asked = append(l.Asked, a)
	if l.Log != nil {
		l.Log.DebugContext(ctx, "queried a registry",
			"domain", l.Domain, "kind", a.Kind, "server", a.Server, "took", a.Took, "result", a.Result)
	}
}

func (l *lookup) problem(format string, args ...any) {
	l.Problems = append(l.Problems, clean(fmt.Sprintf(format, args...)))
}

// fill adds the registrar's own data and the data that the registry left out. Statuses, name servers and DS records
// come only from the registry, because they end up in its zone.
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

// take sets the data of the registry's reply.
func (r *Registration) take(from Registration) {
	r.Handle, r.Registrar, r.Dates, r.Statuses = from.Handle, from.Registrar, from.Dates, from.Statuses
	r.Nameservers, r.DNSSEC, r.Confidence = from.Nameservers, from.DNSSEC, from.Confidence
}
