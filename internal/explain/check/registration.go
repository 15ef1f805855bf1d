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

// registrationOf returns the registration of the domain that contains a name.
func registrationOf(f *explain.Facts, name dnsname.Name) (registry.Registration, bool) {
	return find(f.Registrations, func(r registry.Registration) bool {
		d, err := dnsname.Parse(r.Domain)
		return err == nil && name.IsIn(d) && !d.IsRoot()
	})
}

// ofRegistration runs judge for the registration of the domain, if the registry gave one.
func ofRegistration(f *explain.Facts,
	judge func(r registry.Registration, domain string) []explain.Finding) []explain.Finding {
	if f.Domain.IsZero() {
		return nil
	}
	r, ok := registrationOf(f, f.Domain)
	switch domain := text(f.Domain); {
	case !ok || r.State == registry.Unknown:
		return unknown(domain, "The registration of %s could not be determined.", domain)
	case r.State == registry.Free:
		return nil // REG01 reports it
	default:
		return judge(r, domain)
	}
}

// registered is check REG01: The domain is registered.
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
		return pass(domain, "%s is registered%s.", domain, strings.TrimRight(naming(" at %s", r.Registrar.Name), ". "))
	case f.ZoneAt(f.Domain) != nil:
		// Many country registries limit or refuse RDAP and WHOIS. The DNS is proof enough.
		return pass(domain, "%s is delegated, and therefore registered.", domain)
	case inParent(f):
		return nil // it is a name of the parent zone, and needs no registration
	// One source may be wrong or late: the registry and the DNS must both deny the domain.
	case ok && r.State == registry.Free && !parent.IsZero():
		x := fail("", explain.You, domain,
			"%s is not registered, or is misspelled: the registry does not know it, and %s does not have it.", domain,
			text(parent))
		return []explain.Finding{hint(f, seen(x, evidence))}
	case ok && r.State == registry.Free:
		return unknown(domain, "The registry does not know %s, but the parent zone could not be queried.", domain)
	}
	return unknown(domain, "Whether %s is registered could not be determined.", domain)
}

// noTLD returns the top-level domain of the domain or the public suffix, if the root denies that it exists, and ""
// otherwise.
func noTLD(f *explain.Facts) string {
	domain := f.Domain
	if domain.IsZero() {
		domain = f.Name
	}
	zone, _ := denied(f, domain)
	if domain.IsZero() || zone.IsZero() || !zone.IsRoot() || f.ZoneAt(domain) != nil ||
		!slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
			return o.Result == iterate.NXDomain
		}) {
		return ""
	}
	all := labels(domain)
	return all[len(all)-1]
}

// naming returns the part of a sentence that names a registrar, or "" if the registrar is not known.
func naming(format, registrar string) string {
	if registrar == "" {
		return ""
	}
	return fmt.Sprintf(format, registrar)
}

// notExpiring is check REG02: The registration does not end within 30 days.
func notExpiring(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		// Registries often extend the date automatically before the owner has paid; the registrar's date is then earlier.
		end, whose := r.Dates.Expires, "the registry"
		if e := r.Dates.RegistrarExpires; !e.IsZero() && (end.IsZero() || e.Before(end)) {
			end, whose = e, "the registrar"
		}
		if end.IsZero() {
			return unknown(domain, "The registry does not publish when the registration of %s ends.", domain)
		}
		left := end.Sub(f.At)
		severity := expirySeverity(left)
		switch {
		case severity == "":
			return pass(domain, "The registration of %s ends on %s, in %s.", domain, words.Day(end),
				words.Count(int(left/oneDay), "day", "days"))
		case left <= 0:
			x := fail(severity, explain.Registrar, domain, "The registration of %s ended on %s, according to %s%s.", domain,
				words.Day(end), whose, otherDate(r.Dates))
			// ICANN gives 30 days of redemption after the deletion, at a higher price, and then five days of pendingDelete.
			if r.Has("redemptionPeriod") || r.Has("pendingDelete") {
				x.Fix = "It is too late to renew the domain: it can only be restored, if at all. See REG04."
			}
			return []explain.Finding{x}
		}
		return []explain.Finding{fail(severity, explain.Registrar, domain,
			"The registration of %s ends in %s, on %s, according to %s%s.", domain, words.Length(left), words.Day(end), whose,
			otherDate(r.Dates))}
	})
}

// expirySeverity follows the days at which registrars send reminders: 30, 15, 7, 3 and 1.
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

// otherDate names the date that does not count, if the registry and the registrar have different ones.
func otherDate(d registry.Dates) string {
	if d.Expires.IsZero() || d.RegistrarExpires.IsZero() || words.Day(d.Expires) == words.Day(d.RegistrarExpires) {
		return ""
	}
	if d.RegistrarExpires.Before(d.Expires) {
		return fmt.Sprintf(", until when it is paid; the date of the registry is %s", words.Day(d.Expires))
	}
	return fmt.Sprintf("; the date of the registrar is %s", words.Day(d.RegistrarExpires))
}

// withStatus fails for each of these statuses that the registration has.
func withStatus(f *explain.Facts, ok string, codes ...string) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) (out []explain.Finding) {
		for _, code := range only(codes, r.Has) {
			out = append(out, fail("", explain.Registrar, domain, "%s has the status %s. %s", domain, code,
				registry.StatusText(code)))
		}
		switch {
		case len(out) > 0:
			return out
		case len(r.Statuses) == 0:
			// A domain without any status is possible in EPP only as "ok", which registries then publish (RFC 5731 §2.3).
			return unknown(domain, "The registry publishes no status of %s.", domain)
		}
		return pass(domain, ok, domain)
	})
}

// notOnHold is check REG03: The domain is not switched off at the registry.
func notOnHold(f *explain.Facts) []explain.Finding {
	return withStatus(f, "%s is not on hold.", "clientHold", "serverHold", "inactive")
}

// notDeleted is check REG04: The domain is not being deleted.
func notDeleted(f *explain.Facts) []explain.Finding {
	return withStatus(f, "%s is not being deleted.", "pendingDelete", "redemptionPeriod", "pendingRestore")
}

// recentTransfer is how long a change of registrar causes a warning: owners notice mistakes and thefts in the first
// days.
const recentTransfer = 14 * oneDay

// notMoving is check REG05: No change of registrar is in progress or recent.
func notMoving(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		moved := r.Dates.Transferred
		i := slices.IndexFunc(f.Past, func(p explain.Past) bool { return p.Registrar != "" })
		switch {
		case r.Has("pendingTransfer"):
			return []explain.Finding{fail("", explain.Registrar, domain,
				"%s is being transferred to another registrar; changes may be refused until that is complete.", domain)}
		case !moved.IsZero() && f.At.Sub(moved) < recentTransfer && !moved.After(f.At):
			return []explain.Finding{fail("", explain.Registrar, domain, "%s was transferred to its registrar%s on %s, %s ago.",
				domain, naming(", %s,", r.Registrar.Name), words.Day(moved), words.Length(f.At.Sub(moved)))}
		// Some registries publish no transfer dates: an earlier scan shows the change.
		case i >= 0 && r.Registrar.Name != "" && f.Past[i].Registrar != r.Registrar.Name:
			p := f.Past[i]
			return []explain.Finding{fail("", explain.Registrar, domain, "%s is registered at %s; on %s it was registered at %s",
				domain, r.Registrar.Name, words.Day(p.At), sentence(p.Registrar))}
		case len(r.Statuses) == 0 && moved.IsZero() && i < 0:
			return unknown(domain, "The registry publishes neither statuses nor transfers of %s.", domain)
		}
		return pass(domain, "%s is not being transferred.", domain)
	})
}

// locked is check REG06: The domain is locked against transfer.
func locked(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		if slices.ContainsFunc([]string{"clientTransferProhibited", "serverTransferProhibited", "transferProhibited",
			"locked"}, r.Has) {
			return pass(domain, "%s is locked against transfer.", domain)
		}
		if r.Has("redemptionPeriod") || r.Has("pendingDelete") || r.Has("pendingRestore") {
			return nil // REG04 reports the more important problem
		}
		// Many country registries have no such lock, or do not show it by WHOIS.
		if len(r.Statuses) == 0 || r.Source == registry.WHOIS && r.Confidence != "high" {
			return unknown(domain, "The registry does not publish whether %s is locked against transfer.", domain)
		}
		return []explain.Finding{fail("", explain.Registrar, domain,
			"%s is not locked against a transfer to another registrar.", domain)}
	})
}

// registryNS is check REG07: The registry and the parent zone list the same nameservers.
func registryNS(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		z := f.ZoneAt(f.Domain)
		if z == nil {
			return nil // DEL01 reports it
		}
		if len(r.Nameservers) == 0 || len(z.ParentNS) == 0 {
			return unknown(domain, "The nameservers of %s at the registry and in the parent zone could not both be read.",
				domain)
		}
		var ns []dnsname.Name
		for _, h := range r.Nameservers {
			// WHOIS has names with spaces or addresses in them. One bad line must not hide the others.
			if n, err := dnsname.Parse(h.Name); err == nil {
				ns = append(ns, n)
			}
		}
		ns = sorted(ns)
		for _, set := range z.ParentNS { // one up-to-date server is enough; DEL19 reports the others
			if slices.Equal(sorted(set.NS), ns) {
				return pass(domain, "The registry and %s both list %s.", text(z.Parent), words.Some(texts(ns)))
			}
		}
		parent, _ := iterate.Join(z.ParentNS)
		x := fail("", explain.Registrar, domain, "The registry lists %s for %s, but %s hands out %s.", words.Some(texts(ns)),
			domain, text(z.Parent), words.Some(texts(parent)))
		x.Visible = nsVisible(f, *z)
		return []explain.Finding{x}
	})
}

// registryDS is check REG08: The registry and the parent zone have the same DS records.
func registryDS(f *explain.Facts) []explain.Finding {
	return ofRegistration(f, func(r registry.Registration, domain string) []explain.Finding {
		z, ok := securedZone(f, f.Domain)
		if f.ZoneAt(f.Domain) == nil {
			return nil // DEL01 reports it
		}
		if !r.DNSSEC.Known || !ok || len(z.DS) == 0 && z.Cause != secure.NoDS {
			return unknown(domain, "The DS records of %s at the registry and in the parent zone could not both be read.", domain)
		}
		var atRegistry []secure.DS
		for _, d := range r.DNSSEC.DS {
			atRegistry = append(atRegistry,
				secure.DS{KeyTag: d.KeyTag, Algorithm: d.Algorithm, DigestType: d.DigestType, Digest: d.Digest})
		}
		there, here := dsTexts(z.DS), dsTexts(atRegistry)
		// Some registries publish only "signed", and others only the records.
		signed := r.DNSSEC.Signed || len(r.DNSSEC.DS)+len(r.DNSSEC.Keys) > 0
		var x explain.Finding
		switch {
		case !signed && len(there) > 0:
			x = fail("", explain.Registrar, domain,
				"The registry has no DS for %s, but the parent zone still has the DS for key %s.", domain, words.Some(there))
		case signed && len(there) == 0:
			x = fail("", explain.Registrar, domain, "The registry has a DS for %s, but the parent zone does not have it.",
				domain)
		case len(here) > 0 && !slices.Equal(here, there):
			x = fail("", explain.Registrar, domain,
				"The registry has the DS for key %s of %s, but the parent zone has the DS for key %s.", words.Some(here), domain,
				words.Some(there))
		default:
			return pass(domain, "The registry and the parent zone have the same DS for %s.", domain)
		}
		x.Visible = dsVisible(f, z)
		return []explain.Finding{x}
	})
}

// dsTexts returns DS records in a fixed order, so that two sets can be compared as text.
func dsTexts(all []secure.DS) []string {
	out := words.Each(all, func(d secure.DS) string { return dsText(d.KeyTag, d.Algorithm, d.DigestType, d.Digest) })
	slices.Sort(out)
	return slices.Compact(out)
}

// dsText returns a DS with the first part of its digest, which is enough to identify it.
func dsText(tag uint16, algorithm, kind uint8, digest string) string {
	digest = strings.ToUpper(strings.ReplaceAll(digest, " ", ""))
	return fmt.Sprintf("%d (algorithm %d, digest %d %.8s…)", tag, algorithm, kind, digest)
}

// registryKnown is check REG09: The registry gives data about the domain.
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
