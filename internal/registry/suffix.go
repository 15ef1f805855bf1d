package registry

import (
	"errors"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Suffix is the suffix under which a name is registered, from the two parts of the public suffix list. Fields that do
// not apply are the zero Name.
type Suffix struct {
	Public dnsname.Name // the registry's suffix: "com.", "co.uk."
	// Domain has one label more than Public: it is the domain that the registry knows. Zero for a suffix.
	Domain dnsname.Name
	// Private is the suffix of a company that gives names below it to customers: "github.io.". Zero for most names.
	Private dnsname.Name
	// Owner has one label more than Private, or is Domain: the part of the name that one party controls.
	Owner  dnsname.Name
	Listed bool // false: the top-level domain is not on the list, so Public is a guess
}

// SuffixOf looks up name in the compiled-in public suffix list.
func SuffixOf(name dnsname.Name) Suffix {
	ascii, err := ascii(name)
	if err != nil || name.IsZero() || name.IsRoot() {
		return Suffix{}
	}
	text := strings.TrimSuffix(ascii.String(), ".")
	suffix, icann := publicsuffix.PublicSuffix(text)
	var s Suffix
	if !icann && strings.Contains(suffix, ".") {
		s.Private = dnsname.MustParse(suffix)
		s.Owner = below(ascii, s.Private)
		for !icann && strings.Contains(suffix, ".") {
			_, suffix, _ = strings.Cut(suffix, ".")
			suffix, icann = publicsuffix.PublicSuffix(suffix)
		}
	}
	s.Listed = icann
	s.Public = dnsname.MustParse(suffix)
	s.Domain = below(ascii, s.Public)
	if s.Owner.IsZero() {
		s.Owner = s.Domain
	}
	return s
}

// IsSuffix reports whether registries register names for the public at or below name. Suffixes of companies, the
// private part of the list, do not count: each is the registered name of one owner.
func IsSuffix(name dnsname.Name) bool {
	if s := SuffixOf(name); s.Listed && s.Domain.IsZero() {
		return true
	}
	child, err := name.Child("x") // "*.kawasaki.jp." is on the list, but "kawasaki.jp." is not
	return err == nil && SuffixOf(child).Listed && SuffixOf(child).Domain.IsZero()
}

// below returns the part of name with one label more than suffix, or the zero Name.
func below(name, suffix dnsname.Name) dnsname.Name {
	if name.NumLabels() <= suffix.NumLabels() {
		return dnsname.Name{}
	}
	for name.NumLabels() > suffix.NumLabels()+1 {
		name = name.Parent()
	}
	return name
}

var errNotHost = errors.New(
	"this cannot be a registered name: a label has other characters than letters, digits and hyphens",
)

// ascii returns name with A-labels. It fails for names that no registry accepts, and so keeps line ends and spaces
// out of queries.
func ascii(name dnsname.Name) (dnsname.Name, error) {
	var labels []string
	for n := name; !n.IsZero() && !n.IsRoot(); n = n.Parent() {
		label := n.Label()
		if !isASCII(label) {
			a, err := idna.Lookup.ToASCII(label)
			if err != nil {
				return dnsname.Name{}, errNotHost
			}
			label = a
		}
		if strings.ContainsFunc(label, notHost) {
			return dnsname.Name{}, errNotHost
		}
		labels = append(labels, label)
	}
	return dnsname.Parse(strings.Join(labels, ".") + ".")
}

// notHost reports whether a character is invalid in a host name. It allows the underscore, because queried names have
// it, such as _dmarc.
func notHost(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '*')
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }

// unicodeOf returns the Unicode form of a name with A-labels, or "" if it is the same.
func unicodeOf(name dnsname.Name) string {
	u, err := idna.Display.ToUnicode(strings.TrimSuffix(name.String(), "."))
	if err != nil || isASCII(u) {
		return ""
	}
	return u + "."
}
