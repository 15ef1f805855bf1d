package powerdns

import (
	"strings"

	"github.com/nameplane/nameplane/internal/rr"
)

// parseContent parses one record. As in PowerDNS the text must be in the form in which the API returns it, except for
// letter case and the form of IPv6 addresses: clients compare what they sent with what they get.
func parseContent(t rr.Type, text string) (string, error) {
	data, err := rr.ParseData(t, text)
	// PowerDNS does not accept the form with an embedded IPv4 address (::ffff:192.0.2.1).
	if t == rr.TypeAAAA && (err != nil || strings.Contains(text, ".")) {
		return "", refuse("Invalid IPv6 address")
	}
	if err != nil {
		return "", err
	}
	if back := contentText(t, data); t != rr.TypeAAAA && !strings.EqualFold(back, text) {
		return "", refuse("Not in expected format (parsed as '%s')", back)
	}
	return data, nil
}

// contentText returns a record as PowerDNS writes it: digests in lower case, values of service parameters without
// quotes that they do not need, and numbers of LOC records with two decimals and without leading zeros.
func contentText(t rr.Type, data string) string {
	text := rr.DataText(t, data)
	switch t.String() {
	case "SSHFP", "DS", "CDS", "TLSA", "SMIMEA":
		return strings.ToLower(text)
	case "SVCB", "HTTPS":
		// A value with an escape or a space needs its quotes: without them it would be parsed as two parameters.
		if !strings.Contains(text, `\`) && !quotedSpace(text) {
			return strings.ReplaceAll(text, `"`, "")
		}
	}
	if t.String() == "LOC" {
		return locText(text)
	}
	return text
}

func locText(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		switch meters, ok := strings.CutSuffix(w, "m"); {
		case ok && !strings.Contains(w, "."):
			words[i] = meters + ".00m"
		case !ok && len(w) > 1 && w[0] == '0' && w[1] != '.':
			words[i] = w[1:]
		}
	}
	return strings.Join(words, " ")
}

// quotedSpace reports whether a text has a space between quotes.
func quotedSpace(s string) bool {
	quoted := false
	for i := range len(s) {
		switch s[i] {
		case '"':
			quoted = !quoted
		case ' ':
			if quoted {
				return true
			}
		}
	}
	return false
}

// checkTarget refuses targets of NS, MX and SRV records that are no host names, as PowerDNS does.
func checkTarget(t rr.Type, data string) error {
	switch t {
	case rr.TypeNS, rr.TypeMX, rr.TypeSRV:
	default:
		return nil
	}
	n, ok := rr.Target(t, data)
	// The root as a target means "no service" in MX (RFC 7505) and SRV (RFC 2782). It has no meaning in NS.
	if !ok || n.IsRoot() && t != rr.TypeNS || isHostname(n) && !n.IsRoot() {
		return nil
	}
	return refuse("non-hostname content %s", n)
}
