package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// undelegated reports whether the domain itself is not there, of which REG01 and DEL01 tell.
func undelegated(f *explain.Facts) bool {
	if f.Domain.IsZero() { // nobody can register it; it may have records without being a zone
		parent, _ := denied(f, f.Name)
		return !f.Name.IsZero() && f.ZoneAt(f.Name) == nil && !parent.IsZero() && slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Result == iterate.NXDomain })
	}
	parent, _ := denied(f, f.Domain)
	return f.ZoneAt(f.Domain) == nil && !parent.IsZero()
}

// loops reports whether the aliases go in a circle, of which NAM05 tells.
func loops(f *explain.Facts) bool {
	return slices.ContainsFunc(f.Notes, func(n iterate.Note) bool { return n.Kind == iterate.NoteAliasLoop })
}

// nowhere reports whether it is known that there are no records at the end.
func nowhere(f *explain.Facts) bool {
	return len(f.Outcomes) > 0 && (loops(f) || !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return o.Result != iterate.NXDomain && o.Result != iterate.NoData
	}))
}

// typesText is what was asked for.
func typesText(outcomes []explain.Outcome) string {
	return words.Some(words.Each(outcomes, func(o explain.Outcome) string { return o.Type.String() }))
}

func nameExists(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	if f.Name.IsZero() || undelegated(f) {
		return nil
	}
	is := func(o explain.Outcome) bool {
		return o.Result == iterate.Answer || o.Result == iterate.NoData || o.End != f.Name && !o.End.IsZero()
	}
	not := func(o explain.Outcome) bool { return o.Result == iterate.NXDomain }
	switch {
	case len(f.Chain) > 0 || slices.ContainsFunc(f.Outcomes, is):
		return pass(name, "%s exists.", name)
	case slices.ContainsFunc(f.Answers, func(a explain.Answer) bool { return a.Question.Name == f.Name && a.Class == iterate.Answer }):
		return pass(name, "%s exists on some servers; see NAM11.", name)
	case len(f.Outcomes) == 0 || !slices.ContainsFunc(f.Outcomes, not):
		return unknown(name, "Whether %s exists could not be found out.", name)
	}
	zone := f.Zone
	x := fail("", explain.DNSHost, name, "%s does not exist: the servers of %s say so.", name, text(zone))
	if w := f.Wildcard; w != nil && w.Class == iterate.NXDomain {
		x.Words += " There is no wildcard either."
	}
	x = hint(f, x)
	x.Visible = after(f, created(f, f.Name, zone))
	for _, a := range f.Answers {
		if a.Question.Name == f.Name && a.Class == iterate.NXDomain {
			x.Evidence = append(x.Evidence, a.Evidence...)
		}
	}
	return []explain.Finding{x}
}

// hint adds a name that exists to a finding about one that does not.
func hint(f *explain.Facts, x explain.Finding) explain.Finding {
	if len(f.Near) == 0 {
		return x
	}
	n := f.Near[0]
	near, zone := text(n.Name), text(f.Zone)
	if n.How == explain.NearDoubled {
		x.Words += fmt.Sprintf(" But %s exists: the record was made with the domain in it twice.", near)
		x.Fix = fmt.Sprintf("In the record that is now %s, enter only %q as the host: your DNS host adds %s to it.", near, strings.TrimSuffix(text(f.Name), "."+zone), zone)
	} else {
		x.Words += fmt.Sprintf(" Perhaps %s is meant, which exists.", near)
	}
	return seen(x, n.Evidence)
}

func typeExists(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var without, with, open []explain.Outcome
	for _, o := range f.Outcomes {
		switch o.Result {
		case iterate.NoData:
			without = append(without, o)
		case iterate.Answer:
			with = append(with, o)
		case iterate.NXDomain:
			return nil // NAM01 and NAM06
		default:
			open = append(open, o)
		}
	}
	// AAAA is missing from many names that work; A is missing from few.
	wanted := func(o explain.Outcome) bool {
		return len(with) == 0 || o.Type == rr.TypeA || slices.ContainsFunc(f.Expect, func(s explain.Set) bool { return s.Name == f.Name && s.Type == o.Type })
	}
	i := slices.IndexFunc(without, wanted)
	switch {
	case loops(f):
		return nil
	case len(f.Outcomes) == 0:
		return unknown(name, "What records %s has could not be found out.", name)
	case i >= 0 && len(open) == 0 && len(with) == 0 && !slices.ContainsFunc(without, func(o explain.Outcome) bool { return needed(f, o) }):
		x := noType(f, explain.Notice, without[i], "%s has no %s records, as most names.", where(f, without[i]), typesText(without))
		x.Fix = "Nothing, unless somebody told you to have them."
		return []explain.Finding{x}
	case i >= 0 && len(open) == 0 && len(with) == 0:
		return []explain.Finding{noType(f, explain.Critical, without[i], "%s exists, but has no %s records.", where(f, without[i]), typesText(without))}
	case i >= 0 && len(open) == 0:
		return []explain.Finding{noType(f, explain.Error, without[i], "%s has no %s records, only %s.", where(f, without[i]), without[i].Type, typesText(with))}
	case len(open) > 0:
		return unknown(name, "Whether %s has %s records could not be found out.", name, typesText(open))
	case len(without) > 0:
		return pass(name, "%s has %s records, and no %s.", name, typesText(with), typesText(without))
	}
	return pass(name, "%s has %s records.", name, typesText(with))
}

// needed reports whether somebody misses records that there are none of: most names do well without some types.
func needed(f *explain.Facts, o explain.Outcome) bool {
	return !slices.Contains([]string{"CAA", "DS", "HTTPS", "SVCB", "TLSA"}, o.Type.String()) ||
		slices.ContainsFunc(f.Expect, func(s explain.Set) bool { return s.Name == f.Name && s.Type == o.Type })
}

func noType(f *explain.Facts, severity explain.Severity, o explain.Outcome, format string, args ...any) explain.Finding {
	actor := explain.DNSHost
	if o.End != f.Name {
		actor = explain.Target
	}
	x := fail(severity, actor, fmt.Sprintf("%s %s", text(f.Name), o.Type), format, args...)
	if f.Domain.IsZero() && o.End == f.Name { // it is the registry's, and nobody who asks can add anything
		x.Actor, x.Fix = explain.You, "Ask for the domain that you mean: names that domains end with seldom have such records. They have NS and SOA records."
		return x
	}
	x.Visible = after(f, created(f, o.End, o.Zone))
	return x
}

// where is the name that lacks something: the one asked for, or where its aliases lead.
func where(f *explain.Facts, o explain.Outcome) string {
	if o.End == f.Name || o.End.IsZero() {
		return text(f.Name)
	}
	return fmt.Sprintf("%s, which %s leads to,", text(o.End), text(f.Name))
}

func aliasAlone(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	said := map[string]bool{}
	looked := false
	for _, a := range f.Answers {
		looked = looked || a.Class == iterate.Answer || a.Class == iterate.NoData
		i := slices.IndexFunc(a.Sets, func(s explain.Set) bool { return s.Type == rr.TypeCNAME && s.Name == a.Question.Name })
		if i < 0 || a.Subnet.IsValid() {
			continue
		}
		owner := a.Sets[i].Name
		beside, evidence := besides(f, a)
		x := fail("", who(f, a.Zone, explain.DNSHost), text(owner), "")
		switch {
		case said[text(owner)]:
			continue
		case owner == a.Zone:
			x.Words = fmt.Sprintf("%s is the apex of its zone and has a CNAME, to %s: mail and nameservers of the domain are found by chance only.", text(owner), strings.TrimSuffix(words.Some(a.Sets[i].Data), "."))
		case beside != "":
			x.Words = fmt.Sprintf("%s has a CNAME, to %s, and %s: which one is found depends on chance.", text(owner), strings.TrimSuffix(words.Some(a.Sets[i].Data), "."), beside)
		default:
			continue
		}
		said[text(owner)] = true
		x.Visible = mended(f, func(b explain.Answer) bool { return b.Question.Name == owner && b.Class == iterate.Answer })
		out = append(out, seen(seen(x, a.Evidence), evidence))
	}
	switch {
	case len(out) > 0:
		return out
	case !looked && nowhere(f) || undelegated(f):
		return nil
	case !looked:
		return unknown(name, "Whether a CNAME stands beside other records at %s could not be found out.", name)
	}
	return pass(name, "No CNAME stands beside other records.")
}

// besides is what the same server has at a name besides the alias that it answered with.
func besides(f *explain.Facts, alias explain.Answer) (string, []int) {
	for _, a := range f.Answers {
		if a.Server != alias.Server || a.Zone != alias.Zone || a.Question.Name != alias.Question.Name || a.Question.Type == rr.TypeDS {
			continue
		}
		other := slices.IndexFunc(a.Sets, func(s explain.Set) bool {
			return s.Name == a.Question.Name && s.Type != rr.TypeCNAME && s.Type == a.Question.Type
		})
		switch {
		case other >= 0:
			return fmt.Sprintf("%s records besides", a.Sets[other].Type), a.Evidence
		case a.Class == iterate.NoData && a.Question.Type != rr.TypeNS && a.Question.Type != rr.TypeSOA:
			return fmt.Sprintf("the server does not show it to who asks for %s", a.Question.Type), a.Evidence
		}
	}
	return "", nil
}

// hops is a chain in words.
func hops(f *explain.Facts) string {
	parts := []string{text(f.Name)}
	for _, h := range f.Chain {
		parts = append(parts, fmt.Sprintf("%s (TTL %d)", text(h.To), h.TTL))
	}
	return strings.Join(parts, " → ")
}

func chainLength(f *explain.Facts) []explain.Finding {
	name, n := text(f.Name), len(f.Chain)
	long := slices.ContainsFunc(f.Notes, func(n iterate.Note) bool { return n.Kind == iterate.NoteAliasLong })
	switch {
	case n == 0 && len(f.Outcomes) == 0:
		return unknown(name, "Where %s leads could not be found out.", name)
	case n == 0:
		return pass(name, "%s is no alias.", name)
	case loops(f):
		return nil // NAM05
	case n > 8 || long:
		return rerouted(f, f.Chain[:1], fail(explain.Error, explain.DNSHost, name, "%s leads over %d aliases, which not all resolvers follow: %s.", name, n, hops(f)))
	case n > 4:
		return rerouted(f, f.Chain[:1], fail(explain.Warning, explain.DNSHost, name, "%s leads over %d aliases: %s.", name, n, hops(f)))
	}
	least := slices.MinFunc(f.Chain, func(a, b explain.Hop) int { return int(a.TTL) - int(b.TTL) })
	return pass(name, "%s leads over %s: %s. The smallest TTL on the way, %s, is how often the whole way is gone.", name, words.Count(n, "alias", "aliases"), hops(f), words.Seconds(least.TTL))
}

// rerouted is a finding that ends when any of these aliases leads elsewhere.
func rerouted(f *explain.Facts, hops []explain.Hop, x explain.Finding) []explain.Finding {
	var links []safeat.Link
	for _, h := range hops {
		links = append(links, replaced(f, h.From, rr.TypeCNAME, safeat.Data, h.TTL))
	}
	if len(links) > 0 {
		x.Visible = after(f, links...)
	}
	return []explain.Finding{x}
}

func noLoop(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	for _, n := range f.Notes {
		if n.Kind == iterate.NoteAliasLoop {
			from, to, _ := strings.Cut(n.Subject, " to ")
			out = append(out, rerouted(f, f.Chain, fail("", who(f, n.Zone, explain.DNSHost), name, "%s never leads to an address: its aliases go in a circle, from %s back to %s.", name, strings.TrimSuffix(from, "."), strings.TrimSuffix(to, ".")))...)
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(f.Outcomes) == 0 || len(f.Unfinished) > 0 && !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Result != iterate.Unknown }):
		return unknown(name, "The aliases of %s could not be followed to their end.", name)
	case len(f.Chain) == 0:
		return nil
	}
	return pass(name, "The aliases of %s do not go in a circle.", name)
}

func notDangling(f *explain.Facts) []explain.Finding {
	if len(f.Chain) == 0 || loops(f) {
		return nil
	}
	name, last := text(f.Name), f.Chain[len(f.Chain)-1]
	var end explain.Outcome
	for _, o := range f.Outcomes {
		switch o.Result {
		case iterate.Answer, iterate.NoData:
			return pass(name, "%s leads to %s, which exists.", name, text(o.End))
		case iterate.NXDomain:
			end = o
		}
	}
	if end.End.IsZero() || end.End == f.Name {
		return unknown(name, "Whether %s, which %s leads to, exists could not be found out.", text(last.To), name)
	}
	x := fail("", explain.DNSHost, name, "%s leads to %s, which does not exist.", name, text(end.End))
	x.Visible = after(f, replaced(f, last.From, rr.TypeCNAME, "data", last.TTL))
	return []explain.Finding{x}
}

func targetRegistered(f *explain.Facts) []explain.Finding {
	var all []explain.Finding
	for _, h := range f.Chain {
		if h.Domain.IsZero() || h.Domain == f.Domain {
			continue
		}
		domain := text(h.Domain)
		parent, evidence := denied(f, h.Domain)
		r, ok := registrationOf(f, h.Domain)
		switch {
		case f.ZoneAt(h.Domain) != nil || ok && r.State == registry.Registered:
			all = append(all, pass(domain, "%s, which %s leads to, is registered.", domain, text(f.Name))...)
		case ok && r.State == registry.Free && !parent.IsZero():
			x := fail("", explain.DNSHost, domain, "%s leads to %s, but the domain %s is not registered: anyone can register it and answer for your name.", text(h.From), text(h.To), domain)
			x.Visible = after(f, replaced(f, h.From, rr.TypeCNAME, "data", h.TTL))
			all = append(all, seen(x, evidence))
		default:
			all = append(all, unknown(domain, "Whether %s, which %s leads to, is registered could not be found out.", domain, text(f.Name))...)
		}
	}
	return once(worst(all))
}

func notWildcard(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	if !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Result == iterate.Answer }) && len(f.Chain) == 0 {
		return nil // there is no answer that could be a wildcard's
	}
	switch w := f.Wildcard; {
	case w == nil || w.Class == iterate.Unknown || w.Class == "" || w.Class.Transport() || w.Class.Lame():
		return unknown(name, "Whether the answer for %s is a wildcard's could not be found out.", name)
	case w.Same && w.Class == iterate.Answer:
		x := fail("", explain.DNSHost, name, "%s has the same answer as %s, a name that nobody made: you see the wildcard, not a record of its own.", name, text(w.Asked))
		return []explain.Finding{seen(x, w.Evidence)}
	case w.Class == iterate.Answer:
		return pass(name, "%s has records of its own; a wildcard beside it has others.", name)
	}
	return pass(name, "%s has records of its own; there is no wildcard.", name)
}

func entExists(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	for _, n := range f.Notes {
		if n.Kind == iterate.NoteENT {
			denied, at, _ := strings.Cut(n.Subject, " at ")
			out = append(out, fail("", who(f, n.Zone, explain.DNSHost), strings.TrimSuffix(denied, "."), "%s, a server of %s, says that %s does not exist, although there are names below it.", at, text(n.Zone), strings.TrimSuffix(denied, ".")))
		}
	}
	known := false
	for _, o := range f.Outcomes {
		known = known || o.Result != iterate.Unknown
		plain := o.Plain == iterate.Answer || o.Plain == iterate.NoData
		if len(out) == 0 && plain && o.Result == iterate.NXDomain {
			out = append(out, fail("", explain.DNSHost, name, "%s is found when it is asked for as a whole, and not when it is asked for label by label.", name))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case loops(f):
		return nil
	case !known:
		return unknown(name, "%s could not be asked for label by label.", name)
	}
	return pass(name, "Asked for label by label and as a whole, %s is the same.", name)
}
