package check

import (
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

// certificateDefault is check TLS02. It comes instead of TLS01 and TLS04: the controller has no certificate for the
// hostname at all, so the names and the chain of this one do not matter.
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

// certificateCovers is check TLS01.
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
		case isDefault(c.TLS), c.TLS.Covers == explain.No && twoLabels(c.Name, c.TLS.Names) != "": // TLS02, SVC24
		case c.TLS.Covers == explain.Yes:
			out = append(out, pass(c.Addr.String(), "The certificate of %s is valid for %s.", c.Addr, c.Name)...)
		default:
			out = append(out, fail("", explain.You, c.Addr.String(), "The certificate of %s is valid for %s, and not for %s.",
				c.Addr, words.Some(c.TLS.Names), c.Name))
		}
	}
	return out
}

// twoLabels returns a wildcard of a certificate below which the hostname has more than one label. A wildcard stands
// for exactly one label (RFC 9525 §6.3).
func twoLabels(host string, names []string) string {
	for _, n := range names {
		suffix, ok := strings.CutPrefix(n, "*")
		if ok && strings.HasSuffix(host, suffix) && strings.Contains(strings.TrimSuffix(host, suffix), ".") {
			return n
		}
	}
	return ""
}

// oneLabel is check SVC24. It names the trap of a wildcard: in a listener it stands for several labels, in a
// certificate for one. Without a handshake, the Certificate of the listener shows it.
func oneLabel(f *explain.Facts) (out []explain.Finding) {
	found := func(subject, host, wildcard string) explain.Finding {
		return fail("", explain.You, subject, "%s is attached to a listener, but its certificate does not cover it: %s "+
			"of a certificate stands for one label only, though the same wildcard of a listener accepts this hostname.", host,
			wildcard)
	}
	for _, c := range shaken(f) {
		w := twoLabels(c.Name, c.TLS.Names)
		switch {
		case isDefault(c.TLS):
		case c.TLS.Covers == explain.Yes:
			out = append(out, pass(c.Addr.String(), "The certificate of %s covers all labels of %s.", c.Addr, c.Name)...)
		case w != "":
			out = append(out, found(c.Addr.String(), c.Name, w))
		}
	}
	if len(out) > 0 || len(shaken(f)) > 0 {
		return out
	}
	for _, a := range attachments(f) {
		for _, c := range f.Service.Objects.CertificatesOf(a) {
			covered := slices.ContainsFunc(c.Spec.Names, func(n string) bool { return covers(n, a.Host) })
			if w := twoLabels(a.Host, c.Spec.Names); w != "" && !covered {
				out = append(out, found(c.String(), a.Host, w))
			}
		}
	}
	return out
}

// covers reports whether a name of a certificate covers a hostname (RFC 9525 §6.3).
func covers(name, host string) bool {
	_, rest, _ := strings.Cut(host, ".")
	return strings.EqualFold(name, host) || strings.HasPrefix(name, "*.") && strings.EqualFold(name[2:], rest)
}

// certificateCurrent is check TLS03. The time is that of the facts: a saved report does not change when the
// certificate expires later.
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

// certificatesAgree is check TLS05. The addresses may be those of several clusters: one where renewal fails is visible
// only to part of the visitors.
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
