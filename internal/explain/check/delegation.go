package check

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// perZone runs judge for each zone of judged, and keeps the worst findings: failures, otherwise unknown results,
// otherwise passes.
func perZone(f *explain.Facts, judge func(z iterate.Zone) []explain.Finding) []explain.Finding {
	var all []explain.Finding
	for _, z := range judged(f) {
		all = append(all, judge(z)...)
	}
	return worst(all)
}

// worst returns the failures, or if there are none the unknown results, or if there are none all findings.
func worst(all []explain.Finding) []explain.Finding {
	for _, status := range []explain.Status{explain.Fail, explain.NotKnown} {
		if of := only(all, func(x explain.Finding) bool { return x.Status == status }); len(of) > 0 {
			return of
		}
	}
	return all
}

// delegated is check DEL01: The parent zone delegates the domain.
func delegated(f *explain.Facts) []explain.Finding {
	if f.Domain.IsZero() {
		return suffixDelegated(f)
	}
	domain := text(f.Domain)
	if z := f.ZoneAt(f.Domain); z != nil {
		ns, _ := iterate.Join(z.ParentNS)
		if len(ns) == 0 {
			// Parent and child on the same servers send no referral, so the NS records of the parent are not seen.
			return pass(domain, "%s is a zone, on the servers of %s.", domain, text(z.Parent))
		}
		return pass(domain, "%s delegates %s to %s.", text(z.Parent), domain, words.Some(texts(ns)))
	}
	parent, evidence := denied(f, f.Domain)
	switch {
	case noTLD(f) != "":
		// A typing error in the ending is not a problem of the registrar, so it has its own finding.
		x := withoutTLD(f, domain)
		if f.Kind != explain.Scan { // in a scan, REG01 has the hint
			x = hint(f, x)
		}
		return []explain.Finding{seen(x, evidence)}
	case !parent.IsZero() && !inParent(f):
		x := fail("", explain.Registrar, domain, "%s has no nameservers for %s: no name of the domain can be resolved.",
			text(parent), domain)
		if f.Kind != explain.Scan {
			x = hint(f, x)
		}
		x.Fix = delegationFix(f)
		x.Visible = after(f, created(f, f.Domain, parent))
		return []explain.Finding{seen(x, evidence)}
	case inParent(f):
		return nil
	}
	return unknown(domain, "Whether %s is delegated could not be determined.", domain)
}

// inParent reports whether the records of the domain are in the parent zone: it has answers or an alias there. Small
// registries and universities serve names of customers in their own zone: no delegation is missing there.
func inParent(f *explain.Facts) bool {
	return slices.ContainsFunc(f.Exchanges, func(e iterate.Exchange) bool {
		return e.Class == iterate.Answer && e.Question.Name == f.Domain && e.Zone != f.Domain && f.Domain.IsIn(e.Zone) &&
			e.Question.Type != rr.TypeDS
	}) || slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return o.Result == iterate.Answer && f.Domain.IsIn(o.Zone)
	})
}

// delegationFix returns what to do about a domain without nameservers. The registration may list nameservers that the
// registry does not publish because of a status.
func delegationFix(f *explain.Facts) string {
	r, ok := registrationOf(f, f.Domain)
	switch {
	case !ok:
		return ""
	case r.State == registry.Free:
		return "Register the domain first; see REG01."
	case slices.ContainsFunc([]string{"pendingDelete", "redemptionPeriod", "pendingRestore"}, r.Has):
		return "Have the domain restored; see REG04. Then it has nameservers again."
	case slices.ContainsFunc([]string{"clientHold", "serverHold"}, r.Has):
		return "Have the hold removed; see REG03. Then the domain has nameservers again."
	}
	return ""
}

// withoutTLD returns the finding for a name whose top-level domain does not exist.
func withoutTLD(f *explain.Facts, subject string) explain.Finding {
	x := fail("", explain.You, subject, "There is no top-level domain %s: no name that ends with it can be resolved.",
		noTLD(f))
	x.Fix = "Compare the ending of the name letter by letter with the name that you own."
	return x
}

// suffixDelegated checks a name that nobody can register: a top-level domain or another public suffix.
func suffixDelegated(f *explain.Facts) []explain.Finding {
	if f.Name.IsZero() || f.Name.IsRoot() {
		return nil
	}
	name := text(f.Name)
	parent, evidence := denied(f, f.Name)
	z := f.ZoneAt(f.Name)
	switch {
	case z != nil:
		ns, _ := iterate.Join(z.ParentNS)
		return pass(name, "%s delegates %s to %s.", text(z.Parent), name, words.Some(texts(ns)))
	case noTLD(f) != "":
		return []explain.Finding{seen(withoutTLD(f, name), evidence)}
	case !parent.IsZero() && slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return o.Result == iterate.NXDomain
	}):
		x := fail("", explain.You, name, "%s is a public suffix that does not exist: the servers of %s say so.", name,
			text(parent))
		x.Fix = "Compare the ending of the name letter by letter with the name that you own."
		return []explain.Finding{seen(x, evidence)}
	// A scan is about a zone. A suffix without a zone has nothing that could be checked.
	case f.Kind == explain.Scan && !parent.IsZero():
		return unknown(name, "%s is a public suffix without its own servers; it is in the zone %s. Scan a domain that ends "+
			"with it.", name, text(parent))
	case f.Kind == explain.Scan:
		return unknown(name, "Whether %s exists could not be determined.", name)
	}
	return nil
}

// sameNS is check DEL03: The parent zone and the zone itself list the same nameservers. Resolvers learn the list of
// the parent first. Most replace it by that of the zone, which ranks higher (RFC 2181 §5.4.1), and some never do. So
// both lists are in use at the same time.
func sameNS(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding {
		zone, above := text(z.Name), text(z.Parent)
		parent, _ := iterate.Join(z.ParentNS)
		child, _ := iterate.Join(z.ChildNS)
		if z.Name.IsRoot() {
			return nil // the root has no parent
		}
		if without := withoutNS(f, z); len(child) == 0 && len(without) > 0 {
			// Some resolvers, such as BIND, then return SERVFAIL for the NS records.
			x := fail(explain.Critical, actorFor(f, z.Name, explain.DNSHost), zone,
				"%s itself has no NS records: its servers say so.", zone)
			x.Fix = "Enter the nameservers of " + zone + " as NS records at its apex."
			return []explain.Finding{seen(x, without)}
		}
		out := someWithoutNS(f, z, len(child) > 0)
		if len(parent) == 0 || len(child) == 0 {
			return unknown(zone, "The nameservers of %s in %s and in itself could not both be read.", zone, above)
		}
		// gone: only in the zone. extra: only at the parent.
		gone, extra := without(child, parent), without(parent, child)
		var x explain.Finding
		switch {
		case len(gone)+len(extra) == 0 && len(byNames(z.ChildNS)) == 1:
			return append(out, pass(zone, "%s and %s itself both list %s.", above, zone, words.Some(texts(parent)))...)
		// No server in common: resolvers that use one list never see the servers of the other.
		case len(extra) == len(parent):
			x = fail(explain.Error, explain.Registrar, zone,
				"%s lists %s for %s, but %s itself lists %s: the lists share no server, so some users get the answers of one set "+
					"and some those of the other.",
				above, words.Some(texts(parent)), zone, zone, words.Some(texts(child)))
		// All servers together list the same, but one of them has another list.
		case len(gone)+len(extra) == 0:
			x = fail(explain.Warning, explain.DNSHost, zone, "The servers of %s do not agree on its nameservers: %s.", zone,
				nsSets(f, z.Name, byNames(z.ChildNS)))
		default:
			x = fail(explain.Warning, explain.Registrar, zone, "%s and %s itself list different nameservers: %s.", above, zone,
				sides(above, zone, extra, gone))
		}
		x.Fix = nsFix(above, zone, extra, gone)
		x.Actor, x.Visible = actorFor(f, z.Name, x.Actor), nsVisible(f, z)
		return append(out, x)
	})
}

// someWithoutNS returns a finding for servers that say that the zone has no NS records, if other servers have them.
func someWithoutNS(f *explain.Facts, z iterate.Zone, others bool) []explain.Finding {
	evidence := withoutNS(f, z)
	var without []netip.Addr
	for _, i := range evidence {
		without = append(without, f.Exchanges[i].Server)
	}
	if len(without) == 0 || !others {
		return nil
	}
	without = iterate.Union(without, nil)
	x := fail(explain.Error, actorFor(f, z.Name, explain.DNSHost), text(z.Name),
		"%s %s that %s has no NS records, and its other servers list them.", words.Some(servers(f, z.Name, without)),
		words.Verb(len(without), "says", "say"), text(z.Name))
	x.Fix = "Bring all servers of " + text(z.Name) + " to the same version of the zone."
	return []explain.Finding{seen(x, evidence)}
}

// withoutNS returns the replies of a zone's servers that say that the zone has no NS records.
func withoutNS(f *explain.Facts, z iterate.Zone) (evidence []int) {
	for i, e := range f.Exchanges {
		if e.Zone == z.Name && e.Question == (iterate.Question{Name: z.Name, Type: rr.TypeNS}) && negative(e.Class) {
			evidence = append(evidence, i)
		}
	}
	return evidence
}

// sides lists the nameservers that only the parent zone has, and those that only the zone has.
func sides(above, zone string, extra, gone []dnsname.Name) string {
	var parts []string
	if len(extra) > 0 {
		parts = append(parts, words.Some(texts(extra))+" only at "+above)
	}
	if len(gone) > 0 {
		parts = append(parts, words.Some(texts(gone))+" only in "+zone)
	}
	return strings.Join(parts, ", ")
}

// nsFix says what to change at the registrar or in the zone. It names both directions where both lists differ: only
// the owner knows which list is the right one.
func nsFix(above, zone string, extra, gone []dnsname.Name) string {
	switch {
	case len(extra) > 0 && len(gone) > 0:
		return "At your registrar, replace " + words.Some(texts(extra)) + " with " + words.Some(texts(gone)) +
			"; or, if the list at " + above + " is the right one, enter it as the NS records of " + zone + "."
	case len(extra) > 0:
		return "Add " + words.Some(texts(extra)) + " to the NS records of " + zone + ", or remove " +
			words.Verb(len(extra), "it", "them") + " at your registrar."
	case len(gone) > 0:
		return "Add " + words.Some(texts(gone)) + " at your registrar, or remove " + words.Verb(len(gone), "it", "them") +
			" from the NS records of " + zone + "."
	}
	return "Enter the same NS records on all servers of " + zone + "."
}

// nsSets lists which servers of a zone return which nameservers.
func nsSets(f *explain.Facts, zone dnsname.Name, sets []iterate.NSSet) string {
	return strings.Join(words.Each(sets, func(s iterate.NSSet) string {
		return words.Some(servers(f, zone, s.From)) + " " + words.Verb(len(s.From), "lists", "list") + " " +
			words.Some(texts(sorted(s.NS)))
	}), "; ")
}

// maxReferral is the size in bytes that fits into one packet on every network path (RFC 9715). The classic limit of 512
// bytes does not apply: the referral was queried with EDNS, and contains DNSSEC data that clients without EDNS do not
// get.
const maxReferral = 1232

// smallReferral is check DEL18: The referral to the zone fits into one packet.
func smallReferral(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding {
		zone, most := text(z.Name), 0
		var evidence []int
		for _, s := range f.Servers {
			if s.Zone == z.Parent && s.Referral > most {
				most, evidence = s.Referral, s.Evidence
			}
		}
		switch {
		case most == 0:
			return nil // not measured
		case most > maxReferral:
			x := fail("", actorFor(f, z.Name, explain.DNSHost), zone,
				"The referral from %s to %s has %d bytes, more than the %d that fit into one packet everywhere.", text(z.Parent),
				zone, most, maxReferral)
			return []explain.Finding{seen(x, evidence)}
		}
		return pass(zone, "The referral from %s to %s has at most %d bytes.", text(z.Parent), zone, most)
	})
}

// doubled returns the intended name, if the name of the zone was appended to a nameserver's name because the final dot
// was missing.
func doubled(ns, zone dnsname.Name) (dnsname.Name, bool) {
	if zone.IsRoot() || !ns.IsIn(zone) || ns == zone {
		return dnsname.Name{}, false
	}
	meant, _, err := dnsname.FromWire([]byte(ns.In(zone) + "\x00"))
	if err != nil || meant.NumLabels() < 2 {
		return dnsname.Name{}, false
	}
	// In example.org, ns1.b.example.org may be intended. ns1.p.com.example.org, or example.org twice, is a mistake.
	s := registry.SuffixOf(meant)
	return meant, meant.IsIn(zone) || s.Listed && s.Public.NumLabels() < meant.NumLabels()
}
