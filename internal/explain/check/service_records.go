package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// pointing compares where a hostname leads with where it must lead.
type pointing struct {
	known         bool // both sides are known
	byName        bool // an alias leads to the target
	right, others []netip.Addr
}

// pointingOf returns where the hostname leads.
func pointingOf(f *explain.Facts) (p pointing) {
	if f.Service == nil || f.Service.Targets.IsZero() {
		return p
	}
	resolved, ok := f.Service.Resolved()
	p.known = ok
	targets := slices.Concat(f.Service.Targets.Addrs, resolved)
	for _, h := range f.Chain {
		p.byName = p.byName || slices.Contains(f.Service.Targets.Hosts, h.To)
	}
	for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA} {
		o, ok := outcome(f, t)
		if !ok || o.Result == iterate.Unknown {
			// An alias applies to both families, so it decides even if one of them could not be looked up.
			p.known = p.known && p.byName
			continue
		}
		for _, a := range addressesOf(o) {
			if slices.Contains(targets, a) {
				p.right = append(p.right, a)
			} else {
				p.others = append(p.others, a)
			}
		}
	}
	return p
}

// addressesOf returns the addresses of an outcome.
func addressesOf(o explain.Outcome) (out []netip.Addr) {
	for _, s := range o.Sets {
		for _, d := range s.Data {
			if a, err := netip.ParseAddr(d); err == nil && s.Type == o.Type {
				out = append(out, a)
			}
		}
	}
	return out
}

// unknownPointing returns the finding for a hostname that could not be compared, or nil.
func unknownPointing(f *explain.Facts, p pointing) []explain.Finding {
	switch {
	case f.Service == nil:
		return nil
	case f.Service.Targets.IsZero():
		return unknown(f.Service.Host,
			"It is not known what %s must point to: the Gateway has no address, and no --target is given.",
			f.Service.Host)
	case !p.known:
		return unknown(f.Service.Host, "The records of %s, or of its target, could not be looked up.", f.Service.Host)
	}
	return nil
}

// recordsPresent is check SVC20. A record at another name, or of another type, is reported by SVC21 and SVC22. If a
// mistake explains the missing record, that finding is more useful than this one.
func recordsPresent(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if out := unknownPointing(f, p); out != nil || f.Service == nil {
		return out
	}
	host := f.Service.Host
	if !p.missing(f) {
		return pass(host, "%s has a record.", host)
	}
	if _, _, ok := diagnosis(f); ok {
		return nil
	}
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, host, "%s has no record that leads to the service.",
		host))}
}

// missing reports whether the hostname has neither addresses nor an alias.
func (p pointing) missing(f *explain.Facts) bool {
	return !p.byName && len(p.right)+len(p.others)+len(f.Chain) == 0
}

// recordsRight is check SVC21. SVC27 and SVC28 report hostnames that lead to another service or to a proxy.
func recordsRight(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if out := unknownPointing(f, p); out != nil || f.Service == nil {
		return out
	}
	host := f.Service.Host
	d, want, found := diagnosis(f)
	switch {
	// One right address is enough: SVC25 and SVC26 report the others.
	case p.byName && len(p.others) == 0, len(p.right) > 0:
		return pass(host, "%s leads to the service.", host)
	case p.byName: // the target has other addresses for other clients
		return pass(host, "%s is an alias for the service.", host)
	case p.missing(f) && (!found || !d.SameOwner(want)):
		return nil // SVC20 or SVC22
	case p.missing(f):
		return []explain.Finding{withFix(f, fail("", explain.DNSHost, host,
			"%s has no record that leads to the service. %s", host, d.Words()))}
	case proxyOf(f, p) != "" || otherService(f, p) != "":
		return nil
	}
	said := fmt.Sprintf("%s does not lead to the service: it leads to %s.", host, leadsTo(f, p))
	if found {
		said += " " + d.Words()
	}
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, host, "%s", said))}
}

// recordsHere is check SVC22. Forms of DNS hosts append the zone to what is entered, so a full name often ends up with
// the zone twice.
func recordsHere(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if f.Service == nil || !p.known {
		return nil
	}
	host := f.Service.Host
	d, want, found := diagnosis(f)
	switch {
	case !p.missing(f):
		return pass(host, "The record of %s is at the right name.", host)
	case !found || d.SameOwner(want):
		return nil // SVC20 or SVC21
	}
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, host, "%s has no record. %s", host, d.Words()))}
}

// apexRecords is check SVC23. A CNAME allows no other records beside it (RFC 1034 §3.6.2), and every apex has SOA and
// NS records. Some DNS hosts accept it all the same; which records resolvers then see depends on what they have
// cached.
func apexRecords(f *explain.Facts) []explain.Finding {
	if f.Service == nil || f.Zone.IsZero() || f.Name != f.Zone {
		return nil
	}
	host, p := f.Service.Host, pointingOf(f)
	for _, a := range f.Answers {
		if _, ok := explain.Find(a.Sets, f.Name, rr.TypeCNAME); ok && a.Question.Name == f.Name {
			return []explain.Finding{seen(withFix(f, fail("", explain.DNSHost, host,
				"%s is the apex of its zone and has a CNAME, which hides its mail servers and nameservers.", host)), a.Evidence)}
		}
	}
	switch hosts := f.Service.Targets.Hosts; {
	case len(hosts) == 0:
		return pass(host, "%s has addresses, and needs no alias.", host)
	case explain.CanAlias(f):
		return pass(host, "%s is an apex, and its DNS host has the record type ALIAS.", host)
	case len(p.right) == 0:
		return nil // SVC20 or SVC21
	default:
		x := fail(explain.Notice, explain.DNSHost, host, "%s is the apex of its zone and has copies of the addresses of %s: "+
			"it leads elsewhere as soon as these change.", host, text(hosts[0]))
		x.Fix = fmt.Sprintf("If the DNS host has ALIAS or ANAME, use it with the value %s. Otherwise check the addresses "+
			"regularly.", text(hosts[0]))
		return []explain.Finding{x}
	}
}

// leadsTo returns where the hostname leads, in words.
func leadsTo(f *explain.Facts, p pointing) string {
	if n := len(f.Chain); n > 0 {
		return text(f.Chain[n-1].To)
	}
	return words.Some(words.Each(p.others, netip.Addr.String))
}

// split returns the family over which the hostname leads to the service, and the one over which it does not, or "".
// Mixed families are not split: then single records are wrong, and SVC25 reports them.
func (p pointing) split() (right, wrong string) {
	all := func(addrs []netip.Addr, six bool) bool {
		return len(addrs) > 0 && !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Is6() != six })
	}
	switch {
	case all(p.right, false) && all(p.others, true):
		return "IPv4", "IPv6"
	case all(p.right, true) && all(p.others, false):
		return "IPv6", "IPv4"
	}
	return "", ""
}

// noOldRecords is check SVC25. SVC26 reports a whole family that leads elsewhere.
func noOldRecords(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if f.Service == nil || !p.known || len(p.right) == 0 {
		return nil
	}
	host := f.Service.Host
	_, wrong := p.split()
	switch {
	case len(p.others) == 0:
		return pass(host, "All addresses of %s are those of the service.", host)
	case wrong != "":
		return nil
	}
	// Most resolvers rotate the records of a set, so visitors spread about evenly.
	total := len(p.others) + len(p.right)
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, host,
		"%d of %d addresses of %s are not those of the service: %s. About %d of 100 visitors reach another server.",
		len(p.others), total, host, words.Some(words.Each(p.others, netip.Addr.String)), 100*len(p.others)/total))}
}

// familiesLead is check SVC26: often the AAAA record was forgotten when the A record was changed.
func familiesLead(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if f.Service == nil || !p.known || len(p.right) == 0 {
		return nil
	}
	host := f.Service.Host
	right, wrong := p.split()
	if wrong == "" {
		return pass(host, "%s does not lead elsewhere over another protocol.", host)
	}
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, host,
		"Over %s %s leads to the service, but over %s it leads to %s.", right, host, wrong,
		words.Some(words.Each(p.others, netip.Addr.String))))}
}

// diagnosis returns the mistake that made the records of the hostname differ, and the record that was wanted. If no
// known mistake explains the difference, nothing is claimed.
func diagnosis(f *explain.Facts) (service.Diagnosis, service.Record, bool) {
	live := explain.LiveRecords(f)
	for _, want := range explain.ExpectedRecords(f) {
		if d, ok := service.Diagnose(want, f.Zone, live); ok {
			return d, want, true
		}
	}
	return service.Diagnosis{}, service.Record{}, false
}

// withFix adds the records to enter, and when everyone sees them.
func withFix(f *explain.Facts, x explain.Finding) explain.Finding {
	want := explain.EntryRecords(f)
	if len(want) == 0 {
		return x
	}
	x.Fix = Entry(f, want)
	x.Visible = visibleRecords(f)
	return x
}

// Entry returns the records to enter at the DNS host, as its form wants them. It is complete, so that a person can
// copy it without knowing DNS: the host field is relative to the zone, and the values are typed as forms accept them.
func Entry(f *explain.Facts, want []service.Record) string {
	lines := words.Each(want, func(r service.Record) string {
		values := words.Each(r.Data, func(d string) string { return service.Typed(r.Type, d) })
		return fmt.Sprintf("host %s, type %s, value %s, TTL %d", service.HostField(r.Owner, f.Zone), r.Type,
			words.List(values), r.TTL)
	})
	said := fmt.Sprintf("%sEnter at the DNS host of %s: %s.", deletions(f, want), text(f.Zone), strings.Join(lines, "; "))
	apex := slices.ContainsFunc(want, func(r service.Record) bool {
		return r.Owner == f.Zone && (r.Type == rr.TypeA || r.Type == rr.TypeAAAA)
	})
	if apex && f.Service != nil && len(f.Service.Targets.Hosts) > 0 {
		said += fmt.Sprintf(
			" A CNAME is not possible at the apex. If the DNS host has ALIAS or ANAME, use it with the value %s "+
				"instead: the addresses may change.", text(f.Service.Targets.Hosts[0]))
	}
	return said
}

// deletions says which records must be deleted first: other addresses, and records beside a CNAME (RFC 1034 §3.6.2).
// TXT records of other services stay.
func deletions(f *explain.Facts, want []service.Record) string {
	if f.Wildcard != nil && f.Wildcard.Same {
		return "" // the records are those of a wildcard, and a new record comes before it
	}
	owner, kind := want[0].Owner, want[0].Type
	var all []string
	for _, l := range explain.LiveRecords(f) {
		address := l.Type == rr.TypeA || l.Type == rr.TypeAAAA
		if l.Owner != owner || kind != rr.TypeCNAME && l.Type != rr.TypeCNAME && (kind == rr.TypeTXT || !address) {
			continue
		}
		for _, d := range l.Data {
			same := func(w string) bool { return service.SameValue(l.Type, w, d) }
			if !slices.ContainsFunc(want, func(r service.Record) bool {
				return r.Type == l.Type && slices.ContainsFunc(r.Data, same)
			}) {
				all = append(all, fmt.Sprintf("%s %s", l.Type, d))
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("Delete these records of %s: %s. ", text(owner), strings.TrimSuffix(words.Some(all), "."))
}

// visibleRecords returns when everyone sees records that are entered now. The TTLs of the targets of an alias do not
// count: the new record replaces the alias itself.
func visibleRecords(f *explain.Facts) time.Time {
	if f.Zone.IsZero() {
		return time.Time{}
	}
	return fixed(f, func(a explain.Answer) bool { return a.Question.Name == f.Name })
}

// visibleProof returns when everyone sees the TXT record of the proof, if it is entered now.
func visibleProof(f *explain.Facts) time.Time { return fixedIn(f, f.Service.Records) }

// noPrivateAddress is check SVC31. Inside a private network such addresses are right, and no finding is made.
func noPrivateAddress(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil || f.Vantage.Private {
		return nil
	}
	host, table := f.Service.Host, specialaddr.Table{NAT64: f.Vantage.NAT64}
	for _, o := range f.Outcomes {
		for _, a := range addressesOf(o) {
			if c := table.Classes(a) & specialaddr.Special; c != 0 {
				out = append(out, fail("", explain.DNSHost, host, "%s has the address %s, which is %s.", host, a, c))
			} else {
				out = append(out, pass(host, "%s is a public address.", a)...)
			}
		}
	}
	return out
}

// targetResolves is check SVC32. The zone of the hostname is right in that case: only the owner of the target can
// repair it.
func targetResolves(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil {
		return nil
	}
	for _, host := range f.Service.Targets.Hosts {
		a, asked := f.Service.Lookup(host, rr.TypeA)
		aaaa, _ := f.Service.Lookup(host, rr.TypeAAAA)
		switch {
		case !asked || !a.Result.Usable() || !aaaa.Result.Usable():
			out = append(out, unknown(text(host), "The addresses of %s could not be looked up.", text(host))...)
		case len(a.Data)+len(aaaa.Data) == 0:
			out = append(out, seen(fail("", explain.Target, text(host), "%s, to which the hostname must point, has no address.",
				text(host)), slices.Concat(a.Evidence, aaaa.Evidence)))
		default:
			out = append(out, pass(text(host), "%s has an address.", text(host))...)
		}
	}
	return out
}
