package check

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/mailtext"
)

// caaTags are the registered properties (https://www.iana.org/assignments/pkix-parameters, 2025-06-10).
var caaTags = []string{"issue", "issuewild", "iodef", "contactemail", "contactphone", "issuevmc", "issuemail"}

// criticalFlag is bit 0 of the flags, which RFC 8659 §4.1 counts from the most significant bit.
const criticalFlag = 128

const (
	caaLabel = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`
	caaParam = `[A-Za-z0-9-]+[ \t]*=[ \t]*[\x21-\x3a\x3c-\x7e]*[ \t]*`
)

// caaValue matches the value of issue and issuewild: a domain, or nothing, and parameters (RFC 8659 §4.2).
var caaValue = regexp.MustCompile(`^[ \t]*(?:` + caaLabel + `(?:\.` + caaLabel + `)*)?[ \t]*` +
	`(?:;[ \t]*(?:` + caaParam + `(?:;[ \t]*` + caaParam + `)*;?)?[ \t]*)?$`)

// caa is check MAI12: The CAA records are valid.
func caa(f *explain.Facts) (out []explain.Finding) {
	l, unclear, ok := atZone(f, f.Zone, typeCAA)
	zone := text(f.Zone)
	switch {
	case !ok:
		return unclear
	case len(l.Data) == 0:
		return nil
	}
	var all []mailtext.Property
	for _, d := range l.Data {
		p, ok := mailtext.ParseCAA(d)
		if !ok {
			out = append(out, wrong(f, "", l, "The CAA record %s of %s cannot be read.", short(d), zone))
			continue
		}
		// Tags are compared without regard to case (RFC 8659 §4.1).
		p.Tag = strings.ToLower(p.Tag)
		all = append(all, p)
		if severity, problem := caaProblem(p); problem != "" {
			out = append(out, wrong(f, severity, l, "The CAA record %s of %s %s.", short(d), zone, problem))
		}
	}
	for _, tag := range []string{"issue", "issuewild"} {
		same := only(all, func(p mailtext.Property) bool { return p.Tag == tag })
		if len(same) > 1 && slices.ContainsFunc(same, func(p mailtext.Property) bool { return nobody(p.Value) }) {
			out = append(out, wrong(f, explain.Notice, l,
				"The CAA record %s \";\" of %s forbids all authorities, but the other %s records allow some, and they win.", tag,
				zone, tag))
		}
	}
	if len(out) > 0 {
		return out
	}
	return pass(zone, "The CAA records of %s are valid.", zone)
}

// nobody reports whether a value of issue allows no authority.
func nobody(value string) bool {
	domain, _, _ := strings.Cut(value, ";")
	return strings.Trim(domain, " \t") == ""
}

// caaProblem returns what is wrong with a record.
func caaProblem(p mailtext.Property) (explain.Severity, string) {
	switch {
	case !slices.Contains(caaTags, p.Tag) && p.Flags&criticalFlag != 0:
		return "", fmt.Sprintf("has the property %q, which no authority knows, and is critical: no certificates are issued",
			short(p.Tag))
	case !slices.Contains(caaTags, p.Tag):
		return explain.Warning, fmt.Sprintf("has the property %q, which authorities ignore", short(p.Tag))
	// RFC 8659 §4.2: an authority must treat a value that it cannot parse as one that forbids it.
	case strings.HasPrefix(p.Tag, "issue") && !caaValue.MatchString(p.Value):
		return "", fmt.Sprintf("has a value that is not a domain: %q forbids all authorities", short(p.Value))
	case p.Tag == "iodef" && !reportURL(p.Value):
		return explain.Warning, fmt.Sprintf("has the value %q, which does not begin with mailto: or https:", short(p.Value))
	case p.Flags&^criticalFlag != 0:
		return explain.Notice, fmt.Sprintf("has the flags %d; only 0 and 128 have a meaning", p.Flags)
	}
	return "", ""
}

// reportURL reports whether authorities can send reports to a URL.
func reportURL(value string) bool {
	// RFC 8659 §4.4 allows mailto, http and https.
	u, err := url.Parse(value)
	return err == nil && (u.Scheme == "mailto" && strings.Contains(u.Opaque, "@") ||
		(u.Scheme == "http" || u.Scheme == "https") && u.Host != "")
}
