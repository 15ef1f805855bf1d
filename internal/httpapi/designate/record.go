package designate

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// parseType parses the type of a record set: the types of Designate, all other types that package rr knows, and TYPEnnn
// (RFC 3597). Mnemonics must be in upper case, as in Designate.
func parseType(s string) (rr.Type, bool) {
	t, err := rr.ParseType(s)
	return t, err == nil && t.IsData() && t.String() == s
}

// parseRecord parses one record of a record set. It first checks the rules of Designate that are stricter than the
// syntax of zone files.
func parseRecord(t rr.Type, text string) (string, error) {
	if t.String() == "TLSA" {
		text = tlsaText(text)
	}
	if rule := recordRules[t.String()]; rule != nil {
		if !rule(text) {
			return "", fmt.Errorf("'%s' is not a '%s' Record", short([]byte(text)), t)
		}
	}
	if isText(t) && !strings.HasPrefix(text, `"`) {
		text = `"` + text + `"` // without quotes a semicolon would begin a comment
	}
	data, err := rr.ParseDataIn(t, text, dnsname.Name{})
	if err != nil {
		return "", fmt.Errorf("'%s' is not a '%s' Record: %w", short([]byte(text)), t, err)
	}
	if key, missing := rr.MissingKey(t, data); missing {
		return "", fmt.Errorf("'%s' is not a '%s' Record: mandatory names %s, which the record does not have",
			short([]byte(text)), t, key)
	}
	return data, nil
}

func isText(t rr.Type) bool { return t.String() == "TXT" || t.String() == "SPF" }

// recordRules has a function for each type that reports whether a text is a record of the type. Types without a
// function follow the syntax of zone files only.
var recordRules = map[string]func(string) bool{
	"A": func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"AAAA": func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is6() && a.Zone() == ""
	},
	"ALIAS": isHost,
	"CNAME": isHost,
	"NS":    isHost,
	"PTR":   isHost,
	"MX":    func(s string) bool { return fields(s, isUint16, isTarget) },
	"SRV":   func(s string) bool { return fields(s, isUint16, isUint16, isUint16, isTarget) },
	"SSHFP": func(s string) bool { return fields(s, upTo(4), upTo(2), isFingerprint) },
	"TXT":   isTXT,
	"SPF":   isTXT,
	"CAA":   isCAA,
	"TLSA":  isTLSA,
	"CERT":  func(s string) bool { return len(strings.Fields(s)) >= 4 },
	"NAPTR": isNAPTR,
	"HTTPS": isService,
	"SVCB":  isService,
}

// fields reports whether s consists of words with one space between them, and each rule accepts its word.
func fields(s string, rules ...func(string) bool) bool {
	words := strings.Split(s, " ")
	if len(words) != len(rules) {
		return false
	}
	for i, w := range words {
		if !rules[i](w) {
			return false
		}
	}
	return true
}

func isHost(s string) bool { _, ok := parseHost(s, true); return ok }

// isTarget reports whether s is a host name, or the root, which says that the service does not exist (RFC 7505 for MX,
// RFC 2782 for SRV).
func isTarget(s string) bool { return s == "." || isHost(s) }

// upTo returns a rule that accepts canonical decimals up to a limit: no sign, no leading zero.
func upTo(limit uint64) func(string) bool {
	return func(s string) bool {
		n, err := strconv.ParseUint(s, 10, 64)
		return err == nil && n <= limit && strconv.FormatUint(n, 10) == s
	}
}

var isUint16 = upTo(65535)

func isHex(s string) bool {
	return s != "" && len(s)%2 == 0 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// tlsaText returns the text of a TLSA record on one line, with its data in one word: as in zone files, the data may
// be split by white space and enclosed in parentheses.
func tlsaText(s string) string {
	w := strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(s))
	if len(w) < 4 {
		return s
	}
	return strings.Join(w[:3], " ") + " " + strings.Join(w[3:], "")
}

// isTLSA accepts all values of the three numbers: 255 is for private use, and others may be assigned (RFC 7218). The
// matching types 1 and 2 are SHA-256 and SHA-512, so the length of their data is known.
func isTLSA(s string) bool {
	if !fields(s, upTo(255), upTo(255), upTo(255), isHex) {
		return false
	}
	w := strings.Split(s, " ")
	digits, known := map[string]int{"1": 64, "2": 128}[w[2]]
	return !known || len(w[3]) == digits
}

// isFingerprint reports whether s has a length that Designate accepts: up to SHA-1, or SHA-256.
func isFingerprint(s string) bool {
	return isHex(s) && (len(s) >= 10 && len(s) <= 40 || len(s) == 64)
}

// isTXT accepts one word without quotes, or quoted strings with spaces between them, each of at most 255 bytes. Quotes
// inside a string must be escaped, a string must not end with a backslash, and control characters are refused because
// they would end the line.
func isTXT(s string) bool {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	if !strings.HasPrefix(s, `"`) {
		n, rest, ok := textLength(s)
		return ok && rest == "" && n > 0 && n <= 255 && !strings.ContainsAny(s, " ")
	}
	for {
		n, rest, ok := textLength(s[1:])
		if !ok || n > 255 || !strings.HasPrefix(rest, `"`) {
			return false
		}
		if s = strings.TrimLeft(rest[1:], " "); s == "" {
			return true
		}
		if len(s) == len(rest)-1 || s[0] != '"' { // no space, or a word without quotes
			return false
		}
	}
}

// textLength counts the bytes of a string up to its end or an unescaped quote; rest begins with that quote.
func textLength(s string) (n int, rest string, ok bool) {
	for i := 0; i < len(s); n++ {
		switch s[i] {
		case '"':
			return n, s[i:], true
		case '\\':
			k, ok := rr.Escape(s[i+1:])
			if !ok {
				return 0, "", false
			}
			i += 1 + k
		default:
			i++
		}
	}
	return n, "", true
}

// isCAA accepts Designate's flags 0 and 1, and 128, the critical flag of RFC 8659 §4.1.
func isCAA(s string) bool {
	w := strings.SplitN(s, " ", 3)
	return len(w) == 3 && slices.Contains([]string{"0", "1", "128"}, w[0]) &&
		slices.Contains([]string{"issue", "issuewild", "iodef", "issuemail"}, w[1]) && w[2] != ""
}

func isNAPTR(s string) bool {
	w := strings.Fields(s)
	return len(w) >= 6 && isUint16(w[0]) && isUint16(w[1]) && isTarget(w[len(w)-1])
}

func isService(s string) bool {
	w := strings.SplitN(s, " ", 3)
	return len(w) >= 2 && isUint16(w[0]) && isTarget(w[1])
}
