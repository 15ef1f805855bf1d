package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

const oneDay = 24 * time.Hour

// registrationOf is what the registry says of the domain that a name is in.
func registrationOf(f *explain.Facts, name dnsname.Name) (registry.Registration, bool) {
	return find(f.Registrations, func(r registry.Registration) bool {
		d, err := dnsname.Parse(r.Domain)
		return err == nil && name.IsIn(d) && !d.IsRoot()
	})
}

// ofRegistration judges the registration of the domain, if there is one to judge.
func ofRegistration(f *explain.Facts, judge func(r registry.Registration, domain string) []explain.Finding) []explain.Finding {
	if f.Domain.IsZero() {
		return nil
	}
	r, ok := registrationOf(f, f.Domain)
	switch domain := text(f.Domain); {
	case !ok || r.State == registry.Unknown:
		return unknown(domain, "What the registry has for %s could not be found out.", domain)
	case r.State == registry.Free:
		return nil // REG01 tells
	default:
		return judge(r, domain)
	}
}

func registered(f *explain.Facts) []explain.Finding {
	if f.Domain.IsZero() {
		return nil
	}
	domain := text(f.Domain)
	r, ok := registrationOf(f, f.Domain)
	parent, evidence := denied(f, f.Domain)
	switch tld := noTLD(f); {
	case tld != "":
		x := fail("", explain.You, domain, "%s cannot be registered: there is no top-level domain %s.", domain, tld)
		x.Fix = "Compare the ending of the name letter by letter with the name that you own."
		return []explain.Finding{hint(f, seen(x, evidence))}
	case ok && r.State == registry.Registered:
		return pass(domain, "%s is registered%s", domain, sentence(naming(" at %s", r.Registrar.Name)))
	case f.ZoneAt(f.Domain) != nil:
		return pass(domain, "%s is delegated, and so is registered.", domain)
	case ok && r.State == registry.Free && !parent.IsZero():
		x := fail("", explain.You, domain, "%s is not registered, or a letter is off: the registry does not know it, and %s does not have it.", domain, text(parent))
		return []explain.Finding{hint(f, seen(x, evidence))}
	case ok && r.State == registry.Free:
		return unknown(domain, "The registry does not know %s, but the zone above could not be asked.", domain)
	}
	return unknown(domain, "Whether %s is registered could not be found out.", domain)
}

// noTLD is the top-level domain of the domain, or of a name that nobody can register, if the root says that there is no such thing.
func noTLD(f *explain.Facts) string {
	domain := f.Domain
	if domain.IsZero() {
		domain = f.Name
	}
	zone, _ := denied(f, domain)
	if domain.IsZero() || zone.IsZero() || !zone.IsRoot() || f.ZoneAt(domain) != nil || !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return o.Result == iterate.NXDomain
	}) {
		return ""
	}
	all := labels(domain)
	return all[len(all)-1]
}

// naming is the part of a sentence that names a registrar; empty if it is not known.
func naming(format, registrar string) string {
	if registrar == "" {
		return ""
	}
	return fmt.Sprintf(format, registrar)
}

func notExpiring(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		end, whose := r.Dates.Expires, "the registry"
		if e := r.Dates.RegistrarExpires; !e.IsZero() && (end.IsZero() || e.Before(end)) {
			end, whose = e, "the registrar"
		}
		if end.IsZero() {
			return unknown(domain, "The registry does not tell when the registration of %s ends.", domain)
		}
		left := end.Sub(f.At)
		severity := expirySeverity(left)
		switch {
		case severity == "":
			return pass(domain, "The registration of %s ends on %s, in %s.", domain, words.Day(end), words.Count(int(left/oneDay), "day", "days"))
		case left <= 0:
			x := fail(severity, explain.Registrar, domain, "The registration of %s has ended on %s, by the date of %s%s.", domain, words.Day(end), whose, other(r.Dates))
			if r.Has("redemptionPeriod") || r.Has("pendingDelete") {
				x.Fix = "It is too late to renew the domain: it can only be restored, if at all; see REG04."
			}
			return []explain.Finding{x}
		}
		return []explain.Finding{fail(severity, explain.Registrar, domain, "The registration of %s ends in %s, on %s, by the date of %s%s.", domain, words.Length(left), words.Day(end), whose, other(r.Dates))}
	})
}

// expirySeverity follows the steps at which registrars remind: 30, 15, 7, 3 days and the last one.
func expirySeverity(left time.Duration) explain.Severity {
	switch {
	case left > 30*oneDay:
		return ""
	case left > 7*oneDay:
		return explain.Warning
	case left > oneDay:
		return explain.Error
	}
	return explain.Critical
}

// other says which date does not count, if there are two.
func other(d registry.Dates) string {
	if d.Expires.IsZero() || d.RegistrarExpires.IsZero() || words.Day(d.Expires) == words.Day(d.RegistrarExpires) {
		return ""
	}
	if d.RegistrarExpires.Before(d.Expires) {
		return fmt.Sprintf(", which is what was paid for; the registry's is %s", words.Day(d.Expires))
	}
	return fmt.Sprintf("; the registrar's is %s", words.Day(d.RegistrarExpires))
}

// withStatus fails for each of some statuses that a registration has.
func withStatus(f *explain.Facts, ok string, codes ...string) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) (out []explain.Finding) {
		for _, code := range only(codes, r.Has) {
			out = append(out, fail("", explain.Registrar, domain, "%s has the status %s. %s", domain, code, registry.StatusText(code)))
		}
		switch {
		case len(out) > 0:
			return out
		case len(r.Statuses) == 0:
			return unknown(domain, "The registry tells no status of %s.", domain)
		}
		return pass(domain, ok, domain)
	})
}

func notOnHold(f *explain.Facts) []explain.Finding {
	return withStatus(f, "%s is not on hold.", "clientHold", "serverHold", "inactive")
}

func notDeleted(f *explain.Facts) []explain.Finding {
	return withStatus(f, "%s is not being deleted.", "pendingDelete", "redemptionPeriod", "pendingRestore")
}

// fresh is how long a change of registrar is worth a warning; mistakes and thefts are noticed in the first days.
const fresh = 14 * oneDay

func notMoving(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		moved := r.Dates.Transferred
		i := slices.IndexFunc(f.Past, func(p explain.Past) bool { return p.Registrar != "" })
		switch {
		case r.Has("pendingTransfer"):
			return []explain.Finding{fail("", explain.Registrar, domain, "%s is on its way to another registrar; changes may be refused until it has arrived.", domain)}
		case !moved.IsZero() && f.At.Sub(moved) < fresh && !moved.After(f.At):
			return []explain.Finding{fail("", explain.Registrar, domain, "%s came to its registrar%s on %s, %s ago.", domain, naming(", %s,", r.Registrar.Name), words.Day(moved), words.Length(f.At.Sub(moved)))}
		case i >= 0 && r.Registrar.Name != "" && f.Past[i].Registrar != r.Registrar.Name:
			p := f.Past[i]
			return []explain.Finding{fail("", explain.Registrar, domain, "%s is registered at %s; on %s it was at %s", domain, r.Registrar.Name, words.Day(p.At), sentence(p.Registrar))}
		case len(r.Statuses) == 0 && moved.IsZero() && i < 0:
			return unknown(domain, "The registry tells neither status nor transfers of %s.", domain)
		}
		return pass(domain, "%s is not being transferred.", domain)
	})
}

func locked(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		if slices.ContainsFunc([]string{"clientTransferProhibited", "serverTransferProhibited", "transferProhibited", "locked"}, r.Has) {
			return pass(domain, "%s is locked against transfer.", domain)
		}
		if r.Has("redemptionPeriod") || r.Has("pendingDelete") || r.Has("pendingRestore") {
			return nil // REG04 is what matters
		}
		// Many registries of countries have no such lock, or do not show it by WHOIS.
		if len(r.Statuses) == 0 || r.Source == registry.WHOIS && r.Confidence != "high" {
			return unknown(domain, "The registry does not tell whether %s is locked against transfer.", domain)
		}
		return []explain.Finding{fail("", explain.Registrar, domain, "%s is not locked against a move to another registrar.", domain)}
	})
}

func registryNS(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		z := f.ZoneAt(f.Domain)
		if z == nil {
			return nil // DEL01 tells
		}
		if len(r.Nameservers) == 0 || len(z.ParentNS) == 0 {
			return unknown(domain, "The nameservers of %s at the registry and in the zone above could not both be read.", domain)
		}
		var ns []dnsname.Name
		for _, h := range r.Nameservers {
			if n, err := dnsname.Parse(h.Name); err == nil {
				ns = append(ns, n)
			}
		}
		ns = sorted(ns)
		for _, set := range z.ParentNS { // one that is up to date is enough; DEL19 tells of the others
			if slices.Equal(sorted(set.NS), ns) {
				return pass(domain, "The registry and %s both list %s.", text(z.Parent), words.Some(texts(ns)))
			}
		}
		parent, _ := iterate.Join(z.ParentNS)
		x := fail("", explain.Registrar, domain, "The registry lists %s for %s, but %s hands out %s.", words.Some(texts(ns)), domain, text(z.Parent), words.Some(texts(parent)))
		x.Visible = nsVisible(f, *z)
		return []explain.Finding{x}
	})
}

func registryDS(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		z, ok := securedZone(f, f.Domain)
		if f.ZoneAt(f.Domain) == nil {
			return nil // DEL01 tells
		}
		if !r.DNSSEC.Known || !ok || len(z.DS) == 0 && z.Cause != secure.NoDS {
			return unknown(domain, "The DS records of %s at the registry and in the zone above could not both be read.", domain)
		}
		var atRegistry []secure.DS
		for _, d := range r.DNSSEC.DS {
			atRegistry = append(atRegistry, secure.DS{KeyTag: d.KeyTag, Algorithm: d.Algorithm, DigestType: d.DigestType, Digest: d.Digest})
		}
		there, here := dsTexts(z.DS), dsTexts(atRegistry)
		signed := r.DNSSEC.Signed || len(r.DNSSEC.DS)+len(r.DNSSEC.Keys) > 0
		var x explain.Finding
		switch {
		case !signed && len(there) > 0:
			x = fail("", explain.Registrar, domain, "The registry has no DS for %s, but the zone above still hands out the one for key %s.", domain, words.Some(there))
		case signed && len(there) == 0:
			x = fail("", explain.Registrar, domain, "The registry has a DS for %s, but the zone above does not have it.", domain)
		case len(here) > 0 && !slices.Equal(here, there):
			x = fail("", explain.Registrar, domain, "The registry has the DS for key %s of %s, but the zone above that for key %s.", words.Some(here), domain, words.Some(there))
		default:
			return pass(domain, "The registry and the zone above have the same DS for %s.", domain)
		}
		x.Visible = dsVisible(f, z)
		return []explain.Finding{x}
	})
}

func dsTexts(all []secure.DS) []string {
	out := words.Each(all, func(d secure.DS) string { return dsText(d.KeyTag, d.Algorithm, d.DigestType, d.Digest) })
	slices.Sort(out)
	return slices.Compact(out)
}

// dsText is a DS with as much of its digest as tells it apart.
func dsText(tag uint16, algorithm, kind uint8, digest string) string {
	digest = strings.ToUpper(strings.ReplaceAll(digest, " ", ""))
	return fmt.Sprintf("%d (algorithm %d, digest %d %.8s…)", tag, algorithm, kind, digest)
}

func registryKnown(f *explain.Facts) []explain.Finding {
	if f.Domain.IsZero() {
		return nil
	}
	domain := text(f.Domain)
	switch r, ok := registrationOf(f, f.Domain); {
	case ok && r.State != registry.Unknown:
		return pass(domain, "The registry was asked by %s.", strings.ToUpper(string(r.Source)))
	case ok && r.Why != "":
		return unknown(domain, "The registration of %s could not be checked: %s", domain, sentence(r.Why))
	}
	return unknown(domain, "The registration of %s could not be checked.", domain)
}
