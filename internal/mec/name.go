package mec

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// toASCII maps a name as browsers do before they look it up (UTS 46), because it is browsers and their like that will ask.
// Characters beside letters, digits and hyphens are judged by checkLabels, which knows "_" and "*".
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// parseDomain reads the name of a rule or record: with final dot or without, in any case, with U-labels or A-labels,
// perhaps with a wildcard in front.
func parseDomain(field, s string) (dnsname.Name, error) {
	if s == "" {
		return dnsname.Name{}, fieldErr(field, "is missing")
	}
	if !utf8.ValidString(s) { // idna would read a replacement character, and make one name of many
		return dnsname.Name{}, fieldErr(field, "%.80q is not UTF-8", s)
	}
	ascii := s
	if strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 }) {
		var err error
		if ascii, err = toASCII.ToASCII(s); err != nil {
			return dnsname.Name{}, fieldErr(field, "%.80q is not an internationalised domain name: %v", s, err)
		}
	}
	if err := checkLabels(field, strings.TrimSuffix(ascii, ".")); err != nil {
		return dnsname.Name{}, err
	}
	n, err := dnsname.Parse(ascii)
	if err != nil {
		return dnsname.Name{}, fieldErr(field, "%v", err)
	}
	return n, nil
}

// checkLabels refuses what no resolver asks for: a URL, an address, a name with blanks. Escapes are refused with them,
// for a host has none. Lengths are dnsname's to judge.
func checkLabels(field, s string) error {
	if s == "" {
		return fieldErr(field, "the root is no name of an application")
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return fieldErr(field, "%q is an address, not a name", s)
	}
	for i, label := range strings.Split(s, ".") {
		if label == "*" && i == 0 && len(label) < len(s) {
			continue
		}
		for _, c := range []byte(label) {
			if c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				return fieldErr(field, "%.80q has %q in it; labels have letters, digits, hyphens and underscores, and the first may be *", s, c)
			}
		}
		if strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return fieldErr(field, "%.80q has a label that begins or ends with a hyphen", s)
		}
	}
	return nil
}

// parseAddr reads an address that a client could connect to.
func parseAddr(field, s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	switch {
	case s == "":
		return a, fieldErr(field, "is missing")
	case err != nil:
		return a, fieldErr(field, "%.60q is not an IP address", s)
	case a.Zone() != "":
		return a, fieldErr(field, "%.60q has a zone, which means nothing on another host", s)
	case a.Is4In6():
		return a, fieldErr(field, "%s is an IPv4 address in IPv6 form: give %s", a, a.Unmap())
	}
	// An application in the edge has a private address, and may be on the client's own host.
	if c := (specialaddr.Table{}).Classes(a) & (specialaddr.Unspecified | specialaddr.Multicast | specialaddr.Reserved |
		specialaddr.Metadata); c != 0 {
		return a, fieldErr(field, "%s is %s", a, c)
	}
	return a, nil
}

func addrType(a netip.Addr) rr.Type {
	if a.Is4() {
		return rr.TypeA
	}
	return rr.TypeAAAA
}
