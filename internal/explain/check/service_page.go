package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// expiryWarning is the time before the end of a certificate from which it is reported. cert-manager renews 30 days
// before the end of a certificate of 90 days, so 14 days left mean that renewal fails.
const expiryWarning = 14 * 24 * time.Hour

// shaken returns the connections with a complete handshake.
func shaken(f *explain.Facts) []explain.Connection {
	if f.Service == nil {
		return nil
	}
	return only(f.Service.Connections, func(c explain.Connection) bool {
		return c.TLS != nil &&
			c.TLS.Done == explain.Yes
	})
}

// defaults are the certificates that controllers show for hostnames that they do not know.
var defaults = []string{"TRAEFIK DEFAULT CERT", "Kubernetes Ingress Controller Fake Certificate",
	"Caddy Local Authority",
	"localhost.localdomain"}

func isDefault(h *explain.Handshake) bool {
	return slices.ContainsFunc(defaults, func(d string) bool { return strings.Contains(h.Subject+h.Issuer, d) })
}

// certificateDefault is check TLS02.
func certificateDefault(f *explain.Facts) (out []explain.Finding) {
	for _, c := range shaken(f) {
		if isDefault(c.TLS) {
			out = append(out, fail("", explain.You, c.Addr.String(),
				"%s shows the default certificate of its controller (%s).", c.Addr,
				c.TLS.Subject))
			continue
		}
		out = append(out, pass(c.Addr.String(), "%s does not show a default certificate.", c.Addr)...)
	}
	return out
}

// certificateCovers is check TLS01. It names the trap of a wildcard: in a listener it stands for several labels, in a
// certificate for one.
func certificateCovers(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil {
		return nil
	}
	for _, c := range f.Service.Connections {
		switch {
		case c.TLS == nil:
		case c.TLS.Done == explain.No:
			out = append(out, fail("", explain.You, c.Addr.String(), "%s does not complete a TLS handshake for %s: %s", c.Addr,
				c.Name, sentence(c.TLS.Problem)))
		case isDefault(c.TLS): // TLS02
		case c.TLS.Covers == explain.Yes:
			out = append(out, pass(c.Addr.String(), "The certificate of %s is valid for %s.", c.Addr, c.Name)...)
		default:
			said := fmt.Sprintf("The certificate of %s is valid for %s, and not for %s.", c.Addr, words.Some(c.TLS.Names),
				c.Name)
			if w := twoLabels(c); w != "" {
				said += fmt.Sprintf(" The wildcard %s of a certificate stands for one label only, though the same wildcard of a "+
					"listener accepts this hostname.", w)
			}
			out = append(out, fail("", explain.You, c.Addr.String(), "%s", said))
		}
	}
	return out
}

// twoLabels returns a wildcard of the certificate below which the hostname has more than one label.
func twoLabels(c explain.Connection) string {
	for _, n := range c.TLS.Names {
		suffix, ok := strings.CutPrefix(n, "*")
		if ok && strings.HasSuffix(c.Name, suffix) && strings.Contains(strings.TrimSuffix(c.Name, suffix), ".") {
			return n
		}
	}
	return ""
}

// certificateCurrent is check TLS03.
func certificateCurrent(f *explain.Facts) (out []explain.Finding) {
	for _, c := range shaken(f) {
		left := c.TLS.Until.Sub(f.At)
		switch {
		case f.At.Before(c.TLS.From):
			out = append(out, fail("", explain.You, c.Addr.String(), "The certificate of %s is valid only from %s.", c.Addr,
				words.Moment(c.TLS.From, f.At)))
		case left <= 0:
			out = append(out, fail("", explain.You, c.Addr.String(), "The certificate of %s expired at %s.", c.Addr,
				words.Moment(c.TLS.Until, f.At)))
		case left < expiryWarning:
			out = append(out, fail(explain.Warning, explain.You, c.Addr.String(), "The certificate of %s expires in %s.", c.Addr,
				words.Length(left)))
		default:
			out = append(out, pass(c.Addr.String(), "The certificate of %s is valid for another %s.", c.Addr, words.Length(
				left))...)
		}
	}
	return out
}

// certificateTrusted is check TLS04. A default certificate is never trusted, and is reported as such.
func certificateTrusted(f *explain.Facts) (out []explain.Finding) {
	for _, c := range shaken(f) {
		switch {
		case isDefault(c.TLS):
		case c.TLS.Trusted == explain.Yes:
			out = append(out, pass(c.Addr.String(), "The certificate of %s has a trusted chain.", c.Addr)...)
		case c.TLS.Trusted == explain.No:
			out = append(out, fail("", explain.You, c.Addr.String(), "The certificate of %s is not trusted: %s", c.Addr,
				sentence(c.TLS.Why)))
		}
	}
	return out
}

// certificatesAgree is check TLS05.
func certificatesAgree(f *explain.Facts) []explain.Finding {
	all := shaken(f)
	if len(all) < 2 {
		return nil
	}
	for _, c := range all[1:] {
		if a, b := all[0].TLS, c.TLS; a.Subject != b.Subject || !a.Until.Equal(b.Until) {
			return []explain.Finding{fail("", explain.You, c.Addr.String(),
				"%s and %s show different certificates: %s until %s, and %s until %s.", all[0].Addr, c.Addr, words.Some(a.Names),
				words.Moment(a.Until, f.At), words.Some(b.Names), words.Moment(b.Until, f.At))}
		}
	}
	return pass(all[0].Addr.String(), "All addresses show the same certificate.")
}

// connects is check HTTP01. It is critical only if no address accepts connections.
func connects(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil {
		return nil
	}
	working := slices.ContainsFunc(f.Service.Connections, func(c explain.Connection) bool {
		return c.Connected == explain.Yes
	})
	for _, c := range f.Service.Connections {
		severity := explain.Critical
		if working {
			severity = explain.Error
		}
		switch {
		case c.Connected == explain.Yes:
			out = append(out, pass(c.Addr.String(), "%s accepts connections.", c.Addr)...)
		case c.Connected == explain.Unknown || c.Problem == noReply && !reaches(f, c.Addr.Addr()):
			out = append(out, unknown(c.Addr.String(), "%s could not be reached from here: %s", c.Addr, sentence(c.Problem))...)
		default:
			out = append(out, fail(severity, explain.You, c.Addr.String(), "%s does not accept connections: %s", c.Addr,
				sentence(c.Problem)))
		}
	}
	return out
}

// noReply is the problem of an address that did not reply. It means nothing where this machine cannot use its family.
const noReply = "no reply in time"

// reaches reports whether this machine can reach addresses of a family.
func reaches(f *explain.Facts, a netip.Addr) bool {
	return usable(f, a) || slices.ContainsFunc(f.Service.Connections, func(c explain.Connection) bool {
		return c.Connected == explain.Yes && c.Addr.Addr().Is4() == a.Is4()
	})
}

// pages returns the connections with a reply to a request.
func pages(f *explain.Facts) []explain.Connection {
	if f.Service == nil {
		return nil
	}
	return only(f.Service.Connections, func(c explain.Connection) bool { return c.Page != nil && c.Page.Status != 0 })
}

// noBackend are the pages of gateways that have no backend to send a request to.
var noBackend = []string{"no healthy upstream", "no available server", "upstream connect error", "Bad Gateway",
	"Service Unavailable", "Service Temporarily Unavailable"}

// backendAnswers is check HTTP02. Traefik answers 500 without a body when a Service has no endpoints.
func backendAnswers(f *explain.Facts) (out []explain.Finding) {
	for _, c := range pages(f) {
		p := c.Page
		known := p.Status == 500 && p.Body == "" || slices.ContainsFunc(noBackend, func(s string) bool {
			return strings.Contains(p.Body, s)
		})
		switch {
		case p.Status < 500:
			out = append(out, pass(c.Addr.String(), "%s answers %d.", c.Addr, p.Status)...)
		case known:
			out = append(out, fail("", explain.You, c.Addr.String(),
				"%s answers %d for %s: DNS is right, but no backend is ready.",
				c.Addr, p.Status, c.Name))
		default:
			out = append(out, fail(explain.Error, explain.You, c.Addr.String(), "%s answers %d for %s.", c.Addr, p.Status,
				c.Name))
		}
	}
	return out
}

// notRouted are the 404 pages of gateways, in contrast to those of backends.
var notRouted = []string{"404 page not found", "default backend - 404", "<center>nginx</center>", "no Route matched"}

// hostRouted is check HTTP03. Any 404 without a body is the gateway's: a backend has a page.
func hostRouted(f *explain.Facts) (out []explain.Finding) {
	for _, c := range pages(f) {
		p := c.Page
		own := strings.TrimSpace(p.Body) == "" || slices.ContainsFunc(notRouted, func(s string) bool {
			return strings.Contains(p.Body, s)
		})
		switch {
		case p.Status == 421, p.Status == 404 && own:
			out = append(out, fail("", explain.You, c.Addr.String(),
				"%s answers %d for %s: it has no route for this hostname.", c.Addr,
				p.Status, c.Name))
		case p.Status == 404:
			out = append(out, fail(explain.Warning, explain.You, c.Addr.String(), "%s answers 404 for %s.", c.Addr, p.URL))
		default:
			out = append(out, pass(c.Addr.String(), "%s has a route for %s.", c.Addr, c.Name)...)
		}
	}
	return out
}

// noRedirectLoop is check HTTP04.
func noRedirectLoop(f *explain.Facts) (out []explain.Finding) {
	for _, c := range pages(f) {
		p := c.Page
		if p.Status/100 == 3 && strings.TrimSuffix(p.Location, "/") == strings.TrimSuffix(p.URL, "/") {
			out = append(out, fail("", explain.You, c.Addr.String(), "%s redirects %s to itself.", c.Addr, p.URL))
		} else {
			out = append(out, pass(c.Addr.String(), "%s does not redirect %s to itself.", c.Addr, p.URL)...)
		}
	}
	return out
}
