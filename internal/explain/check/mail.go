package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/mailtext"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// lookup returns the result of a question about mail. Without one, the question was not asked.
func lookup(f *explain.Facts, name dnsname.Name, t rr.Type) (explain.Lookup, bool) {
	return find(f.Mail, func(l explain.Lookup) bool { return l.Question == iterate.Question{Name: name, Type: t} })
}

// label returns a name below the zone, such as _dmarc.example.org. Each label is added below the one before it.
func label(zone dnsname.Name, labels ...string) dnsname.Name {
	for _, l := range labels {
		if zone.IsZero() {
			break
		}
		zone, _ = zone.Child(l)
	}
	return zone
}

// atZone returns the records of the zone of a type. If they are not known, unclear has the finding for that.
func atZone(f *explain.Facts, name dnsname.Name, t rr.Type) (l explain.Lookup, unclear []explain.Finding, ok bool) {
	l, ok = lookup(f, name, t)
	switch {
	case !ok || f.Zone.IsZero() || !own(f, f.Zone):
		return l, nil, false
	case l.Result == iterate.Unknown || !l.Result.Usable():
		return l, unknown(text(name), "The %s records of %s are not known.", t, text(name)), false
	}
	return l, nil, true
}

// wrong returns a finding about a record that a lookup found.
func wrong(f *explain.Facts, severity explain.Severity, l explain.Lookup, format string, args ...any) explain.Finding {
	x := fail(severity, explain.DNSHost, text(l.Question.Name), format, args...)
	// A new record waits for the negative TTL, a changed one for its own TTL. Which one it is depends on the data.
	x.Visible = after(f, created(f, l.Question.Name, f.Zone))
	if len(l.Data) > 0 {
		x.Visible = after(f, replaced(f, l.Question.Name, l.Question.Type, safeat.Data, l.TTL))
	}
	return seen(x, l.Evidence)
}

// targets returns the targets of the MX records, in the order of the facts.
func targets(l explain.Lookup) (out []dnsname.Name) {
	for _, d := range l.Data {
		if n, ok := mailtext.Exchanger(d); ok && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// nullMX is check MAI01: A null MX record has no other MX records beside it.
func nullMX(f *explain.Facts) []explain.Finding {
	l, unclear, ok := atZone(f, f.Zone, rr.TypeMX)
	all := targets(l)
	zone := text(f.Zone)
	switch {
	case !ok:
		return unclear
	case len(all) == 0:
		return nil
	// RFC 7505 §3: a null MX has the root as its target, and must be the only MX record.
	case !slices.ContainsFunc(all, dnsname.Name.IsRoot):
		return pass(zone, "%s has MX records, and none of them is a null MX.", zone)
	case len(all) == 1:
		return pass(zone, "%s has a null MX: it receives no mail.", zone)
	}
	others := only(all, func(n dnsname.Name) bool { return !n.IsRoot() })
	return []explain.Finding{wrong(f, "", l,
		"%s has a null MX, which says that it receives no mail, beside %s to %s.", zone,
		words.Count(len(others), "MX record", "MX records"), words.Some(texts(others)))}
}

// exchangers is check MAI02: Every mail exchanger is a host name with an address. A sender that finds no address for
// one exchanger tries the next one, but a wrong name often stays unnoticed until the others fail.
func exchangers(f *explain.Facts) (out []explain.Finding) {
	l, unclear, ok := atZone(f, f.Zone, rr.TypeMX)
	all := only(targets(l), func(n dnsname.Name) bool { return !n.IsRoot() })
	zone := text(f.Zone)
	switch {
	case !ok:
		return unclear
	case len(all) == 0:
		return nil
	}
	var open []string
	for _, n := range all {
		x, failed, known := exchanger(f, l, n)
		switch {
		case failed:
			out = append(out, x)
		case !known:
			open = append(open, text(n))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(open) > 0:
		return unknown(zone, "Whether %s, %s of %s, %s an address is not known.", words.Some(open),
			words.Verb(len(open), "a mail exchanger", "mail exchangers"), zone, words.Verb(len(open), "has", "have"))
	}
	return pass(zone, "%s of %s %s an address.", words.Count(len(all), "mail exchanger", "mail exchangers"), zone,
		words.Verb(len(all), "has", "have"))
}

// exchanger judges one target of an MX record.
func exchanger(f *explain.Facts, mx explain.Lookup, n dnsname.Name) (x explain.Finding, failed, known bool) {
	zone, host := text(f.Zone), text(n)
	if _, err := netip.ParseAddr(host); err == nil {
		return wrong(f, "", mx, "The MX record of %s has the address %s as its target, which must be a host name.", zone,
			host), true, true
	}
	a, ok := lookup(f, n, rr.TypeA)
	aaaa, second := lookup(f, n, rr.TypeAAAA)
	// RFC 5321 §5.1 forbids an alias here, but most senders follow it, so this is only a warning.
	if !a.Alias.IsZero() {
		x = wrong(f, explain.Warning, mx, "The MX record of %s points to %s, which is an alias of %s.", zone, host,
			text(a.Alias))
		return seen(x, a.Evidence), true, true
	}
	missing := ""
	switch {
	case !ok:
		return x, false, false
	case a.Result == iterate.NXDomain:
		missing = "does not exist"
	// One family is enough: mail servers without IPv6 are common.
	case a.Result == iterate.NoData && second && aaaa.Result == iterate.NoData:
		missing = "has no address"
	default:
		return x, false, a.Result == iterate.Answer || second && aaaa.Result == iterate.Answer
	}
	x = wrong(f, "", mx, "The MX record of %s points to %s, which %s.", zone, host, missing)
	return seen(seen(x, a.Evidence), aaaa.Evidence), true, true
}

// policies is check MAI07: A domain that receives mail has SPF and DMARC records. Domains without MX records are left
// out: most names have no mail, and a notice for each of them would hide the others.
func policies(f *explain.Facts) (out []explain.Finding) {
	mx, unclear, ok := atZone(f, f.Zone, rr.TypeMX)
	if !ok {
		return unclear
	}
	if !slices.ContainsFunc(targets(mx), func(n dnsname.Name) bool { return !n.IsRoot() }) {
		return nil
	}
	zone := text(f.Zone)
	all, unclear, ok := atZone(f, f.Zone, rr.TypeTXT)
	if !ok {
		return unclear
	}
	// A record with a mistake counts as present: MAI04 reports the mistake, and one problem needs one finding.
	meant := func(t string) bool { return mailtext.IsSPF(t) || mailtext.NearSPF(t) }
	if !slices.ContainsFunc(mailtext.Texts(all.Data), meant) {
		out = append(out, seen(wrong(f, "", all, "%s receives mail, but has no SPF record.", zone), mx.Evidence))
	}
	at := label(f.Zone, "_dmarc")
	policy, unclear, ok := atZone(f, at, rr.TypeTXT)
	switch has := func(t string) bool { return mailtext.Has(t, mailtext.DMARC) || mailtext.Near(t, mailtext.DMARC) }; {
	case !ok && len(out) == 0:
		return unclear
	// Below the organizational domain, receivers use the DMARC record of that domain (RFC 7489 §6.6.3).
	case ok && f.Zone == f.Domain && !slices.ContainsFunc(mailtext.Texts(policy.Data), has):
		x := wrong(f, "", policy, "%s receives mail, but has no DMARC record at %s.", zone, text(at))
		out = append(out, seen(x, mx.Evidence))
	}
	if len(out) == 0 {
		return pass(zone, "%s has an SPF record and is covered by DMARC.", zone)
	}
	return out
}

// form is a check of a text record with a version below the zone.
type form struct {
	labels  []string // from the zone down
	version string
	name    string
}

var (
	dmarc      = form{[]string{"_dmarc"}, mailtext.DMARC, "DMARC"}
	sts        = form{[]string{"_mta-sts"}, mailtext.STS, "MTA-STS"}
	tlsReports = form{[]string{"_tls", "_smtp"}, mailtext.TLSRPT, "TLS report"}
)

// judge implements the checks MAI08, MAI10 and MAI11. Texts with another version, such as those of a wildcard, are
// ignored, as receivers do.
func (c form) judge(f *explain.Facts) []explain.Finding {
	at := label(f.Zone, c.labels...)
	l, unclear, ok := atZone(f, at, rr.TypeTXT)
	if !ok {
		return unclear
	}
	all := mailtext.Texts(l.Data)
	right := only(all, func(t string) bool { return mailtext.Has(t, c.version) })
	near, isNear := find(all, func(t string) bool { return mailtext.Near(t, c.version) })
	switch {
	// Receivers must not choose one of several records (RFC 7489 §6.6.3, RFC 8461 §3.1, RFC 8460 §3).
	case len(right) > 1:
		return []explain.Finding{wrong(f, "", l, "%s has %d %s records; receivers then ignore all of them.", text(at),
			len(right), c.name)}
	case len(right) == 1:
		if err := mailtext.Check(right[0], c.version); err != nil {
			return []explain.Finding{wrong(f, "", l, "The %s record at %s is not valid: %s.", c.name, text(at), reason(err))}
		}
		return pass(text(at), "The %s record at %s is valid.", c.name, text(at))
	case isNear:
		return []explain.Finding{wrong(f, "", l, "The text %q at %s does not begin with %q and a semicolon, so receivers "+
			"ignore it.", short(near), text(at), c.version)}
	}
	return nil
}

// short returns the beginning of a text for a sentence: servers may send 64 KiB.
func short(s string) string { return cut(s, 60) }

// reason returns the beginning of an error message that quotes a text.
func reason(err error) string { return cut(err.Error(), 200) }

func cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// The lengths of RSA keys of RFC 8301 §3.2: receivers ignore keys below the first.
const (
	minBits  = 1024
	goodBits = 2048
)

// dkim is check MAI09: Every DKIM selector has a key that receivers accept.
func dkim(f *explain.Facts) (out []explain.Finding) {
	base := label(f.Zone, "_domainkey")
	for _, l := range f.Mail {
		// Selectors cannot be listed: only those that the user gave were queried.
		if n := l.Question.Name; l.Question.Type == rr.TypeTXT && !base.IsZero() && n != base && n.IsIn(base) {
			out = append(out, dkimKey(f, l)...)
		}
	}
	return out
}

// dkimKey judges the key of one selector.
func dkimKey(f *explain.Facts, l explain.Lookup) []explain.Finding {
	_, unclear, ok := atZone(f, l.Question.Name, rr.TypeTXT)
	if !ok {
		return unclear
	}
	at := text(l.Question.Name)
	all := mailtext.Texts(l.Data)
	one := func(severity explain.Severity, format string, args ...any) []explain.Finding {
		return []explain.Finding{wrong(f, severity, l, format, args...)}
	}
	switch len(all) {
	case 0:
		return one("", "There is no DKIM key at %s.", at)
	case 1:
	default:
		return one("", "There are %d TXT records at %s; receivers use any one of them.", len(all), at)
	}
	k, err := mailtext.ParseDKIM(all[0])
	switch {
	case err != nil:
		return one("", "The DKIM record at %s is not valid: %s.", at, reason(err))
	// RFC 6376 §3.6.1: an empty key is revoked. It may be on purpose, so this is a warning.
	case k.Revoked:
		return one(explain.Warning, "The DKIM key at %s is revoked: it is empty.", at)
	case k.Type == "rsa" && k.Bits < minBits:
		return one("", "The DKIM key at %s has %d bits; receivers ignore keys below %d.", at, k.Bits, minBits)
	case k.Type == "rsa" && k.Bits < goodBits:
		return one(explain.Notice, "The DKIM key at %s has %d bits; %d are recommended.", at, k.Bits, goodBits)
	// A key of an unknown type has no length here. RFC 8463 added ed25519; others are not registered.
	case k.Bits == 0:
		return one(explain.Warning, "The DKIM key at %s has the type %q, which receivers do not know.", at, short(k.Type))
	}
	return pass(at, "The DKIM key at %s is valid: %s, %s.", at, k.Type, fmt.Sprintf("%d bits", k.Bits))
}
