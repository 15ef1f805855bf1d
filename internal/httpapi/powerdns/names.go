package powerdns

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// nameOfID returns the name of a zone or key from its id in a path: the name, in which =XX stands for the byte with
// this hexadecimal number. The final dot is optional.
func nameOfID(id string) (dnsname.Name, error) {
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(id, "=")
		b.WriteString(plain)
		if !found {
			break
		}
		c, err := hex.DecodeString(rest[:min(2, len(rest))])
		if err != nil || len(c) != 1 {
			return dnsname.Name{}, status(http.StatusBadRequest)
		}
		b.Write(c)
		id = rest[2:]
	}
	n, err := dnsname.Parse(b.String())
	if err != nil {
		return n, refuse("Unable to parse DNS Name '%s'", b.String())
	}
	return n, nil
}

// idOfName returns the id of a zone or key.
func idOfName(n dnsname.Name) string {
	if n.IsRoot() {
		// http.ServeMux removes a path segment that is a single dot before it matches routes.
		return "=2E"
	}
	s := n.String()
	if strings.Trim(s, plainIDs) == "" {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(plainIDs, s[i]) >= 0 {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "=%02X", s[i])
		}
	}
	return b.String()
}

const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	plainIDs     = alphanumeric + ".-"
	plainNames   = alphanumeric + "_/.-"
)

// parseName parses a name that must end with a dot and have only characters that PowerDNS allows.
func parseName(s string) (dnsname.Name, error) {
	n, err := parseCanonical(s)
	if err == nil && strings.Trim(s, plainNames) != "" {
		err = refuse("Name '%s' contains unsupported characters", n)
	}
	return n, err
}

// parseOwner parses the name of a record set: parseName, or a wildcard.
func parseOwner(s string) (dnsname.Name, error) {
	n, err := parseCanonical(s)
	if err == nil && strings.Trim(strings.TrimPrefix(s, "*."), plainNames) != "" {
		err = refuse("Name '%s' contains unsupported characters", strings.TrimPrefix(n.String(), "*."))
	}
	return n, err
}

// parseCanonical parses a name that must end with a dot.
func parseCanonical(s string) (dnsname.Name, error) {
	if !strings.HasSuffix(s, ".") {
		return dnsname.Name{}, refuse("DNS Name '%s' is not canonical", s)
	}
	n, err := dnsname.Parse(s)
	if err != nil {
		return n, refuse("Unable to parse DNS Name '%s'", s)
	}
	return n, nil
}

// isHostname reports whether a name has only labels of letters, digits and hyphens, with no hyphen at an end, after an
// optional wildcard label.
func isHostname(n dnsname.Name) bool {
	for first := true; !n.IsRoot(); n, first = n.Parent(), false {
		label := n.Label()
		if label == "*" && first {
			continue
		}
		if strings.Trim(label, alphanumeric+"-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}
