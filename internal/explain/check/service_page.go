package check

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// connects is check HTTP01. It is critical only if no address accepts connections. Beside a working address it is an
// error: clients try the next address, after a delay.
func connects(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil {
		return nil
	}
	working := slices.ContainsFunc(f.Service.Connections, func(c explain.Connection) bool {
		return c.Connected == explain.Yes
	})
	dead := deadFamily(f) // HTTP05
	for _, c := range f.Service.Connections {
		if slices.ContainsFunc(dead, func(d explain.Connection) bool { return d.Addr == c.Addr }) ||
			c.Connected == explain.No && refusedPort(f, c.Addr.Port()) { // SVC05
			continue
		}
		severity := explain.Critical
		if working {
			severity = explain.Error
		}
		switch {
		case c.Connected == explain.Yes:
			out = append(out, pass(c.Addr.String(), "%s accepts connections.", c.Addr)...)
		// A machine without IPv6 gets no reply from any IPv6 address. That is no fault of the service.
		case c.Connected == explain.Unknown || c.Problem == noReply && !reaches(f, c.Addr.Addr()):
			out = append(out, unknown(c.Addr.String(), "%s could not be reached from here: %s", c.Addr, sentence(c.Problem))...)
		default:
			out = append(out, fail(severity, explain.You, c.Addr.String(), "%s does not accept connections: %s", c.Addr,
				sentence(c.Problem)))
		}
	}
	return out
}

// refusedPort reports whether the controller serves none of the listeners with a port.
func refusedPort(f *explain.Facts, port uint16) bool {
	with := only(attachments(f), func(a service.Attachment) bool {
		return a.Listener != nil && a.Listener.Port == int(port)
	})
	return len(with) > 0 && !slices.ContainsFunc(with, func(a service.Attachment) bool {
		_, refused := refusal(a)
		return !refused
	})
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

// noBackend are the pages of gateways that have no backend to send a request to. The texts are those of Envoy,
// Traefik, nginx and HAProxy. The status is not enough: applications also answer 503 themselves.
var noBackend = []string{"no healthy upstream", "no available server", "upstream connect error", "Bad Gateway",
	"Service Unavailable", "Service Temporarily Unavailable"}

// backendAnswers is check HTTP02. Traefik answers 500 without a body when a Service has no endpoints. Other pages with
// 5xx count as those of the application: then DNS, TLS and routing work, so it is an error and not critical.
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

// hostRouted is check HTTP03. Any 404 without a body is the gateway's: a backend has a page. 421 means that the server
// does not serve this name on the connection (RFC 9110 §15.5.20).
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
		// A page of the application: many APIs have nothing at the path "/".
		case p.Status == 404:
			out = append(out, fail(explain.Warning, explain.You, c.Addr.String(), "%s answers 404 for %s.", c.Addr, p.URL))
		default:
			out = append(out, pass(c.Addr.String(), "%s has a route for %s.", c.Addr, c.Name)...)
		}
	}
	return out
}

// noRedirectLoop is check HTTP04. The usual cause is a proxy that ends TLS and asks the service over HTTP, which
// redirects to HTTPS each time. Redirects are not followed, because the reply of a stranger would choose which host is
// connected to.
func noRedirectLoop(f *explain.Facts) (out []explain.Finding) {
	for _, c := range pages(f) {
		p := c.Page
		to, err := url.Parse(p.Location)
		switch {
		case p.Status/100 == 3 && strings.TrimSuffix(p.Location, "/") == strings.TrimSuffix(p.URL, "/"):
			out = append(out, fail("", explain.You, c.Addr.String(), "%s redirects %s to itself.", c.Addr, p.URL))
		case p.Status/100 == 3 && err == nil && to.Host != "" && !strings.EqualFold(to.Hostname(), c.Name):
			x := fail(explain.Notice, explain.You, c.Addr.String(), "%s redirects %s to the host %s, which is not judged.",
				c.Addr, p.URL, to.Hostname())
			x.Fix = fmt.Sprintf("Do nothing if %s is yours; check it, too.", to.Hostname())
			out = append(out, x)
		default:
			out = append(out, pass(c.Addr.String(), "%s does not redirect %s to itself or to another host.", c.Addr, p.URL)...)
		}
	}
	return out
}

// deadFamily returns the connections of an address family that accepts none, while the other one does. One broken
// family is easily overlooked: browsers fall back to the other one (RFC 8305), but programs without fallback and
// clients with one family fail.
func deadFamily(f *explain.Facts) []explain.Connection {
	if f.Service == nil {
		return nil
	}
	for _, six := range []bool{true, false} {
		in := func(c explain.Connection) bool { return c.Addr.Addr().Is6() == six }
		mine := only(f.Service.Connections, in)
		other := only(f.Service.Connections, func(c explain.Connection) bool { return !in(c) })
		dead := len(mine) > 0 && !slices.ContainsFunc(mine, func(c explain.Connection) bool {
			return c.Connected != explain.No || c.Problem == noReply && !reaches(f, c.Addr.Addr())
		})
		if dead && slices.ContainsFunc(other, func(c explain.Connection) bool { return c.Connected == explain.Yes }) {
			return mine
		}
	}
	return nil
}

// familiesAgree is check HTTP05.
func familiesAgree(f *explain.Facts) []explain.Finding {
	if dead := deadFamily(f); dead != nil {
		names := words.Each(dead, func(c explain.Connection) string { return c.Addr.String() })
		return []explain.Finding{fail("", explain.You, names[0],
			"The service works over %s, but not over %s: %s %s not accept connections.",
			familyName(!dead[0].Addr.Addr().Is6()), familyName(dead[0].Addr.Addr().Is6()), words.Some(names),
			words.Verb(len(names), "does", "do"))}
	}
	var first [2]*explain.Connection // by family
	for _, c := range pages(f) {
		i := 0
		if c.Addr.Addr().Is6() {
			i = 1
		}
		if first[i] == nil {
			first[i] = &c
		}
	}
	a, b := first[0], first[1]
	switch {
	// The class of the status is compared and not the page: many pages differ at each request.
	case a == nil || b == nil || a.Addr.Port() != b.Addr.Port():
		return nil
	case a.Page.Status/100 != b.Page.Status/100:
		return []explain.Finding{fail("", explain.You, b.Addr.String(),
			"The service answers %d over IPv4 (%s) and %d over IPv6 (%s).", a.Page.Status, a.Addr, b.Page.Status, b.Addr)}
	}
	return pass(b.Addr.String(), "The service answers the same over IPv4 and IPv6.")
}

func familyName(six bool) string {
	if six {
		return "IPv6"
	}
	return "IPv4"
}

// redirectsToHTTPS is check HTTP07. Browsers that have no HSTS entry may try HTTP first when a person types a name.
func redirectsToHTTPS(f *explain.Facts) []explain.Finding {
	secure, ok := find(attachments(f), func(a service.Attachment) bool {
		return a.Listener != nil && a.Problem == "" && a.Listener.Protocol == "HTTPS"
	})
	if !ok {
		return nil
	}
	host := f.Service.Host
	if !f.Service.Objects.Listens(host, "HTTP", 80) {
		return []explain.Finding{fail("", explain.You, host, "%s has no listener with port 80 for %s: visitors who type the "+
			"name without https may get an error.", secure.Gateway, host)}
	}
	c, ok := find(pages(f), func(c explain.Connection) bool { return c.TLS == nil && c.Addr.Port() == 80 })
	switch {
	case !ok || c.Page.Status >= 400: // an error page says nothing about redirects
		return unknown(host, "Whether %s redirects from HTTP to HTTPS is not known.", host)
	case c.Page.Status/100 == 3 && strings.HasPrefix(c.Page.Location, "https://"):
		return pass(host, "%s redirects from HTTP to HTTPS.", host)
	}
	return []explain.Finding{fail("", explain.You, host, "%s answers %d over HTTP, and does not redirect to HTTPS.", host,
		c.Page.Status)}
}
