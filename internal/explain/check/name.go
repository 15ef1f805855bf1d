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

// undelegated reports whether the domain itself does not exist. REG01 and DEL01 report that.
func undelegated(f *explain.Facts) bool {
	if f.Domain.IsZero() { // a public suffix may have records without being a zone
		parent, _ := denied(f, f.Name)
		return !f.Name.IsZero() && f.ZoneAt(f.Name) == nil && !parent.IsZero() &&
			slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Result == iterate.NXDomain })
	}
	// A domain can be delegated although one server of the parent zone denied it, so both facts are needed.
	parent, _ := denied(f, f.Domain)
	return f.ZoneAt(f.Domain) == nil && !parent.IsZero()
}

// loops reports whether the aliases form a loop. NAM05 reports that.
func loops(f *explain.Facts) bool {
	return slices.ContainsFunc(f.Notes, func(n iterate.Note) bool { return n.Kind == iterate.NoteAliasLoop })
}

// noRecords reports whether it is known that the chain ends without records.
func noRecords(f *explain.Facts) bool {
	return len(f.Outcomes) > 0 && (loops(f) || !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return o.Result != iterate.NXDomain && o.Result != iterate.NoData
	}))
}

// typesText lists the queried types.
func typesText(outcomes []explain.Outcome) string {
	return words.Some(words.Each(outcomes, func(o explain.Outcome) string { return o.Type.String() }))
}

// nameExists is check NAM01: The name exists.
func nameExists(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	if f.Name.IsZero() || undelegated(f) || f.Kind == explain.Scan && (f.Name == f.Zone || !own(f, f.Zone)) {
		return nil // in a scan, DEL01 reports a domain without a zone
	}
	exists := func(o explain.Outcome) bool {
		return o.Result == iterate.Answer || o.Result == iterate.NoData || o.End != f.Name && !o.End.IsZero()
	}
	// One NXDOMAIN is enough: it holds for all types of the name (RFC 2308 §2.1).
	denied := func(o explain.Outcome) bool { return o.Result == iterate.NXDomain }
	switch {
	// A name with an alias or with records of any type exists.
	case len(f.Chain) > 0 || slices.ContainsFunc(f.Outcomes, exists):
		return pass(name, "%s exists.", name)
	case slices.ContainsFunc(f.Answers, func(a explain.Answer) bool {
		return a.Question.Name == f.Name && a.Class == iterate.Answer
	}):
		return pass(name, "%s exists on some servers; see NAM11.", name)
	case len(f.Outcomes) == 0 || !slices.ContainsFunc(f.Outcomes, denied):
		return unknown(name, "Whether %s exists could not be determined.", name)
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

// hint adds a similar name that exists to a finding about a name that does not.
func hint(f *explain.Facts, x explain.Finding) explain.Finding {
	if len(f.Near) == 0 {
		return x
	}
	n := f.Near[0]
	near, zone := text(n.Name), text(f.Zone)
	// Panels that append the domain to what the user types are the most frequent cause of a missing name.
	if n.How == explain.NearDoubled {
		x.Words += fmt.Sprintf(" But %s exists: the record was created with the domain in it twice.", near)
		x.Fix = fmt.Sprintf("In the record %s, enter only %q as the host: your DNS host adds %s to it.", near,
			strings.TrimSuffix(text(f.Name), "."+zone), zone)
	} else {
		x.Words += fmt.Sprintf(" The similar name %s exists.", near)
	}
	return seen(x, n.Evidence)
}

// typeExists is check NAM02: The name has records of the type.
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
			return nil // NAM01 and NAM06 report it
		default:
			open = append(open, o)
		}
	}
	// Many names work without AAAA records, but few work without A records.
	wanted := func(o explain.Outcome) bool {
		return len(with) == 0 || o.Type == rr.TypeA || slices.ContainsFunc(f.Expect, func(s explain.Set) bool {
			return s.Name == f.Name && s.Type == o.Type
		})
	}
	i := slices.IndexFunc(without, wanted)
	switch {
	case loops(f):
		return nil
	case len(f.Outcomes) == 0:
		return unknown(name, "The records of %s could not be determined.", name)
	case i >= 0 && len(open) == 0 && len(with) == 0 && !slices.ContainsFunc(without, func(o explain.Outcome) bool {
		return needed(f, o)
	}):
		x := noType(f, explain.Notice, without[i], "%s has no %s records, like most names.", where(f, without[i]),
			typesText(without))
		x.Fix = "Do nothing, unless a service that you use requires them."
		return []explain.Finding{x}
	case i >= 0 && len(open) == 0 && len(with) == 0:
		return []explain.Finding{noType(f, explain.Critical, without[i], "%s exists, but has no %s records.",
			where(f, without[i]), typesText(without))}
	case i >= 0 && len(open) == 0:
		return []explain.Finding{noType(f, explain.Error, without[i], "%s has no %s records, only %s records.",
			where(f, without[i]), without[i].Type, typesText(with))}
	case len(open) > 0:
		return unknown(name, "Whether %s has %s records could not be determined.", name, typesText(open))
	case len(without) > 0:
		return pass(name, "%s has %s records, and no %s records.", name, typesText(with), typesText(without))
	}
	return pass(name, "%s has %s records.", name, typesText(with))
}

// needed reports whether the lack of a type matters. Most names work without the types in the list.
func needed(f *explain.Facts, o explain.Outcome) bool {
	return !slices.Contains([]string{"CAA", "DS", "HTTPS", "SVCB", "TLSA"}, o.Type.String()) ||
		slices.ContainsFunc(f.Expect, func(s explain.Set) bool { return s.Name == f.Name && s.Type == o.Type })
}

// noType returns the finding for a name without records of a type.
func noType(f *explain.Facts, severity explain.Severity, o explain.Outcome, format string,
	args ...any) explain.Finding {
	actor := explain.DNSHost
	if o.End != f.Name {
		actor = explain.Target
	}
	x := fail(severity, actor, fmt.Sprintf("%s %s", text(f.Name), o.Type), format, args...)
	if f.Domain.IsZero() && o.End == f.Name { // the zone belongs to the registry: the user cannot add records
		x.Actor, x.Fix = explain.You,
			"Query a domain below it: public suffixes seldom have such records. They have NS and SOA records."
		return x
	}
	x.Visible = after(f, created(f, o.End, o.Zone))
	return x
}

// where names the name without records: the queried name, or the end of its aliases.
func where(f *explain.Facts, o explain.Outcome) string {
	if o.End == f.Name || o.End.IsZero() {
		return text(f.Name)
	}
	return fmt.Sprintf("%s, which %s leads to,", text(o.End), text(f.Name))
}

// aliasAlone is check NAM03: No name has a CNAME and other records. A resolver that has the CNAME in its cache answers
// every type with it (RFC 1034 §3.6.2); one that does not may find the other records. So the same lookup succeeds and
// fails in turn.
func aliasAlone(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	said := map[string]bool{}
	answered := false
	for _, a := range f.Answers {
		answered = answered || a.Class == iterate.Answer || a.Class == iterate.NoData
		i := slices.IndexFunc(a.Sets, func(s explain.Set) bool { return s.Type == rr.TypeCNAME && s.Name == a.Question.Name })
		if i < 0 || a.Subnet.IsValid() {
			continue
		}
		owner := a.Sets[i].Name
		beside, evidence := besides(f, a)
		x := fail("", actorFor(f, a.Zone, explain.DNSHost), text(owner), "")
		switch {
		case said[text(owner)], owner == a.Zone && owner == f.Name && f.Service != nil: // SVC23 reports it
			continue
		case owner == a.Zone:
			x.Severity = explain.Error // most lookups succeed
			x.Words = fmt.Sprintf("%s is the apex of its zone and has a CNAME, to %s: whether resolvers find mail servers "+
				"and nameservers of the domain depends on chance.", text(owner),
				strings.TrimSuffix(words.Some(a.Sets[i].Data), "."))
		case beside != "":
			x.Words = fmt.Sprintf("%s has a CNAME, to %s, and %s: which one resolvers find depends on chance.", text(owner),
				strings.TrimSuffix(words.Some(a.Sets[i].Data), "."), beside)
		default:
			continue
		}
		said[text(owner)] = true
		x.Visible = fixed(f, func(b explain.Answer) bool { return b.Question.Name == owner && b.Class == iterate.Answer })
		out = append(out, seen(seen(x, a.Evidence), evidence))
	}
	switch {
	case len(out) > 0:
		return out
	case !answered && noRecords(f) || undelegated(f):
		return nil
	case !answered:
		return unknown(name, "Whether %s has a CNAME and other records could not be determined.", name)
	}
	return pass(name, "No name has a CNAME and other records.")
}

// besides returns what else the same server has at the name of an alias.
func besides(f *explain.Facts, alias explain.Answer) (string, []int) {
	for _, a := range f.Answers {
		if a.Server != alias.Server || a.Zone != alias.Zone || a.Question.Name != alias.Question.Name ||
			a.Question.Type == rr.TypeDS {
			continue
		}
		other := slices.IndexFunc(a.Sets, func(s explain.Set) bool {
			return s.Name == a.Question.Name && s.Type != rr.TypeCNAME && s.Type == a.Question.Type
		})
		switch {
		case other >= 0:
			return fmt.Sprintf("also %s records", a.Sets[other].Type), a.Evidence
		// A server must return the CNAME for every other type (RFC 1034 §4.3.2).
		case a.Class == iterate.NoData && a.Question.Type != rr.TypeNS && a.Question.Type != rr.TypeSOA:
			return fmt.Sprintf("the server does not return it for %s queries", a.Question.Type), a.Evidence
		}
	}
	return "", nil
}

// hops returns the chain of aliases as text.
func hops(f *explain.Facts) string {
	parts := []string{text(f.Name)}
	for _, h := range f.Chain {
		parts = append(parts, fmt.Sprintf("%s (TTL %d)", text(h.To), h.TTL))
	}
	return strings.Join(parts, " → ")
}

// chainLength is check NAM04: The chain of aliases is short.
func chainLength(f *explain.Facts) []explain.Finding {
	name, n := text(f.Name), len(f.Chain)
	long := slices.ContainsFunc(f.Notes, func(n iterate.Note) bool { return n.Kind == iterate.NoteAliasLong })
	switch {
	case n == 0 && len(f.Outcomes) == 0:
		return unknown(name, "The aliases of %s could not be determined.", name)
	case n == 0:
		return pass(name, "%s is not an alias.", name)
	case loops(f):
		return nil // NAM05 reports it
	// No RFC sets a limit. Resolvers give up after about eleven aliases, and some after eight.
	case n > 8 || long:
		return rerouted(f, f.Chain[:1],
			fail(explain.Error, explain.DNSHost, name, "%s resolves through %d aliases, which not all resolvers follow: %s.",
				name, n, hops(f)))
	// Each alias in another zone needs further lookups, and one more DNS host that must work.
	case n > 4:
		return rerouted(f, f.Chain[:1],
			fail(explain.Warning, explain.DNSHost, name, "%s resolves through %d aliases: %s.", name, n, hops(f)))
	}
	least := slices.MinFunc(f.Chain, func(a, b explain.Hop) int { return int(a.TTL) - int(b.TTL) })
	return pass(name, "%s resolves through %s: %s. The smallest TTL of the chain is %s: resolvers follow it again "+
		"that often.", name, words.Count(n, "alias", "aliases"), hops(f), words.Seconds(least.TTL))
}

// rerouted sets when everyone sees the fix of a finding that ends when one of these aliases gets another target.
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

// noLoop is check NAM05: The aliases do not form a loop. Resolvers return SERVFAIL then, or the aliases without an
// address.
func noLoop(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	for _, n := range f.Notes {
		if n.Kind == iterate.NoteAliasLoop {
			from, to, _ := strings.Cut(n.Subject, " to ")
			out = append(out, rerouted(f, f.Chain,
				fail("", actorFor(f, n.Zone, explain.DNSHost), name,
					"%s never resolves to an address: its aliases form a loop, from %s back to %s.", name,
					strings.TrimSuffix(from, "."), strings.TrimSuffix(to, ".")))...)
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(f.Outcomes) == 0 || len(f.Unfinished) > 0 && !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return o.Result != iterate.Unknown
	}):
		return unknown(name, "The aliases of %s could not be followed to their end.", name)
	case len(f.Chain) == 0:
		return nil
	}
	return pass(name, "The aliases of %s do not form a loop.", name)
}

// notDangling is check NAM06: The aliases lead to a name that exists. It is more than an outage: if the target is at a
// provider where customers choose names, a stranger can create it and answer for the hostname.
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
		return unknown(name, "Whether %s, which %s leads to, exists could not be determined.", text(last.To), name)
	}
	x := fail("", explain.DNSHost, name, "%s leads to %s, which does not exist.", name, text(end.End))
	x.Visible = after(f, replaced(f, last.From, rr.TypeCNAME, "data", last.TTL))
	return []explain.Finding{x}
}

// targetRegistered is check NAM08: The domains that the aliases lead to are registered.
func targetRegistered(f *explain.Facts) []explain.Finding {
	var all []explain.Finding
	for _, h := range f.Chain {
		// The domain of the user itself has its own checks, REG01 and REG02.
		if h.Domain.IsZero() || h.Domain == f.Domain {
			continue
		}
		domain := text(h.Domain)
		parent, evidence := denied(f, h.Domain)
		r, ok := registrationOf(f, h.Domain)
		switch {
		// A delegated domain is registered, whatever the registry says.
		case f.ZoneAt(h.Domain) != nil || ok && r.State == registry.Registered:
			all = append(all, pass(domain, "%s, which %s leads to, is registered.", domain, text(f.Name))...)
		// Both the registry and the parent zone must say so: a false alarm of a takeover costs trust.
		case ok && r.State == registry.Free && !parent.IsZero():
			x := fail("", explain.DNSHost, domain,
				"%s leads to %s, but the domain %s is not registered: anyone can register it and answer for your name.",
				text(h.From), text(h.To), domain)
			x.Visible = after(f, replaced(f, h.From, rr.TypeCNAME, "data", h.TTL))
			all = append(all, seen(x, evidence))
		default:
			all = append(all, unknown(domain, "Whether %s, which %s leads to, is registered could not be determined.", domain,
				text(f.Name))...)
		}
	}
	return once(worst(all))
}

// notWildcard is check NAM09: The answer does not come from a wildcard. That may be intended. It matters to a person
// who deletes a record and still gets an answer, and it means that mistyped names exist, too.
func notWildcard(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	if !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Result == iterate.Answer }) &&
		len(f.Chain) == 0 {
		return nil // there is no answer that could come from a wildcard
	}
	switch w := f.Wildcard; {
	case w == nil || w.Class == iterate.Unknown || w.Class == "" || w.Class.Transport() || w.Class.Lame():
		return unknown(name, "Whether the answer for %s comes from a wildcard could not be determined.", name)
	case w.Same && w.Class == iterate.Answer:
		x := fail("", explain.DNSHost, name,
			"%s has the same answer as the random name %s: it comes from a wildcard, not from its own record.", name,
			text(w.Asked))
		return []explain.Finding{seen(x, w.Evidence)}
	case w.Class == iterate.Answer:
		return pass(name, "%s has its own records; a wildcard at the same level has others.", name)
	}
	return pass(name, "%s has its own records; there is no wildcard.", name)
}

// entExists is check NAM10: Empty non-terminal names exist. NXDOMAIN says that no name below exists either (RFC 8020).
// A resolver that asks label by label (RFC 9156) therefore stops there and never finds the names below, while others
// do.
func entExists(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	for _, n := range f.Notes {
		if n.Kind == iterate.NoteENT {
			denied, at, _ := strings.Cut(n.Subject, " at ")
			out = append(out, fail("", actorFor(f, n.Zone, explain.DNSHost), strings.TrimSuffix(denied, "."),
				"%s, a server of %s, says that %s does not exist, although there are names below it.", at, text(n.Zone),
				strings.TrimSuffix(denied, ".")))
		}
	}
	// The iterator notes servers that deny an empty non-terminal. Without a note, a different result with and without
	// QNAME minimisation shows the same fault.
	known := false
	for _, o := range f.Outcomes {
		known = known || o.Result != iterate.Unknown
		plain := o.Plain == iterate.Answer || o.Plain == iterate.NoData
		if len(out) == 0 && plain && o.Result == iterate.NXDomain {
			out = append(out, fail("", explain.DNSHost, name,
				"%s exists when it is queried as a whole, but not when it is queried label by label.", name))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case loops(f):
		return nil
	case !known:
		return unknown(name, "%s could not be queried label by label.", name)
	}
	return pass(name, "%s has the same answer when it is queried label by label and as a whole.", name)
}
