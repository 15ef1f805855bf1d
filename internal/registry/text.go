package registry

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/dnsname"
)

const (
	maxWords = 1000 // bytes of one value; RSA keys are the longest valid ones
	// bytes of a WHOIS text that are interpreted; terms of use are longer than the data and come last
	maxText = 64 << 10
)

// clean makes a value of a reply safe to show: one line, limited length, no invisible and no control characters,
// which a terminal would obey.
func clean(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	return cut(s, maxWords)
}

// cut limits the length of s without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// decodeText decodes a reply as UTF-8, or otherwise as Latin-1, in which every byte is a character.
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

// hostName returns a registry's spelling of a name in canonical form, or "" if it is not a host name.
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

// webURL returns s if it is a web link. A reply could also contain a javascript: link.
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
