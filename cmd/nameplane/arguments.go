package main

import (
	"strings"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// parseZone parses the name of a zone. The final dot is optional.
func parseZone(s string) (dnsname.Name, error) {
	n, err := dnsname.Parse(s)
	if err != nil || s == "" {
		return n, &cli.Failure{Code: cli.ExitUsage, Text: "the zone " + quote(s) + " is not a domain name" + because(err),
			Hint: "write the name of a zone like example.org"}
	}
	return n, nil
}

// parseOwner parses the owner name of a record. The name is relative to the zone, or fully qualified; the final dot is
// optional. A name that ends with the name of the zone counts as fully qualified, because www.example.org.example.org
// is nearly always a mistake. A user who wants that name writes it with its final dot.
func parseOwner(s string, zone dnsname.Name) (dnsname.Name, error) {
	n, err := dnsname.ParseIn(s, zone)
	if full, ferr := dnsname.Parse(s); s != "@" && ferr == nil && full.IsIn(zone) {
		n, err = full, nil
	}
	if err != nil || s == "" {
		return n, &cli.Failure{Code: cli.ExitUsage, Text: quote(s) + " is not a name for a record" + because(err),
			Hint: "write @ for the zone itself, a relative name such as www, or a full name with its final dot"}
	}
	if !n.IsIn(zone) {
		return n, &cli.Failure{Code: cli.ExitUsage, Text: n.String() + " is not in the zone " + zone.String(),
			Hint: "a name without a final dot is relative to the zone"}
	}
	return n, nil
}

// parseType parses the type of a record. Types that exist only in queries (ANY, AXFR) or in messages (OPT, TSIG)
// are errors: no zone can have such a record (RFC 6895 §3.1).
func parseType(s string) (rr.Type, error) {
	t, err := rr.ParseType(s)
	if err != nil || !t.IsData() {
		return t, &cli.Failure{Code: cli.ExitUsage, Text: quote(s) + " is not a record type",
			Hint: "record types are A, AAAA, CNAME, MX, TXT and so on; write TYPE65280 for a type that has only a number"}
	}
	return t, nil
}

// parseData parses the data of a record as a shell passes it, and returns the presentation format that the API expects.
// Two things differ from a zone file: a TXT value may come without quotes, and names may lack their final dot.
func parseData(t rr.Type, s string, zone dnsname.Name) (string, error) {
	text := s
	if t == rr.TypeTXT && !strings.ContainsAny(s, `"\`) {
		text = quoteStrings(s)
	}
	data, err := rr.ParseDataIn(t, text, dnsname.Name{})
	if err != nil {
		// The names may lack their final dot: parse again with the root as the origin.
		if data, err = rr.ParseDataIn(t, text, dnsname.Root); err != nil {
			return "", &cli.Failure{Code: cli.ExitUsage, Text: err.Error(),
				Hint: "`nameplane record set --help` shows examples"}
		}
		if target, ok := rr.Target(t, data); ok && target.NumLabels() < 2 {
			// A single label is ambiguous: it could be relative to the zone, or a top-level domain.
			return "", &cli.Failure{Code: cli.ExitUsage, Text: "the name in " + quote(s) + " is ambiguous: it has one label",
				Hint: "write the full name, such as mail." + zone.String() + "; the root is a single dot"}
		}
	}
	return rr.DataText(t, data), nil
}

// quoteStrings quotes a TXT value whose quotes the shell has removed. Without quotes, each space would begin another
// character string, and readers join character strings without spaces. A character string holds at most 255 bytes
// (RFC 1035 §3.3).
func quoteStrings(s string) string {
	var parts []string
	for len(s) > 255 {
		parts = append(parts, `"`+s[:255]+`"`)
		s = s[255:]
	}
	return strings.Join(append(parts, `"`+s+`"`), " ")
}

func quote(s string) string { return `"` + s + `"` }

// because returns the reason for a sentence, or nothing if err is nil.
func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
