package check

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// oneSOA is check SOA08: The zone has one SOA record, at its own name. RFC 1035 §5.2 asks for exactly one at the top
// of the zone. Secondaries compare its serial, and resolvers take the time for denials from it: with two records, both
// depend on chance.
func oneSOA(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, n := text(z.Name), 0
		for _, s := range listed(f, z.Name) {
			switch actor := actorFor(f, z.Name, explain.DNSHost); {
			case s.SOA == nil && negative(s.Class):
				out = append(out, seen(fail("", actor, server(s), "%s answers for %s, but says that it has no SOA record: no zone "+
					"is complete without one.", server(s), zone), s.Evidence))
				continue
			case s.SOA == nil:
				continue
			case s.SOA.Count > 1:
				out = append(out, seen(fail("", actor, server(s), "%s returns %d SOA records for %s.", server(s), s.SOA.Count,
					zone), s.Evidence))
			case !s.SOA.Owner.IsZero() && s.SOA.Owner != z.Name:
				out = append(out, seen(fail("", actor, server(s), "%s returns the SOA record of %s for a query for that of %s.",
					server(s), text(s.SOA.Owner), zone), s.Evidence))
			}
			n++
		}
		for i := range out {
			if out[i].Severity = explain.Error; n == 0 {
				out[i].Severity = explain.Critical // no server has one: some resolvers return SERVFAIL
			}
		}
		switch {
		case len(out) > 0:
			return out
		case n == 0:
			return unknown(zone, "The SOA record of %s could not be read.", zone)
		}
		return pass(zone, "%s has one SOA record.", zone)
	})
}

// negative reports whether a reply says that there are no such records.
func negative(c iterate.Class) bool {
	return c == iterate.NXDomain || c == iterate.NoData || c == iterate.NoSOA
}

// negativeSOA is check SOA09: Negative answers contain the SOA record. RFC 2308 §3 requires it. In an unsigned zone
// its absence only keeps resolvers from caching the denial (§5), so it is a warning there.
func negativeSOA(f *explain.Facts) []explain.Finding {
	withSOA := func(s explain.Server) explain.Probe {
		s.NegativeSOA.Detail = "" // the detail adds nothing to the sentence
		return s.NegativeSOA
	}
	p := probe{of: withSOA, bad: explain.No, ok: "Negative answers of the servers of %s contain the SOA record.",
		open:  "Whether negative answers contain the SOA record",
		words: "%s denies names of %s without the required SOA record"}
	out := perZone(f, func(z iterate.Zone) []explain.Finding {
		out := p.judgeZone(f, z)
		secured, _ := securedZone(f, z.Name)
		for i := range out {
			switch {
			case out[i].Status != explain.Fail:
			case !secured.Signed():
				out[i].Severity = explain.Warning
			default: // validating resolvers such as BIND reject a signed denial without it
				out[i].Words = strings.TrimSuffix(out[i].Words, ".") + "; validating resolvers may reject the denial."
				out[i].Severity = explain.Error
				if secured.State == secure.Secure && onlyBare(f, z.Name) {
					out[i].Severity = explain.Critical
				}
			}
		}
		return out
	})
	for _, d := range f.Denials {
		if d.Class == iterate.NoSOA && own(f, d.Zone) && (len(out) == 0 || out[0].Status != explain.Fail) {
			x := fail(explain.Error, explain.DNSHost, text(d.Zone), "%s denies names without the required SOA record.",
				text(d.Zone))
			return []explain.Finding{seen(x, d.Evidence)}
		}
	}
	return out
}

// onlyBare reports whether there is a question for a usual type that the servers of a zone only deny, all of them
// without an SOA record. A resolver that rejects such a reply asks the next server: it fails only if no server has a
// better one.
func onlyBare(f *explain.Facts, zone dnsname.Name) bool {
	bare := map[iterate.Question]bool{}
	for _, e := range f.Exchanges {
		usual := slices.Contains(f.Types, e.Question.Type) || slices.Contains(usualTypes, e.Question.Type)
		if e.Zone == zone && e.Class == iterate.NoSOA && usual {
			bare[e.Question] = true
		}
	}
	for _, e := range f.Exchanges {
		if e.Zone == zone && e.Class.Usable() {
			delete(bare, e.Question)
		}
	}
	return len(bare) > 0
}
