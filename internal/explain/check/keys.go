package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// outdated are the algorithms that must not or should not be used for signing (RFC 8624 §3.1, RFC 9905, RFC 9906).
var outdated = map[uint8]string{1: "RSA/MD5", 3: "DSA/SHA-1", 5: "RSA/SHA-1", 6: "DSA-NSEC3-SHA1",
	7: "RSASHA1-NSEC3-SHA1", 12: "GOST"}

// outdatedDigests are the digests that must not be used for a DS (RFC 8624 §3.3).
var outdatedDigests = map[uint8]string{0: "none", 1: "SHA-1", 3: "GOST"}

// numbers describes a registry of IANA: the numbers that are assigned and current, and those that are
// reserved (RFC 9364 refers to both registries; read on 2026-11-17).
type numbers struct {
	known    []uint8
	reserved func(uint8) bool
}

var (
	algorithmNumbers = numbers{[]uint8{8, 10, 13, 14, 15, 16, 17, 23}, func(n uint8) bool {
		return slices.Contains([]uint8{0, 2, 4, 9, 11, 255}, n) || n >= 123 && n <= 252
	}}
	digestNumbers = numbers{[]uint8{2, 4, 5, 6}, func(n uint8) bool { return n >= 128 && n <= 252 }}
)

// unusable describes a number that no zone can use, or returns "". Validators do not support it. A zone whose DS
// records have only such numbers is treated as unsigned (RFC 4035 §5.2): it resolves, but nothing protects it. So
// SEC05 is a warning.
func (r numbers) unusable(number uint8) string {
	switch {
	case slices.Contains(r.known, number):
		return ""
	case number == 253 || number == 254:
		return fmt.Sprintf("number %d, which is for private use", number)
	case r.reserved(number):
		return fmt.Sprintf("number %d, which is reserved", number)
	}
	return fmt.Sprintf("number %d, which is not assigned", number)
}

// isRSA reports whether an algorithm is RSA. Only RSA keys have a length that can be too short.
func isRSA(algorithm uint8) bool { return slices.Contains([]uint8{1, 5, 7, 8, 10}, algorithm) }

// algorithms is check SEC05: Keys and digests use current algorithms.
func algorithms(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		if !z.Signed() && len(z.DS) == 0 {
			return nil
		}
		severity := explain.Notice
		keys := weakKeys(z)
		digests, alone := weakDigests(z)
		// A weak digest beside a better one is ignored by resolvers, and needs only tidying up.
		if len(keys) > 0 || alone {
			severity = explain.Warning
		}
		wrong := slices.Concat(keys, digests)
		if len(wrong) > 0 {
			return []explain.Finding{fail(severity, actorFor(f, z.Name, explain.DNSHost), zone,
				"In %s, %s: validating resolvers do not trust this, or will not for long.", zone, words.Some(wrong))}
		}
		return pass(zone, "The keys and DS records of %s use current algorithms.", zone)
	})
}

// weakKeys describes the keys that validators should not or cannot use.
func weakKeys(z secure.Zone) (wrong []string) {
	for _, k := range z.Keys {
		switch odd := algorithmNumbers.unusable(k.Algorithm); {
		case outdated[k.Algorithm] != "":
			wrong = append(wrong, fmt.Sprintf("key %d uses %s", k.KeyTag, outdated[k.Algorithm]))
		case odd != "":
			wrong = append(wrong, fmt.Sprintf("key %d uses the algorithm %s", k.KeyTag, odd))
		// NIST SP 800-131A does not allow RSA keys below 2048 bits since 2014.
		case isRSA(k.Algorithm) && k.Bits > 0 && k.Bits < 2048:
			wrong = append(wrong, fmt.Sprintf("key %d has only %d bits", k.KeyTag, k.Bits))
		}
	}
	return wrong
}

// weakDigests describes the DS records that validators should not or cannot use, and reports whether a key has no
// other one: resolvers ignore a weak DS beside a better one (RFC 4509 §3).
func weakDigests(z secure.Zone) (wrong []string, alone bool) {
	weak := func(d secure.DS) string {
		switch odd, digest := algorithmNumbers.unusable(d.Algorithm), digestNumbers.unusable(d.DigestType); {
		case outdatedDigests[d.DigestType] != "":
			return "uses " + outdatedDigests[d.DigestType]
		case digest != "":
			return "uses the digest " + digest
		case odd != "" && outdated[d.Algorithm] == "":
			return "is for the algorithm " + odd
		}
		return ""
	}
	for _, d := range z.DS {
		if what := weak(d); what != "" {
			wrong = append(wrong, fmt.Sprintf("the DS for key %d %s", d.KeyTag, what))
			alone = alone || !slices.ContainsFunc(z.DS, func(o secure.DS) bool { return o.KeyTag == d.KeyTag && weak(o) == "" })
		}
	}
	return wrong, alone
}

// nsec3 is check SEC06: NSEC3 is used without extra iterations and without salt. RFC 9276 §3.1 asks for both:
// iterations cost servers and validators time, and an attacker guesses names offline all the same.
func nsec3(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		d := z.Denial
		var what []string
		if d.Iterations > 0 {
			what = append(what, words.Count(int(d.Iterations), "extra iteration", "extra iterations"))
		}
		if d.Salt != "" && d.Salt != "-" {
			what = append(what, "the salt "+d.Salt)
		}
		switch {
		case !z.Signed() || d.Kind == secure.DenialNone:
			return nil
		case d.Kind == "":
			return unknown(zone, "How %s denies names is not known.", zone)
		case len(d.Params) > 1 || len(d.Params) == 1 && len(without(d.NSEC, d.Params[0].From)) > 0:
			return []explain.Finding{fail(explain.Warning, actorFor(f, z.Name, explain.DNSHost), zone,
				"The servers of %s deny names with different parameters: %s. They have different versions of the zone.", zone,
				strings.Join(denialParams(f, z), "; "))}
		case d.Kind == secure.DenialNSEC3 && len(what) > 0:
			return []explain.Finding{fail(explain.Notice, actorFor(f, z.Name, explain.DNSHost), zone,
				"%s uses NSEC3 with %s, which costs time and protects nothing.", zone, words.Some(what))}
		}
		return pass(zone, "%s uses %s without extra iterations or salt.", zone, d.Kind)
	})
}

// denialParams lists which servers of a zone use NSEC3 with which parameters, and which use NSEC.
func denialParams(f *explain.Facts, z secure.Zone) (out []string) {
	for _, p := range z.Denial.Params {
		salt := "no salt"
		if p.Salt != "" && p.Salt != "-" {
			salt = "salt " + p.Salt
		}
		out = append(out, fmt.Sprintf("%s: NSEC3 with %s and %s", words.Some(servers(f, z.Name, p.From)),
			words.Count(int(p.Iterations), "extra iteration", "extra iterations"), salt))
	}
	if len(z.Denial.NSEC) > 0 {
		out = append(out, words.Some(servers(f, z.Name, z.Denial.NSEC))+": NSEC")
	}
	return out
}

// signedHasDS is check SEC07: A signed zone has a DS at the parent zone. The DS is the last step of signing a zone, so
// its absence may be temporary. Until then the zone is insecure and not bogus: every answer is accepted.
func signedHasDS(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		switch {
		case z.Signed() && len(z.DS) == 0 && z.Cause == secure.NoDS:
			return []explain.Finding{fail("", actorFor(f, z.Name, explain.Registrar), zone,
				"%s is signed, but the parent zone has no DS for it: nobody can verify the signatures.", zone)}
		case z.Signed() && len(z.DS) > 0:
			return pass(zone, "%s is signed, and the parent zone has its DS.", zone)
		case z.State == secure.Unknown:
			return unknown(zone, "Whether the parent zone has a DS for %s could not be determined.", zone)
		}
		return nil // not signed
	})
}

// cds is check SEC08: CDS and CDNSKEY records match the DS.
func cds(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		c := z.Child
		actor := actorFor(f, z.Name, explain.DNSHost)
		switch {
		case !c.Seen && z.Signed():
			return unknown(zone, "Whether %s has CDS or CDNSKEY records could not be determined.", zone)
		case c.Problem != "":
			return []explain.Finding{fail("", actor, zone, "The CDS and CDNSKEY records of %s cannot be used: %s", zone,
				sentence(c.Problem))}
		// RFC 8078 §4: a CDS with algorithm 0 asks for the removal of the DS. The parent zone may be slow to follow.
		case c.Delete && len(z.DS) > 0:
			return []explain.Finding{fail("", actor, zone,
				"%s requests the deletion of its DS by CDS or CDNSKEY; the parent zone still has it.", zone)}
		// A new key is announced before it is used, so a difference is the normal state during a rollover (RFC 7344).
		case c.Pending:
			return []explain.Finding{fail(explain.Notice, actorFor(f, z.Name, explain.Parent), zone,
				"%s requests another DS by CDS or CDNSKEY than the parent zone has.", zone)}
		case len(c.Records) == 0 && !c.Delete:
			return nil
		}
		return pass(zone, "The CDS and CDNSKEY records of %s match its DS.", zone)
	})
}

// sameKeys is check SEC09: All nameservers have the same keys. A resolver may take the keys from one server and the
// signatures from another, so validation fails at random. With several signers, each server needs the keys of all of
// them (RFC 8901).
func sameKeys(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		sets := byKeys(z.KeySets)
		switch {
		case len(sets) > 1:
		case !z.Signed():
			return nil
		case len(sets) == 0 || len(sets[0].From) < 2:
			return unknown(zone, "The keys of %s are known from only one server.", zone)
		default:
			return pass(zone, "%s of %s that replied have the same keys.", words.All(len(sets[0].From), "servers"), zone)
		}
		var parts []string
		for _, k := range sets {
			keys := "no keys"
			if n := len(k.KeyTags); n > 0 {
				keys = words.Verb(n, "key ", "keys ") +
					words.Some(words.Each(k.KeyTags, func(t uint16) string { return fmt.Sprint(t) }))
			}
			parts = append(parts, fmt.Sprintf("%s %s %s", words.Some(servers(f, z.Name, k.From)),
				words.Verb(len(k.From), "has", "have"), keys))
		}
		return []explain.Finding{fail("", actorFor(f, z.Name, explain.DNSHost), zone,
			"The servers of %s have different keys: %s.", zone, words.Some(parts))}
	})
}

// byKeys joins the sets with the same keys. The signatures of a set may be valid at one server only; SEC03 reports it.
func byKeys(sets []secure.KeySet) (out []secure.KeySet) {
	for _, k := range sets {
		i := slices.IndexFunc(out, func(o secure.KeySet) bool { return slices.Equal(o.KeyTags, k.KeyTags) })
		if i < 0 {
			out = append(out, k)
			continue
		}
		out[i].From = iterate.Union(out[i].From, k.From)
	}
	return out
}

// acceptedByValidators is check SEC10: it checks whether resolvers that fail return the answer with validation
// disabled (CD). SERVFAIL alone has many causes; an answer with CD (RFC 4035 §3.2.2) points to validation.
func acceptedByValidators(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var broken []explain.Assessment
	var evidence []int
	working, failing := 0, 0
	for _, c := range explain.Assess(f) {
		if c.NoVote {
			continue
		}
		if !in(c, safeat.Failed) {
			if in(c, safeat.Current, safeat.Old) {
				working++
			}
			continue
		}
		failing++
		if s, ok := find(c.Answers, func(s explain.Assessed) bool {
			return s.NoCheck && (s.State == safeat.Current || s.State == safeat.Old)
		}); ok {
			broken, evidence = append(broken, c), append(evidence, s.Evidence...)
		}
	}
	bogus := slices.ContainsFunc(f.Secure, func(r secure.Result) bool { return r.State == secure.Bogus })
	switch {
	case len(broken) > 0:
		x := fail(explain.Error, explain.DNSHost, name,
			"%s %s for %s, but %s the answer without validation: DNSSEC is broken.", caches(broken),
			words.Verb(len(broken), "fails", "fail"), name, words.Verb(len(broken), "gives", "give"))
		if bogus || working == 0 {
			x.Severity = explain.Critical
		}
		if z, ok := securedZone(f, f.Zone); ok && len(z.DS) > 0 {
			x.Visible = dsVisible(f, z)
		}
		return []explain.Finding{seen(x, evidence)}
	case working == 0 || failing > 0:
		return unknown(name, "Whether validating resolvers accept %s could not be determined.", name)
	}
	return pass(name, "All %s that answered accept %s.", words.Count(working, "resolver", "resolvers"), name)
}

// planDS is check SEC11: No DS is left when the nameservers change. Resolvers keep the DS for its TTL. Until then, new
// servers with other keys make the whole zone bogus: this is a common outage when a domain moves to another DNS host.
func planDS(f *explain.Facts) []explain.Finding {
	z := f.ZoneAt(f.Zone)
	if len(f.PlanNS) == 0 || z == nil {
		return nil
	}
	zone := text(f.Zone)
	now, _ := iterate.Join(z.ParentNS)
	s, ok := securedZone(f, f.Zone)
	switch {
	// Nameservers that are listed already have the keys.
	case len(without(f.PlanNS, now)) == 0:
		return pass(zone, "No new nameserver is planned for %s.", zone)
	case !ok || len(s.DS) == 0 && s.Cause != secure.NoDS:
		return unknown(zone, "Whether the parent zone has a DS for %s could not be determined.", zone)
	case len(s.DS) == 0:
		return pass(zone, "%s has no DS that must be removed first.", zone)
	}
	x := fail("", explain.Registrar, zone, "%s has a DS (%s), and %s %s planned as nameserver: %s.", zone,
		words.Some(dsTexts(s.DS)),
		words.Some(texts(without(f.PlanNS, now))), words.Verb(len(without(f.PlanNS, now)), "is", "are"),
		"validating resolvers will reject answers that the new servers sign with other keys")
	x.Visible = dsVisible(f, s)
	x.Fix = fmt.Sprintf("Remove the DS at your registrar now, and do not change the nameservers before %s.",
		words.By(x.Visible, f.At))
	return []explain.Finding{x}
}
