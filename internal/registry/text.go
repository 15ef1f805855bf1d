package registry

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/dnsname"
)

const (
	maxWords = 1000     // of one value, in bytes; RSA keys are the longest honest ones
	maxText  = 64 << 10 // of a WHOIS text that is judged; terms of use are longer than the data, and come last
)

// clean makes a value of a reply fit to be shown: one line, no control characters (a terminal obeys them), no invisible ones,
// bounded.
func clean(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	return cut(s, maxWords)
}

// cut bounds s without breaking a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// decodeText reads a reply as UTF-8, or else as Latin-1, in which every byte is a character.
func decodeText(b []byte) string {
	text := string(b)
	if !utf8.Valid(b) {
		runes := make([]rune, len(b))
		for i, c := range b {
			runes[i] = rune(c)
		}
		text = string(runes)
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

// hostName is a name as a registry writes it, in the form of the house; "" if it is none.
func hostName(s string) string {
	s = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), ".")
	if s == "" || !strings.Contains(s, ".") || len(s) > 253 {
		return ""
	}
	name, err := dnsname.Parse(s)
	if err != nil || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" {
		return ""
	}
	return name.String()
}

// webURL is s if it is a link that may be shown as one: a reply could hold javascript: as well.
func webURL(s string) string {
	s = clean(s)
	if s == "" || strings.Contains(s, " ") {
		return ""
	}
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || hostName(u.Hostname()) == "" {
		return ""
	}
	return u.String()
}
