package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/rr"
)

// proofSeverity returns the severity of a proof that is not complete. It is a notice if another proof is complete, or
// if OWN05 says what follows from it.
func proofSeverity(f *explain.Facts) explain.Severity {
	if explain.OwnershipOf(f).Verified || verifiedBefore(f) {
		return explain.Notice
	}
	return ""
}

// verifiedBefore reports whether an earlier check found a proof.
func verifiedBefore(f *explain.Facts) bool {
	return f.Service.Ownership != nil && !f.Service.Ownership.Seen.IsZero()
}

// recordProblem is why the TXT record does not prove the ownership.
type recordProblem int

// The problems, one for each of the checks OWN01, OWN02 and OWN03.
const (
	recordMissing recordProblem = iota
	recordDiffers
	recordOld
)

// recordProof is the state of the TXT record. The checks OWN01 to OWN03 share it, so that one wrong record leads to
// one finding.
type recordProof struct {
	fact    explain.Fact
	problem recordProblem
	value   string // the value that differs or is old
	slip    service.Diagnosis
	known   bool // slip is set
	some    bool // some servers have the record
}

// recordProofOf returns the state of the TXT record. ok is false if no record is asked for.
func recordProofOf(f *explain.Facts) (p recordProof, ok bool) {
	if f.Service == nil || f.Service.Proof == nil {
		return p, false
	}
	fact, with, _ := explain.ProvedByRecord(f)
	p.fact, p.some = fact, len(with) > 0
	want := *f.Service.Proof
	values := explain.ProofValues(f)
	if fact == explain.No && !p.some {
		live := append([]service.Live{{Owner: want.Owner, Type: want.Type, Data: values}}, explain.LiveRecords(f)...)
		if len(values) == 0 {
			live = live[1:]
		}
		p.slip, p.known = service.Diagnose(want, f.Zone, live)
		// A mistyped value is not an old one, though both have the same form: the fix is another.
		if p.known && p.slip.SameOwner(want) && p.slip.At.Type == want.Type {
			p.problem, p.value = recordDiffers, p.slip.Data
			return p, true
		}
	}
	if i := slices.IndexFunc(values, func(d string) bool {
		return !service.SameValue(want.Type, d, want.Data[0]) && service.SameForm(plain(want.Data[0]), plain(d))
	}); i >= 0 && (fact == explain.Yes || !p.some) {
		p.problem, p.value = recordOld, values[i]
	}
	return p, true
}

// plain returns the text of a TXT record.
func plain(data string) string { return service.Text(rr.TypeTXT, data) }

// entered returns a finding about the TXT record with what to enter.
func entered(f *explain.Facts, format string, args ...any) []explain.Finding {
	x := fail(proofSeverity(f), explain.DNSHost, text(f.Service.Proof.Owner)+" TXT", format, args...)
	x.Fix = Entry(f, []service.Record{*f.Service.Proof})
	x.Visible = visibleProof(f)
	for _, a := range f.Service.Records {
		x.Evidence = append(x.Evidence, a.Evidence...)
	}
	return []explain.Finding{x}
}

// proofPresent is check OWN01. All servers that reply must agree: a server with an old version of the zone would prove
// what the owner has deleted.
func proofPresent(f *explain.Facts) []explain.Finding {
	p, ok := recordProofOf(f)
	if !ok {
		return nil
	}
	subject := text(f.Service.Proof.Owner) + " TXT"
	_, with, without := explain.ProvedByRecord(f)
	switch {
	case p.fact == explain.Unknown:
		return unknown(subject, "%s could not be looked up.", subject)
	case p.fact == explain.Yes:
		return pass(subject, "The ownership is proved by %s, at all %d servers that replied.", subject, len(with))
	case p.problem != recordMissing:
		return nil // OWN02 or OWN03
	case p.some:
		return entered(f, "%d of %d servers of the zone do not have %s: %s.", len(without), len(with)+len(without), subject,
			words.Some(servers(f, f.Service.Records[0].Zone, without)))
	case p.known:
		return entered(f, "%s does not exist. %s", subject, p.slip.Words())
	case len(explain.ProofValues(f)) > 0:
		return entered(f, "%s has other values than the one that proves the ownership.", subject)
	}
	return entered(f, "%s, which proves the ownership, does not exist.", subject)
}

// proofSame is check OWN02. The first difference is named, because nobody finds one wrong letter in a random value.
func proofSame(f *explain.Facts) []explain.Finding {
	p, ok := recordProofOf(f)
	switch {
	case !ok:
		return nil
	case p.fact == explain.Yes:
		return pass(text(f.Service.Proof.Owner)+" TXT", "The value is the one that proves the ownership.")
	case p.fact == explain.Unknown || p.problem != recordDiffers:
		return nil // OWN01
	}
	where := service.FirstDifference(plain(f.Service.Proof.Data[0]), plain(p.value))
	if p.slip.Slip == service.Split || where == "" {
		return entered(f, "%s", p.slip.Words())
	}
	return entered(f, "%s Compared with the wanted value, %s.", p.slip.Words(), where)
}

// proofCurrent is check OWN03. Beside the right value, an old token does no harm, but it may still prove the ownership
// to another service.
func proofCurrent(f *explain.Facts) []explain.Finding {
	p, ok := recordProofOf(f)
	subject := ""
	if ok {
		subject = text(f.Service.Proof.Owner) + " TXT"
	}
	switch {
	case !ok || p.fact == explain.Unknown:
		return nil
	case p.problem == recordOld && p.fact == explain.Yes:
		x := fail(explain.Notice, explain.DNSHost, subject, "%s has an older token beside the right one: %s.", subject,
			p.value)
		x.Fix = fmt.Sprintf("Delete the value %s, if no other service needs it.", p.value)
		return []explain.Finding{x}
	case p.problem == recordOld:
		return entered(f, "%s has another token of the same form, probably an older one: %s.", subject, p.value)
	case p.fact == explain.Yes:
		return pass(subject, "%s has no older token.", subject)
	}
	return nil // OWN01 or OWN02
}

// tokenServed is check OWN04. All addresses that reply must serve the text: otherwise the present user of an old
// address that is still in DNS could prove the ownership.
func tokenServed(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil || f.Service.Token == nil {
		return nil
	}
	t := f.Service.Token
	for _, c := range f.Service.Tokens {
		p, at := c.Page, c.Addr.String()
		if p == nil || p.Status == 0 {
			out = append(out, unknown(at, "%s could not be read from %s.", t.URL, at)...)
			continue
		}
		said := ""
		switch {
		// Some sites redirect to any address that a link names: with such a link, a stranger could prove the ownership.
		case p.Status/100 == 3:
			said = fmt.Sprintf("redirects to %s, and redirects are not followed", p.Location)
		case p.Status != 200:
			said = fmt.Sprintf("answers %d", p.Status)
		// The page is read only to this length, so a longer one cannot be compared.
		case len(p.Body) > service.MaxToken:
			said = fmt.Sprintf("returns more than %d bytes", service.MaxToken)
		case !t.Holds(p.Body):
			said = "returns another text: " + service.FirstDifference(t.Body, strings.TrimSpace(p.Body))
		default:
			out = append(out, pass(at, "%s returns the text that proves the ownership.", at)...)
			continue
		}
		x := fail(proofSeverity(f), explain.You, at, "%s does not have the text that proves the ownership: %s %s.", t.URL, at,
			said)
		x.Fix = fmt.Sprintf("Serve exactly the text %s at %s, with status 200.", t.Body, t.URL)
		out = append(out, x)
	}
	if len(f.Service.Tokens) == 0 {
		return unknown(t.URL, "%s could not be read.", t.URL)
	}
	return out
}

// proofKept is check OWN05. A single miss does not end the ownership: records disappear for a moment when a zone moves
// to another DNS host.
func proofKept(f *explain.Facts) []explain.Finding {
	if f.Service == nil || !verifiedBefore(f) {
		return nil
	}
	host, now := f.Service.Host, explain.OwnershipOf(f)
	switch explain.Observe(f) {
	case service.ProofFound:
		return pass(host, "The ownership of %s is still proved.", host)
	case service.ProofUnknown:
		return unknown(host, "Whether the ownership of %s is still proved could not be determined.", host)
	}
	since := fmt.Sprintf("The proof of the ownership of %s was last seen at %s, and is missing since %s", host,
		words.Moment(f.Service.Ownership.Seen, f.At), words.Moment(now.Missed, f.At))
	x := fail("", explain.DNSHost, host, "%s, in %s: the ownership is no longer verified.", since,
		words.Count(now.Misses, "check", "checks"))
	if now.Verified {
		x.Severity = explain.Warning
		x.Words = fmt.Sprintf("%s. The ownership counts as verified until %s at least.", since,
			words.Moment(now.GraceEnds(), f.At))
	}
	if f.Service.Proof != nil {
		x.Fix = Entry(f, []service.Record{*f.Service.Proof})
	}
	return []explain.Finding{x}
}

// delegationProof is check OWN06. One foreign nameserver is too many: its operator can answer with any records.
func delegationProof(f *explain.Facts) []explain.Finding {
	if f.Service == nil || len(f.Service.Nameservers) == 0 {
		return nil
	}
	zone := text(f.Zone)
	fact, others, total := explain.ProvedByDelegation(f)
	switch {
	case fact == explain.Unknown:
		return unknown(f.Service.Host, "The nameservers of %s are not known.", f.Service.Host)
	case fact == explain.Yes:
		return pass(zone, "The ownership is proved by the delegation of %s to all %d nameservers.", zone, total)
	}
	x := fail(proofSeverity(f), explain.Registrar, zone,
		"Only %d of %d nameservers of %s prove the ownership. These do not: %s.", total-len(others), total, zone,
		words.Some(texts(others)))
	x.Fix = fmt.Sprintf("At the registrar, delegate %s only to %s.", zone, words.List(texts(f.Service.Nameservers)))
	if z := f.ZoneAt(f.Zone); z != nil {
		x.Visible = nsVisible(f, *z)
	}
	return []explain.Finding{x}
}
