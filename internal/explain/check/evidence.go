package check

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

const typeDNSKEY = rr.Type(48)

// mostShown is how many exchanges stand for a finding that did not name its own: they say the same.
const mostShown = 6

// shown are the exchanges that a check goes by, for findings that do not name their own.
func (c Check) shown(f *explain.Facts, subject string) (out []int) {
	tells := c.tells(f, zoneOf(f, subject))
	if tells == nil {
		return nil
	}
	for i, e := range f.Exchanges {
		if len(out) < mostShown && e.Class.Usable() && tells(e) {
			out = append(out, i)
		}
	}
	return out
}

// zoneOf is the zone that a finding is about: the one that it names, or that of the name.
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

// tells is which exchanges show what a check goes by; nil if none does, as with what registries say.
func (c Check) tells(f *explain.Facts, zone *iterate.Zone) func(iterate.Exchange) bool {
	group := c.Group
	if slices.Contains(unsighted, c.ID) {
		group = Delegation
	}
	switch {
	case group == Name || group == Caches:
		names := onTheWay(f)
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
		return func(e iterate.Exchange) bool { return keys(e) || referred(zone, e) } // which has the DS
	}
	return nil
}

// referred reports whether the zone above said where a zone is.
func referred(zone *iterate.Zone, e iterate.Exchange) bool {
	return e.Zone == zone.Parent && e.Class == iterate.Referral && e.Question.Name.IsIn(zone.Name)
}

// about are the exchanges about types at the apex of a zone.
func about(zone *iterate.Zone, types ...rr.Type) func(iterate.Exchange) bool {
	return func(e iterate.Exchange) bool {
		return e.Class != iterate.Referral && e.Question.Name == zone.Name && slices.Contains(types, e.Question.Type)
	}
}

// onTheWay are the name, and those that its aliases lead over.
func onTheWay(f *explain.Facts) []dnsname.Name {
	out := []dnsname.Name{f.Name}
	for _, h := range f.Chain {
		out = append(out, h.To)
	}
	return out
}
