package main

import (
	"strings"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// parseZone reads the name of a zone, with or without its final dot.
func parseZone(s string) (dnsname.Name, error) {
	n, err := dnsname.Parse(s)
	if err != nil || s == "" {
		return n, &cli.Failure{Code: cli.ExitUsage, Text: "the zone " + quote(s) + " is not a domain name" + because(err),
			Hint: "a zone is named like example.org"}
	}
	return n, nil
}

// parseOwner reads the name of a record: relative to its zone, or whole with or without a final dot. A name that ends
// with the zone's own is taken for whole, because www.example.org.example.org is nearly always a mistake; with a final
// dot it can be had.
func parseOwner(s string, zone dnsname.Name) (dnsname.Name, error) {
	n, err := dnsname.ParseIn(s, zone)
	if whole, werr := dnsname.Parse(s); s != "@" && werr == nil && whole.IsIn(zone) {
		n, err = whole, nil
	}
	if err != nil || s == "" {
		return n, &cli.Failure{Code: cli.ExitUsage, Text: quote(s) + " is not the name of a record" + because(err),
			Hint: "it is @ for the zone itself, www for a name in it, or a whole name with its final dot"}
	}
	if !n.IsIn(zone) {
		return n, &cli.Failure{Code: cli.ExitUsage, Text: n.String() + " is not in the zone " + zone.String(),
			Hint: "a name without a final dot is relative to the zone"}
	}
	return n, nil
}

func parseType(s string) (rr.Type, error) {
	t, err := rr.ParseType(s)
	if err != nil || !t.IsData() {
		return t, &cli.Failure{Code: cli.ExitUsage, Text: quote(s) + " is not a type of record",
			Hint: "types are A, AAAA, CNAME, MX, TXT and so on; one without a name is written TYPE and its number"}
	}
	return t, nil
}

// parseData reads the data of a record as a shell hands it over, and writes it as the API wants it.
func parseData(t rr.Type, s string, zone dnsname.Name) (string, error) {
	text := s
	if t == rr.TypeTXT && !strings.ContainsAny(s, `"\`) {
		text = quoteStrings(s)
	}
	data, err := rr.ParseDataIn(t, text, dnsname.Name{})
	if err != nil {
		// Perhaps names lack their final dot.
		var again error
		if data, again = rr.ParseDataIn(t, text, dnsname.Root); again != nil {
			return "", &cli.Failure{Code: cli.ExitUsage, Text: again.Error(),
				Hint: "`nameplane record set --help` has examples"}
		}
		if target, ok := rr.Target(t, data); ok && target.NumLabels() < 2 {
			return "", &cli.Failure{Code: cli.ExitUsage, Text: "is " + quote(s) + " a name in the zone, or a name of its own?",
				Hint: "write names in data whole, such as mail." + zone.String() + "; the root is a single dot"}
		}
	}
	return rr.DataText(t, data), nil
}

// quoteStrings makes one TXT value of text that has no quotes: the shell has eaten them, and unquoted blanks would
// cut the value into strings that every reader joins without the blanks. A string holds 255 bytes.
func quoteStrings(s string) string {
	var parts []string
	for len(s) > 255 {
		parts = append(parts, `"`+s[:255]+`"`)
		s = s[255:]
	}
	return strings.Join(append(parts, `"`+s+`"`), " ")
}

func quote(s string) string { return `"` + s + `"` }

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
