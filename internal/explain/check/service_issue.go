package check

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/mailtext"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// caaReadable is check TLS07. Let's Encrypt does not issue if this lookup ends with SERVFAIL or a timeout, even where
// no CAA record exists: without an answer, the CA cannot know that.
func caaReadable(f *explain.Facts) []explain.Finding {
	if f.Service == nil {
		return nil
	}
	asked := only(f.Service.Lookups, func(l explain.Lookup) bool { return l.Question.Type == typeCAA })
	if len(asked) == 0 {
		return nil
	}
	// The lookups climb from the name upwards, and end at the first records or the first failure: the last one decides.
	last := asked[len(asked)-1]
	if last.Result.Usable() {
		return pass(text(last.Question.Name), "The CAA records can be read.")
	}
	var evidence []int
	for i, e := range f.Exchanges {
		switch {
		case e.Question != last.Question:
		case e.Class == iterate.LameServfail || e.Class == iterate.LameRefused || e.Class == iterate.NotImp,
			e.Class == iterate.Timeout && silentFor(f, e):
			evidence = append(evidence, i)
		// A CA asks the other servers of the zone, too, so one server that may answer is enough for doubt.
		default: // other servers may answer
			return unknown(text(last.Question.Name), "The CAA records could not be looked up.")
		}
	}
	if len(evidence) == 0 {
		return unknown(text(last.Question.Name), "The CAA records could not be looked up.")
	}
	return []explain.Finding{seen(fail("", explain.DNSHost, text(last.Question.Name),
		"The servers of the zone do not answer the question for CAA at %s.", text(last.Question.Name)), evidence)}
}

// silentFor reports whether a server that answers other questions did not reply to this one, in at least two attempts.
// Some firewalls drop queries for types that they do not know.
func silentFor(f *explain.Facts, e iterate.Exchange) bool {
	lost, others := 0, false
	for _, x := range f.Exchanges {
		switch {
		case x.Server != e.Server:
		case x.Question == e.Question:
			lost++
		default:
			others = others || x.Class.Usable()
		}
	}
	return lost > 1 && others
}

// authority is a CA: the organization in the certificates that it issues, and its names in CAA records.
type authority struct {
	organization string
	names        []string
}

// authorities is short on purpose: a CA that is not listed makes the result unknown, and never wrong. A CA may accept
// several names (RFC 8659 §4.2), and some keep the names of CAs that they bought.
var authorities = []authority{
	{"Let's Encrypt", []string{"letsencrypt.org"}},
	{"Google Trust Services", []string{"pki.goog"}},
	{"DigiCert", []string{"digicert.com", "www.digicert.com", "digicert.ne.jp", "symantec.com", "geotrust.com",
		"rapidssl.com", "thawte.com"}},
	{"Sectigo", []string{"sectigo.com", "comodo.com", "comodoca.com", "usertrust.com", "trust-provider.com"}},
	{"ZeroSSL", []string{"sectigo.com"}},
	{"GlobalSign", []string{"globalsign.com"}},
	{"Amazon", []string{"amazon.com", "amazontrust.com", "awstrust.com", "amazonaws.com"}},
	{"Buypass", []string{"buypass.com", "buypass.no"}},
	{"SSL Corp", []string{"ssl.com"}},
	{"GoDaddy", []string{"godaddy.com", "starfieldtech.com"}},
	{"Entrust", []string{"entrust.net", "affirmtrust.com"}},
}

// permitted returns the CAs that the CAA records permit for the hostname. all is true if every CA is permitted, and ok
// is false if the records are not known.
func permitted(f *explain.Facts) (names []string, all, ok bool) {
	asked := only(f.Service.Lookups, func(l explain.Lookup) bool { return l.Question.Type == typeCAA })
	if len(asked) == 0 || !asked[len(asked)-1].Result.Usable() {
		return nil, false, false
	}
	byTag := map[string][]string{}
	for _, d := range asked[len(asked)-1].Data {
		if p, ok := mailtext.ParseCAA(d); ok {
			// Parameters such as accounturi (RFC 8657) limit the account of the CA, which is not known here.
			domain, _, _ := strings.Cut(p.Value, ";")
			tag := strings.ToLower(p.Tag)
			if p.Flags&criticalFlag != 0 && !slices.Contains(caaTags, tag) {
				return nil, false, true // RFC 8659 §4.1: a CA that does not know a critical property must not issue
			}
			byTag[tag] = append(byTag[tag], strings.ToLower(strings.TrimSpace(domain)))
		}
	}
	// A set with other properties only, such as iodef, does not limit who may issue.
	names, limited := byTag["issue"]
	// RFC 8659 §4.3: for a wildcard, issuewild replaces issue. For other names it has no meaning.
	if wild, has := byTag["issuewild"]; has && strings.HasPrefix(f.Service.Host, "*.") {
		names, limited = wild, true
	}
	// An empty name permits nobody (RFC 8659 §4.2); beside it, the other records still count.
	return slices.DeleteFunc(names, func(n string) bool { return n == "" }), !limited, true
}

// issuerPermitted is check TLS06. The certificate that is served shows which CA the service uses. Only a trusted one
// counts: the issuer of a certificate for tests says nothing about the CA.
func issuerPermitted(f *explain.Facts) []explain.Finding {
	if f.Service == nil {
		return nil
	}
	host := f.Service.Host
	names, all, ok := permitted(f)
	if !ok || f.Service.Objects != nil && f.Service.Objects.IsPlain(host) {
		return nil // TLS07 reports records that are not known; a service without TLS needs no certificate
	}
	if all {
		return pass(host, "The CAA records of %s permit every CA.", host)
	}
	allowed := words.Some(names)
	severity, issuer := explain.Critical, ""
	for _, c := range shaken(f) {
		if c.TLS.Trusted == explain.Yes {
			severity, issuer = explain.Warning, c.TLS.Issuer // it works until the certificate expires
		}
	}
	i := slices.IndexFunc(authorities, func(a authority) bool { return strings.Contains(issuer, a.organization) })
	switch {
	case len(names) == 0:
		return []explain.Finding{fail(severity, explain.DNSHost, host,
			"The CAA records of %s permit no CA: nobody can issue or renew its certificate.", host)}
	case issuer == "":
		return unknown(host, "Which CA issues the certificate of %s is not known; its CAA records permit %s.", host, allowed)
	case i < 0:
		return unknown(host, "The CAA records of %s permit %s. Whether that includes the issuer of its certificate (%s) is "+
			"not known.", host, allowed, issuer)
	case slices.ContainsFunc(authorities[i].names, func(n string) bool { return slices.Contains(names, n) }):
		return pass(host, "The CAA records of %s permit %s.", host, authorities[i].organization)
	}
	x := fail(severity, explain.DNSHost, host, "The CAA records of %s permit only %s, but its certificate is from %s: it "+
		"cannot be renewed.", host, allowed, authorities[i].organization)
	x.Fix = fmt.Sprintf("Add the CAA record 0 issue \"%s\", or use a CA that the records permit.", authorities[i].names[0])
	return []explain.Finding{x}
}

// challengeReachable is check TLS08. A CA always begins at port 80 (RFC 8555 §8.3). All addresses are asked, because
// the CA chooses one of them.
func challengeReachable(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil || !explain.WaitsForHTTP(f.Service) {
		return nil
	}
	host := f.Service.Host
	if !f.Service.Objects.Listens(host, "HTTP", 80) {
		return []explain.Finding{fail("", explain.You, host,
			"A Challenge for %s uses HTTP-01, but no listener of its Gateway has port 80, where the CA asks.", host)}
	}
	for _, c := range f.Service.Challenges {
		at := c.Addr.String()
		switch said := blocked(c); {
		case said != "":
			out = append(out, fail("", explain.You, at, "The CA cannot test %s with HTTP-01: %s %s.", host, at, said))
		case c.Connected != explain.Yes || c.Page == nil:
			out = append(out, unknown(at, "Whether a CA can test %s at %s is not known.", host, at)...)
		default:
			out = append(out, pass(at, "A CA can reach the path of HTTP-01 at %s.", at)...)
		}
	}
	if len(out) == 0 {
		return unknown(host, "No address of %s could be asked for the path of HTTP-01.", host)
	}
	return out
}

// blocked returns why a CA does not get the reply of the solver, or "". A CA follows redirects to any host, but only
// the solver of the same hostname has the reply. 404 is not a failure: a solver has a reply only for the token of its
// CA, which is not known here.
func blocked(c explain.Connection) string {
	p := c.Page
	switch {
	case c.Connected == explain.No:
		return "does not accept connections on port 80"
	case p == nil || p.Status == 0:
		return ""
	// A login or a filter in front of the path, or a backend that fails: the CA gets the same reply.
	case p.Status == 401, p.Status == 403, p.Status >= 500:
		return fmt.Sprintf("answers %d for the path of HTTP-01", p.Status)
	case p.Status/100 == 3:
		to, err := url.Parse(p.Location)
		if err == nil && to.Host != "" && !strings.EqualFold(to.Hostname(), c.Name) {
			return "redirects the path of HTTP-01 to " + to.Hostname()
		}
	}
	return ""
}

// certificateIssued is check TLS09. The reason in the Challenge is added, because the message of the Certificate often
// only says that it waits. The records follow it: a common cause is a hostname that leads elsewhere.
func certificateIssued(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil || f.Service.Objects == nil {
		return nil
	}
	var reasons []string
	for _, c := range f.Service.Objects.Challenges {
		if c.Status.State != "valid" && c.Status.Reason != "" {
			reasons = append(reasons, fmt.Sprintf("The Challenge says: %s", sentence(c.Status.Reason)))
		}
	}
	for _, c := range f.Service.Objects.Certificates {
		if !slices.Contains(c.Spec.Names, f.Service.Host) {
			continue
		}
		for _, x := range accepted(c.Status.Conditions, "Ready", c.Head) {
			if x.Status == explain.Fail {
				x.Words = strings.Join(append(append([]string{x.Words}, reasons...), leadsWords(f)...), " ")
			}
			out = append(out, x)
		}
	}
	return out
}

// leadsWords says what is known about the records of the hostname, beside the reasons of others.
func leadsWords(f *explain.Facts) []string {
	switch p := pointingOf(f); {
	case !p.known:
		return nil
	case p.byName || len(p.right) > 0:
		return []string{fmt.Sprintf("The records of %s lead to the service.", f.Service.Host)}
	}
	return []string{fmt.Sprintf("The records of %s do not lead to the service.", f.Service.Host)}
}

// backdated is how far CAs set the beginning of a certificate into the past. adoption is how long a Gateway may take to
// use a new certificate.
const (
	// Let's Encrypt does this for clients whose clocks are slow.
	backdated = time.Hour
	adoption  = time.Minute
)

// certificateUsed is check TLS10. Secrets are not read: the status of the Certificate shows which one is the newest. A
// Gateway that does not reload serves the old certificate until it expires, and then fails at once, though the
// Certificate is healthy.
func certificateUsed(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil || f.Service.Objects == nil {
		return nil
	}
	for _, c := range shaken(f) {
		for _, o := range f.Service.Objects.Certificates {
			_, issued := condition(o.Status.Conditions, "Ready", o.Generation)
			if issued != explain.Yes || isDefault(c.TLS) || o.Status.NotAfter.IsZero() || !sameNames(o, c.TLS.Names) {
				continue
			}
			at, age := c.Addr.String(), f.At.Sub(o.Status.NotBefore)
			switch {
			case !c.TLS.Until.Before(o.Status.NotAfter):
				out = append(out, pass(at, "%s shows the newest certificate of %s.", at, o.Head)...)
			case o.Status.NotBefore.IsZero() || age < backdated+adoption:
				out = append(out, unknown(at, "%s shows an older certificate than %s, which may just have been renewed.", at,
					o.Head)...)
			default:
				out = append(out, fail("", explain.You, at, "%s still shows a certificate that ends at %s, though %s was renewed "+
					"until %s.", at, words.Moment(c.TLS.Until, f.At), o.Head, words.Moment(o.Status.NotAfter, f.At)))
			}
		}
	}
	return out
}

// sameNames reports whether a certificate has the names of a Certificate, so that it is an older version of it.
// Another Certificate for the same hostname is no older version: its end says nothing.
func sameNames(o service.Certificate, names []string) bool {
	a, b := slices.Sorted(slices.Values(o.Spec.Names)), slices.Sorted(slices.Values(names))
	return slices.Equal(a, b)
}

// modernTLS is check TLS11. RFC 8996 deprecates TLS 1.0 and 1.1. HTTP/2 is a matter of speed: pages load without it.
func modernTLS(f *explain.Facts) (out []explain.Finding) {
	for _, c := range shaken(f) {
		at := c.Addr.String()
		switch {
		case c.TLS.Version == "TLS 1.0" || c.TLS.Version == "TLS 1.1":
			out = append(out, fail("", explain.You, at, "%s supports only %s, which browsers refuse.", at, c.TLS.Version))
		case c.TLS.HTTP2 == explain.No:
			out = append(out, fail("", explain.You, at, "%s does not offer HTTP/2.", at))
		case c.TLS.HTTP2 == explain.Yes:
			out = append(out, pass(at, "%s has %s and offers HTTP/2.", at, c.TLS.Version)...)
		}
	}
	return out
}

// noOverlap is check TLS12. Browsers use one HTTP/2 connection for all hostnames of a certificate (RFC 9113 §9.1.1).
// Requests for one hostname then arrive at the listener of another.
func noOverlap(f *explain.Facts) []explain.Finding {
	return each(f, listenerOf, func(a service.Attachment) []explain.Finding {
		s, generation := listenerStatus(a)
		switch c, fact := condition(s.Conditions, "OverlappingTLSConfig", generation); {
		case a.Listener.TLS == nil:
			return nil
		case fact == explain.Yes:
			return []explain.Finding{fail("", explain.You, listenerName(a), "The %s shares its certificate or hostnames with "+
				"another one: %s", listenerName(a), because(c))}
		case fact == explain.Unknown:
			return unknown(listenerName(a), "The controller has not yet judged the newest version of the %s.", listenerName(a))
		}
		return pass(listenerName(a), "The %s shares no certificate with another one.", listenerName(a))
	})
}
