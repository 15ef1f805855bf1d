package check

import (
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// outdated are the algorithms that must not or should not be used for signing (RFC 8624 §3.1, RFC 9905, RFC 9906).
var outdated = map[uint8]string{1: "RSA/MD5", 3: "DSA/SHA-1", 5: "RSA/SHA-1", 6: "DSA-NSEC3-SHA1",
	7: "RSASHA1-NSEC3-SHA1", 12: "GOST"}

var outdatedDigests = map[uint8]string{0: "none", 1: "SHA-1", 3: "GOST"}

// isRSA reports whether an algorithm is RSA. Only RSA keys have a length that can be too short.
func isRSA(algorithm uint8) bool { return slices.Contains([]uint8{1, 5, 7, 8, 10}, algorithm) }

// algorithms is check SEC05: Keys and digests use current algorithms.
func algorithms(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		if !z.Signed() && len(z.DS) == 0 {
			return nil
		}
		var wrong []string
		severity := explain.Notice
		for _, k := range z.Keys {
			if name := outdated[k.Algorithm]; name != "" {
				wrong, severity = append(wrong, fmt.Sprintf("key %d uses %s", k.KeyTag, name)), explain.Warning
			} else if isRSA(k.Algorithm) && k.Bits > 0 && k.Bits < 2048 {
				wrong, severity = append(wrong, fmt.Sprintf("key %d has only %d bits", k.KeyTag, k.Bits)), explain.Warning
			}
		}
		for _, d := range z.DS {
			if name := outdatedDigests[d.DigestType]; name != "" {
				wrong = append(wrong, fmt.Sprintf("the DS for key %d uses %s", d.KeyTag, name))
				// Resolvers ignore it if a better DS for the same key exists (RFC 4509 §3).
				if !slices.ContainsFunc(z.DS, func(o secure.DS) bool {
					return o.KeyTag == d.KeyTag && outdatedDigests[o.DigestType] == ""
				}) {
					severity = explain.Warning
				}
			}
		}
		if len(wrong) > 0 {
			return []explain.Finding{fail(severity, actorFor(f, z.Name, explain.DNSHost), zone, "In %s, %s: this is deprecated.",
				zone, words.Some(wrong))}
		}
		return pass(zone, "The keys and DS records of %s use current algorithms.", zone)
	})
}

// nsec3 is check SEC06: NSEC3 is used without extra iterations and without salt.
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
		case d.Kind == secure.DenialNSEC3 && len(what) > 0:
			return []explain.Finding{fail("", actorFor(f, z.Name, explain.DNSHost), zone,
				"%s uses NSEC3 with %s, which costs time and protects nothing.", zone, words.Some(what))}
		}
		return pass(zone, "%s uses %s without extra iterations or salt.", zone, d.Kind)
	})
}

// signedHasDS is check SEC07: A signed zone has a DS at the parent zone.
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
		case c.Delete && len(z.DS) > 0:
			return []explain.Finding{fail("", actor, zone,
				"%s requests the deletion of its DS by CDS or CDNSKEY; the parent zone still has it.", zone)}
		case c.Pending:
			return []explain.Finding{fail(explain.Notice, actorFor(f, z.Name, explain.Parent), zone,
				"%s requests another DS by CDS or CDNSKEY than the parent zone has.", zone)}
		case len(c.Records) == 0 && !c.Delete:
			return nil
		}
		return pass(zone, "The CDS and CDNSKEY records of %s match its DS.", zone)
	})
}

// sameKeys is check SEC09: All nameservers have the same keys.
func sameKeys(f *explain.Facts) []explain.Finding {
	return perSecured(f, func(z secure.Zone, zone string) []explain.Finding {
		switch {
		case len(z.KeySets) > 1:
		case !z.Signed():
			return nil
		case len(z.KeySets) == 0 || len(z.KeySets[0].From) < 2:
			return unknown(zone, "The keys of %s are known from only one server.", zone)
		default:
			return pass(zone, "%s of %s that replied have the same keys.", words.All(len(z.KeySets[0].From), "servers"), zone)
		}
		var parts []string
		for _, k := range z.KeySets {
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

// acceptedByValidators is check SEC10: it checks whether resolvers that fail return the answer with validation disabled
// (CD).
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

// planDS is check SEC11: No DS is left when the nameservers change.
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
