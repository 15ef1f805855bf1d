package check

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

const typeDNSKEY = rr.Type(48)

// maxDefaultEvidence limits the exchanges for a finding that names none: more of them would repeat the same.
const maxDefaultEvidence = 6

// defaultEvidence returns the exchanges that a check depends on, for findings that do not name their own. A failure
// without evidence cannot be verified by the reader, so the exchanges of the group are better than none.
func (c Check) defaultEvidence(f *explain.Facts, subject string) (out []int) {
	relevant := c.relevant(f, zoneOf(f, subject))
	if relevant == nil {
		return nil
	}
	for i, e := range f.Exchanges {
		if len(out) < maxDefaultEvidence && e.Class.Usable() && relevant(e) {
			out = append(out, i)
		}
	}
	return out
}

// zoneOf returns the zone of a finding: the zone that its subject names, otherwise the zone of the name.
func zoneOf(f *explain.Facts, subject string) *iterate.Zone {
	for _, z := range judged(f) {
		if text(z.Name) == subject {
			return f.ZoneAt(z.Name)
		}
	}
	if z := f.ZoneAt(f.Zone); z != nil && own(f, z.Name) {
		return z
	}
	return f.ZoneAt(f.Domain)
}

// relevant returns a function that selects the exchanges a check depends on, or nil if there are none, as for data of
// registries.
func (c Check) relevant(f *explain.Facts, zone *iterate.Zone) func(iterate.Exchange) bool {
	group := c.Group
	if slices.Contains(withDNS, c.ID) {
		group = Delegation
	}
	switch {
	case group == Name || group == Caches:
		names := chainNames(f)
		return func(e iterate.Exchange) bool {
			return e.Class != iterate.Referral && slices.Contains(names, e.Question.Name) &&
				(e.Question.Type == rr.TypeCNAME || slices.Contains(f.Types, e.Question.Type))
		}
	case zone == nil:
		return nil
	case group == Delegation:
		return func(e iterate.Exchange) bool {
			if e.Zone == zone.Name {
				return e.Question.Name == zone.Name && e.Question.Type == rr.TypeNS
			}
			return referred(zone, e)
		}
	case group == Zone:
		return about(zone, rr.TypeSOA)
	case group == DNSSEC:
		keys := about(zone, rr.TypeDS, typeDNSKEY)
		return func(e iterate.Exchange) bool { return keys(e) || referred(zone, e) } // the referral contains the DS
	}
	return nil
}

// referred reports whether the exchange is a referral from the parent zone to the zone.
func referred(zone *iterate.Zone, e iterate.Exchange) bool {
	return e.Zone == zone.Parent && e.Class == iterate.Referral && e.Question.Name.IsIn(zone.Name)
}

// about selects the exchanges for types at the apex of a zone.
func about(zone *iterate.Zone, types ...rr.Type) func(iterate.Exchange) bool {
	return func(e iterate.Exchange) bool {
		return e.Class != iterate.Referral && e.Question.Name == zone.Name && slices.Contains(types, e.Question.Type)
	}
}

// chainNames returns the name and the targets of its aliases.
func chainNames(f *explain.Facts) []dnsname.Name {
	out := []dnsname.Name{f.Name}
	for _, h := range f.Chain {
		out = append(out, h.To)
	}
	return out
}
