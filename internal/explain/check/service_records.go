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

// recordsPresent is check SVC20.
func recordsPresent(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if out := unknownPointing(f, p); out != nil || f.Service == nil {
		return out
	}
	if p.byName || len(p.right)+len(p.others) > 0 || len(f.Chain) > 0 {
		return pass(f.Service.Host, "%s has a record.", f.Service.Host)
	}
	said := fmt.Sprintf("%s has no record that leads to the service.", f.Service.Host)
	if d, ok := diagnosis(f); ok {
		said += " " + d.Words()
	}
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, f.Service.Host, "%s", said))}
}

// recordsRight is check SVC21.
func recordsRight(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if out := unknownPointing(f, p); out != nil || f.Service == nil {
		return out
	}
	host := f.Service.Host
	switch {
	case p.byName && len(p.others) == 0, len(p.right) > 0:
		return pass(host, "%s leads to the service.", host)
	case p.byName: // the target has other addresses for other clients
		return pass(host, "%s is an alias for the service.", host)
	case len(p.others) == 0 && len(f.Chain) == 0:
		return nil // SVC20
	}
	said := fmt.Sprintf("%s does not lead to the service: it leads to %s.", host, leadsTo(f, p))
	if d, ok := diagnosis(f); ok {
		said += " " + d.Words()
	}
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, host, "%s", said))}
}

// leadsTo returns where the hostname leads, in words.
func leadsTo(f *explain.Facts, p pointing) string {
	if n := len(f.Chain); n > 0 {
		return text(f.Chain[n-1].To)
	}
	return words.Some(words.Each(p.others, netip.Addr.String))
}

// noOldRecords is check SVC25. It also finds an AAAA record that was forgotten when the A record was changed.
func noOldRecords(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if f.Service == nil || !p.known || len(p.right) == 0 {
		return nil
	}
	host := f.Service.Host
	if len(p.others) == 0 {
		return pass(host, "All addresses of %s are those of the service.", host)
	}
	all := func(addrs []netip.Addr, six bool) bool {
		return !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Is6() != six })
	}
	others := words.Some(words.Each(p.others, netip.Addr.String))
	said := fmt.Sprintf(
		"%d of %d addresses of %s are not those of the service: %s. About %d of 100 visitors reach another server.",
		len(p.others), len(p.others)+len(p.right), host, others, 100*len(p.others)/(len(p.others)+len(p.right)))
	switch {
	case all(p.right, false) && all(p.others, true):
		said = fmt.Sprintf("Over IPv4 %s leads to the service, but over IPv6 it leads to %s.", host, others)
	case all(p.right, true) && all(p.others, false):
		said = fmt.Sprintf("Over IPv6 %s leads to the service, but over IPv4 it leads to %s.", host, others)
	}
	return []explain.Finding{withFix(f, fail("", explain.DNSHost, host, "%s", said))}
}

// diagnosis returns the mistake that made the records of the hostname differ.
func diagnosis(f *explain.Facts) (service.Diagnosis, bool) {
	live := explain.LiveRecords(f)
	for _, want := range explain.ExpectedRecords(f) {
		if d, ok := service.Diagnose(want, f.Zone, live); ok {
			return d, true
		}
	}
	return service.Diagnosis{}, false
}

// withFix adds the records to enter, and when everyone sees them.
func withFix(f *explain.Facts, x explain.Finding) explain.Finding {
	want := explain.ExpectedRecords(f)
	if len(want) == 0 {
		return x
	}
	x.Fix = Entry(f, want)
	x.Visible = visibleRecords(f)
	return x
}

// Entry returns the records to enter at the DNS host, as its form wants them.
func Entry(f *explain.Facts, want []service.Record) string {
	lines := words.Each(want, func(r service.Record) string {
		return fmt.Sprintf("host %s, type %s, value %s, TTL %d", service.HostField(r.Owner, f.Zone), r.Type,
			strings.Join(r.Data, " and "), r.TTL)
	})
	said := fmt.Sprintf("Enter at the DNS host of %s: %s.", text(f.Zone), strings.Join(lines, "; "))
	if f.Name == f.Zone && f.Service != nil && len(f.Service.Targets.Hosts) > 0 {
		said += fmt.Sprintf(
			" A CNAME is not possible at the apex. If the DNS host has ALIAS or ANAME, use it with the value %s "+
				"instead: the addresses may change.", text(f.Service.Targets.Hosts[0]))
	}
	return said
}

// visibleRecords returns when everyone sees records that are entered now.
func visibleRecords(f *explain.Facts) time.Time {
	if f.Zone.IsZero() {
		return time.Time{}
	}
	return fixed(f, func(a explain.Answer) bool { return a.Question.Name == f.Name })
}

// noPrivateAddress is check SVC31.
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

// targetResolves is check SVC32.
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

// ownershipProved is check OWN01.
func ownershipProved(f *explain.Facts) []explain.Finding {
	if f.Service == nil || f.Service.Proof == nil {
		return nil
	}
	want := *f.Service.Proof
	subject := text(want.Owner) + " TXT"
	l, asked := f.Service.Lookup(want.Owner, want.Type)
	if !asked || !l.Result.Usable() {
		return unknown(subject, "%s could not be looked up.", subject)
	}
	if slices.ContainsFunc(l.Data, func(d string) bool { return service.SameValue(want.Type, d, want.Data[0]) }) {
		return pass(subject, "The ownership is proved by %s.", subject)
	}
	said := fmt.Sprintf("%s does not have the value that proves the ownership.", subject)
	if d, ok := service.Diagnose(want, f.Zone, explain.LiveRecords(f)); ok {
		said += " " + d.Words()
	}
	x := seen(fail("", explain.DNSHost, subject, "%s", said), l.Evidence)
	x.Fix = Entry(f, []service.Record{want})
	return []explain.Finding{x}
}

// caaReadable is check TLS07.
func caaReadable(f *explain.Facts) []explain.Finding {
	if f.Service == nil {
		return nil
	}
	asked := only(f.Service.Lookups, func(l explain.Lookup) bool { return l.Question.Type == typeCAA })
	if len(asked) == 0 {
		return nil
	}
	last := asked[len(asked)-1]
	if last.Result.Usable() {
		return pass(text(last.Question.Name), "The CAA records can be read.")
	}
	var evidence []int
	for i, e := range f.Exchanges {
		switch {
		case e.Question != last.Question:
		case e.Class == iterate.LameServfail || e.Class == iterate.LameRefused || e.Class == iterate.NotImp:
			evidence = append(evidence, i)
		default: // other servers may answer
			return unknown(text(last.Question.Name), "The CAA records could not be looked up.")
		}
	}
	if len(evidence) == 0 {
		return unknown(text(last.Question.Name), "The CAA records could not be looked up.")
	}
	return []explain.Finding{seen(fail("", explain.DNSHost, text(last.Question.Name),
		"The servers of the zone do not answer the question for CAA at %s.", text(last.Question.Name)), evidence)}
}
