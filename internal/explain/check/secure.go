package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// securedZone returns the DNSSEC result for a zone. Of several results it prefers one that is not unknown.
func securedZone(f *explain.Facts, name dnsname.Name) (out secure.Zone, ok bool) {
	for _, r := range f.Secure {
		for _, z := range r.Zones {
			if z.Name == name && (!ok || out.State == secure.Unknown) {
				out, ok = z, true
			}
		}
	}
	return out, ok
}

// perSecured runs judge for the DNSSEC result of each zone of judged.
func perSecured(f *explain.Facts, judge func(z secure.Zone, zone string) []explain.Finding) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding {
		if s, ok := securedZone(f, z.Name); ok {
			return judge(s, text(z.Name))
		}
		return unknown(text(z.Name), "Whether %s is signed could not be determined.", text(z.Name))
	})
}

// dsVisible returns when everyone sees a change of the DS that is made now.
func dsVisible(f *explain.Facts, z secure.Zone) time.Time {
	var ttl uint32
	for _, d := range z.DS {
		// Some parents give the DS records of one zone different TTLs. The last to expire decides.
		ttl = max(ttl, d.TTL)
	}
	return after(f, replaced(f, z.Name, rr.TypeDS, safeat.DS, ttl))
}

// tags returns the key tags of a zone.
func tags(z secure.Zone) []string {
	return words.Each(z.Keys, func(k secure.Key) string { return fmt.Sprint(k.KeyTag) })
}

// noDS reports whether a zone is known to have no DS: then there is no chain of trust to check.
func noDS(z secure.Zone) bool {
	return len(z.DS) == 0 && (z.State == secure.Insecure || z.Cause == secure.NoDS)
}

// dsMatches is check SEC01: The DS at the parent zone matches a key of the zone.
func dsMatches(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		switch {
		case noDS(z) || z.Cause == secure.Unsigned:
			return nil
		case z.State == secure.Bogus && (z.Cause == secure.NoKey || z.Cause == secure.KeysUnsigned):
			x := fail("", actorFor(f, z.Name, explain.Registrar), zone,
				"The parent zone has the DS %s for %s, which matches none of its keys (%s): validating resolvers reject every "+
					"answer.", words.Some(dsTexts(z.DS)), zone, words.Some(tags(z)))
			// The key is right and the signature is missing: only the signer of the zone can mend that, and not the registrar.
			if z.Cause == secure.KeysUnsigned {
				x.Words = fmt.Sprintf("A key of %s matches the DS %s, but it does not sign the zone's keys: validating "+
					"resolvers reject every answer.", zone, words.Some(dsTexts(z.DS)))
				x.Actor = actorFor(f, z.Name, explain.DNSHost)
			}
			x.Visible = dsVisible(f, z)
			return []explain.Finding{x}
		// SEC03 reports bad signatures of the zone's own keys.
		case z.State == secure.Bogus && len(badSignatures(f, z, zone)) == 0:
			return bogusAbove(f, z, zone)
		case slices.ContainsFunc(z.DS, func(d secure.DS) bool { return d.Matches }):
			return pass(zone, "The DS of %s matches one of its keys.", zone)
		}
		return unknown(zone, "Whether the DS of %s matches its keys could not be determined: %s", zone, sentence(z.Why))
	})
}

// bogusAbove returns the finding for a zone that validating resolvers reject because of a zone above it: the DS or the
// proof that there is none is bogus. A zone above that is checked itself has the finding already.
func bogusAbove(f *explain.Facts, z secure.Zone, zone string) []explain.Finding {
	at := z // the zone at which the chain of trust breaks
	for at.Cause == secure.Above {
		above, ok := securedZone(f, at.Parent)
		if !ok || above.State != secure.Bogus {
			break
		}
		if slices.ContainsFunc(judged(f), func(j iterate.Zone) bool { return j.Name == above.Name }) {
			return nil
		}
		at = above
	}
	// The root of the public DNS has its keys. If not, this is another root, and the trust anchors are wrong.
	if at.Name.IsRoot() {
		return unknown(zone, "Whether validating resolvers accept %s could not be determined, because the root does not "+
			"have the expected keys: %s", zone, sentence(at.Why))
	}
	return []explain.Finding{fail("", actorFor(f, z.Name, explain.Parent), zone,
		"Validating resolvers reject every answer of %s: %s", zone, sentence(at.Why))}
}

// dsAndSigned is check SEC02: A zone with a DS is signed.
func dsAndSigned(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		switch {
		case noDS(z):
			return nil
		case z.State == secure.Bogus && z.Cause == secure.Unsigned, unsupported(z) && len(z.KeySets) > 0 && !z.Signed():
			x := fail("", actorFor(f, z.Name, explain.Registrar), zone,
				"The parent zone has the DS %s for %s, but the zone is not signed: validating resolvers reject every answer.",
				words.Some(dsTexts(z.DS)), zone)
			x.Visible = dsVisible(f, z)
			return []explain.Finding{x}
		case z.Signed():
			return pass(zone, "%s has a DS, and is signed.", zone)
		case z.State == secure.Bogus:
			return nil // SEC01 reports it
		}
		return unknown(zone, "Whether %s is signed could not be determined: %s", zone, sentence(z.Why))
	})
}

// unsupported reports whether a DS has an algorithm that resolvers support, and package secure does not: Ed448. Whether
// the zone has keys is known without it.
func unsupported(z secure.Zone) bool {
	return z.Cause == secure.Algorithm && slices.ContainsFunc(z.DS, func(d secure.DS) bool {
		return d.Algorithm == 16 && (d.DigestType == 2 || d.DigestType == 4)
	})
}

// soon is the remaining validity of a signature that causes a warning: signers normally renew signatures days earlier.
const soon = 3 * oneDay

// signatures is check SEC03: The signatures are valid for at least three more days.
func signatures(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		if noDS(z) && !z.Signed() {
			return nil
		}
		if out := badSignatures(f, z, zone); len(out) > 0 {
			return out
		}
		first, found := firstToExpire(z)
		switch {
		case !found && z.State == secure.Bogus:
			return nil // SEC01 or SEC02 reports it
		case !found:
			return unknown(zone, "No signature of %s could be verified.", zone)
		case first.Expiration.Sub(f.At) < soon:
			return []explain.Finding{fail(explain.Warning, actorFor(f, z.Name, explain.DNSHost), zone,
				"The signature of %s %s expires on %s, in %s.", text(first.Owner), first.Type, words.Clock(first.Expiration, f.At),
				words.Length(first.Expiration.Sub(f.At)))}
		}
		return pass(zone, "The signatures of %s are valid; the first to expire is that of %s %s, on %s.", zone,
			text(first.Owner), first.Type, words.Day(first.Expiration))
	})
}

// firstToExpire returns the valid signature that expires first. Of several signatures of one set, only the last to
// expire counts.
func firstToExpire(z secure.Zone) (first secure.Signature, found bool) {
	last := map[string]secure.Signature{}
	for _, s := range z.Signatures {
		key := s.Owner.String() + s.Type
		if l, ok := last[key]; s.Valid && (!ok || s.Expiration.After(l.Expiration)) {
			last[key] = s
		}
	}
	for _, s := range z.Signatures { // in their order, because the order of a map is random
		if l, ok := last[s.Owner.String()+s.Type]; ok && (!found || l.Expiration.Before(first.Expiration)) {
			first, found = l, true
		}
	}
	return first, found
}

// faults are the problems of signatures, as singular and plural predicates.
var faults = map[secure.Cause][2]string{
	secure.Missing: {"is missing", "are missing"}, secure.Expired: {"has expired", "have expired"},
	secure.Early: {"is not valid yet", "are not valid yet"}, secure.Mismatch: {"is wrong", "are wrong"},
}

// rejected collects the record sets whose signature a resolver rejects for one cause.
type rejected struct {
	sets     []string
	from     []netip.Addr // the servers that returned them
	severity explain.Severity
}

// add adds a set. The worst severity of all sets counts.
func (r *rejected) add(set string, from []netip.Addr, severity explain.Severity) {
	if !slices.Contains(r.sets, set) {
		r.sets = append(r.sets, set)
	}
	r.from = append(r.from, without(from, r.from)...)
	if r.severity == "" || severity.AtLeast(r.severity) {
		r.severity = severity
	}
}

// rejectedOf returns the sets of a zone with bad signatures, by cause. A bad signature does no harm if the same server
// also returns a good one.
func rejectedOf(f *explain.Facts, z secure.Zone) map[secure.Cause]*rejected {
	out := map[secure.Cause]*rejected{secure.Expired: {}, secure.Early: {}, secure.Mismatch: {}, secure.Missing: {}}
	sound := soundServers(z)
	for _, s := range z.Signatures {
		good := func(o secure.Signature) bool { return o.Valid && o.Owner == s.Owner && o.Type == s.Type }
		beside := func(o secure.Signature) bool { return good(o) && len(without(s.From, o.From)) == 0 }
		if s.Valid || out[s.Cause] == nil || slices.ContainsFunc(z.Signatures, beside) {
			continue
		}
		severity := explain.Critical
		switch {
		case z.State == secure.Insecure:
			severity = explain.Warning // without a DS, nobody validates it yet
		case slices.ContainsFunc(z.Signatures, good) || len(sound) > 0:
			severity = explain.Error // resolvers try another server, which has a good one
		}
		out[s.Cause].add(text(s.Owner)+" "+s.Type, s.From, severity)
	}
	for _, r := range f.Secure {
		for _, a := range r.Answers {
			if a.Zone == z.Name && a.State == secure.Bogus && a.Cause == secure.Missing {
				out[a.Cause].add(question(a.Question), nil, explain.Critical)
			}
		}
	}
	return out
}

// soundServers returns the servers whose signatures are all valid.
func soundServers(z secure.Zone) []netip.Addr {
	var good, bad []netip.Addr
	for _, s := range z.Signatures {
		if s.Valid {
			good = append(good, s.From...)
		} else {
			bad = append(bad, s.From...)
		}
	}
	return without(good, bad)
}

// badSignatures returns one finding for each cause, not for each set: a signer that stopped breaks all sets at once.
func badSignatures(f *explain.Facts, z secure.Zone, zone string) (out []explain.Finding) {
	total := map[string]bool{}
	for _, s := range z.Signatures {
		total[text(s.Owner)+" "+s.Type] = true
	}
	all := rejectedOf(f, z)
	for _, cause := range []secure.Cause{secure.Expired, secure.Early, secure.Mismatch, secure.Missing} {
		bad := all[cause]
		n := len(bad.sets)
		if n == 0 {
			continue
		}
		which := words.Verb(n, "The signature", "The signatures") + " of " + words.Some(bad.sets)
		if n > 3 && n == len(total) {
			which = fmt.Sprintf("All %d signatures of %s that were seen", n, zone)
		}
		from := ""
		if len(bad.from) > 0 {
			from = " (" + strings.Join(servers(f, z.Name, bad.from), ", ") + ")"
		}
		out = append(out, fail(bad.severity, actorFor(f, z.Name, explain.DNSHost), zone,
			"%s %s%s: validating resolvers reject the answer.", which, words.Verb(n, faults[cause][0], faults[cause][1]), from))
	}
	return out
}

// denials is check SEC04: Denials of existence are proven.
func denials(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		if z.State == secure.Insecure || z.State == secure.Bogus || len(badSignatures(f, z, zone)) > 0 {
			return nil // nothing can be proven in these states, or SEC03 reports the signatures
		}
		for _, r := range f.Secure {
			for _, a := range r.Answers {
				if a.Zone == z.Name && a.State == secure.Bogus && a.Cause == secure.BadDenial {
					return []explain.Finding{fail("", actorFor(f, z.Name, explain.DNSHost), zone, "A denial of %s is not proven: %s",
						zone, sentence(a.Why))}
				}
			}
		}
		switch d := z.Denial; {
		case d.Kind == "" || z.State == secure.Unknown:
			return unknown(zone, "No denial of %s could be verified.", zone)
		// Resolvers reject proofs without a valid signature as they reject missing ones.
		case !d.OK && (d.Kind == secure.DenialNone || slices.Contains([]secure.Cause{secure.BadDenial, secure.Missing,
			secure.Expired, secure.Early, secure.Mismatch}, d.Cause)):
			return []explain.Finding{unproven(f, z, zone)}
		case !d.OK:
			return unknown(zone, "The denials of %s could not be verified: %s", zone, sentence(d.Problem))
		default:
			return pass(zone, "%s proves with %s that names do not exist.", zone, d.Kind)
		}
	})
}

// unproven returns the finding for denials without a valid proof. If other servers prove theirs, resolvers ask these.
func unproven(f *explain.Facts, z secure.Zone, zone string) explain.Finding {
	d := z.Denial
	subject := strings.ReplaceAll(d.Subject, ". ", " ")
	if len(without(d.Proving, d.Failing)) > 0 {
		return fail(explain.Error, actorFor(f, z.Name, explain.DNSHost), zone,
			"%s %s not prove that %s does not exist, and other servers of %s do: %s",
			words.Some(servers(f, z.Name, d.Failing)), words.Verb(len(d.Failing), "does", "do"), subject, zone,
			sentence(d.Problem))
	}
	return fail("", actorFor(f, z.Name, explain.DNSHost), zone, "%s does not prove that %s does not exist: %s", zone,
		subject, sentence(d.Problem))
}
