package check

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/mailtext"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// spfRecords returns the SPF records of the zone.
func spfRecords(f *explain.Facts) (l explain.Lookup, all []string, unclear []explain.Finding) {
	l, unclear, ok := atZone(f, f.Zone, rr.TypeTXT)
	if !ok {
		return l, nil, unclear
	}
	return l, only(mailtext.Texts(l.Data), mailtext.IsSPF), nil
}

// oneSPF is check MAI03: The domain has at most one SPF record. RFC 7208 §4.5 makes several records a permanent error,
// so receivers must not choose one of them.
func oneSPF(f *explain.Facts) []explain.Finding {
	l, all, unclear := spfRecords(f)
	zone := text(f.Zone)
	switch len(all) {
	// No SPF record is not a mistake of the record: MAI07 reports it for domains that receive mail.
	case 0:
		return unclear
	case 1:
		return pass(zone, "%s has one SPF record.", zone)
	}
	return []explain.Finding{wrong(f, "", l, "%s has %d SPF records, so receivers use none of them.", zone, len(all))}
}

// spfSyntax is check MAI04: The SPF record is valid.
func spfSyntax(f *explain.Facts) (out []explain.Finding) {
	l, all, unclear := spfRecords(f)
	zone := text(f.Zone)
	// "v=spf1;" and "spf1" are frequent mistakes. Receivers ignore such a text silently (RFC 7208 §4.5).
	if near, ok := find(mailtext.Texts(l.Data), mailtext.NearSPF); ok && unclear == nil {
		out = append(out, wrong(f, "", l, "The text %q at %s does not begin with \"v=spf1\" and a space, so it is no SPF "+
			"record.", short(near), zone))
	}
	for _, t := range all {
		record, err := mailtext.ParseSPF(t)
		switch {
		case err != nil:
			out = append(out, wrong(f, "", l, "The SPF record of %s is not valid: %s.", zone, reason(err)))
		// RFC 7208 §5.5 says that "ptr" should not be published. The record still works, so this is a notice.
		case slices.ContainsFunc(record.Terms, func(t mailtext.Term) bool { return t.Name == "ptr" }):
			out = append(out, wrong(f, explain.Notice, l, "The SPF record of %s uses \"ptr\", which is deprecated.", zone))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(all) == 0:
		return unclear
	}
	return pass(zone, "The SPF record of %s is valid.", zone)
}

// onlySPF returns the SPF record of the zone, if there is exactly one and it is valid.
func onlySPF(f *explain.Facts) (l explain.Lookup, record mailtext.SPF, unclear []explain.Finding, ok bool) {
	l, all, unclear := spfRecords(f)
	// MAI03 and MAI04 report several records and a wrong one. The other checks of SPF then have nothing to add.
	if len(all) != 1 {
		return l, record, unclear, false
	}
	record, err := mailtext.ParseSPF(all[0])
	return l, record, nil, err == nil
}

// spfLookups is check MAI05: The SPF record stays within the limits of lookups.
func spfLookups(f *explain.Facts) (out []explain.Finding) {
	l, record, unclear, ok := onlySPF(f)
	if !ok {
		return unclear
	}
	zone := text(f.Zone)
	evidence := slices.Clone(l.Evidence)
	total := mailtext.Count(f.Zone.String(), record, func(domain string) ([]string, error) {
		n, err := dnsname.Parse(domain)
		if err != nil {
			return nil, nil // such a name cannot exist
		}
		included, ok := lookup(f, n, rr.TypeTXT)
		if !ok || !included.Result.Usable() {
			return nil, mailtext.ErrUnknown
		}
		evidence = append(evidence, included.Evidence...)
		return mailtext.Texts(included.Data), nil
	})
	// RFC 7208 §4.6.4: more than ten lookups are a permanent error. Each include counts, with everything that it includes.
	if total.Lookups > mailtext.MaxLookups {
		x := wrong(f, "", l, "The SPF record of %s needs at least %d lookups; receivers stop after %d.", zone, total.Lookups,
			mailtext.MaxLookups)
		out = append(out, seen(x, evidence))
	}
	if len(total.Broken) > 0 {
		x := wrong(f, "", l, "The SPF record of %s does not work: %s.", zone,
			cut(strings.Join(total.Broken, "; "), 400))
		out = append(out, seen(x, evidence))
	}
	// RFC 7208 §4.6.4 recommends a limit of two void lookups. Not all receivers have it, so this is a warning.
	if void, ids := voidHosts(f, total.Terms); len(void) > mailtext.MaxVoid {
		x := wrong(f, explain.Warning, l,
			"The SPF record of %s names %s, which have no records; receivers stop after %d such lookups.", zone,
			words.Some(void), mailtext.MaxVoid)
		out = append(out, seen(x, ids))
	}
	switch {
	case len(out) > 0:
		return out
	case len(total.Unknown) > 0:
		return unknown(zone, "How many lookups the SPF record of %s needs is not known, because of %s.", zone,
			words.Some(words.Each(total.Unknown, short)))
	}
	return pass(zone, "The SPF record of %s needs %s of at most %d.", zone,
		words.Count(total.Lookups, "lookup", "lookups"), mailtext.MaxLookups)
}

// voidHosts returns the names in the terms "a" and "mx" that have no records.
func voidHosts(f *explain.Facts, terms []mailtext.Term) (out []string, evidence []int) {
	none := func(l explain.Lookup, ok bool) bool {
		return ok && (l.Result == iterate.NXDomain || l.Result == iterate.NoData)
	}
	for _, q := range mailtext.Hosts(terms) {
		l, ok := lookup(f, q.Name, q.Type)
		// A receiver asks for A or AAAA, depending on how the mail arrived. A name is void only if it has neither.
		other, second := lookup(f, q.Name, rr.TypeAAAA)
		if none(l, ok) && (q.Type == rr.TypeMX || l.Result == iterate.NXDomain || none(other, second)) {
			out, evidence = append(out, text(q.Name)), append(append(evidence, l.Evidence...), other.Evidence...)
		}
	}
	return out, evidence
}

// spfOpen is check MAI06: The SPF record does not allow every sender. One that does is worse than none: forged mail
// passes SPF.
func spfOpen(f *explain.Facts) []explain.Finding {
	l, record, unclear, ok := onlySPF(f)
	if !ok {
		return unclear
	}
	zone := text(f.Zone)
	if term := record.OpenTo(); term != "" {
		return []explain.Finding{wrong(f, "", l, "The SPF record of %s allows every host to send mail in its name: %q.", zone,
			short(term))}
	}
	return pass(zone, "The SPF record of %s does not allow every host.", zone)
}
