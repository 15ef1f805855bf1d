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

// toASCII maps a name like browsers before a lookup (UTS 46), because browsers are the clients that resolve it. It
// accepts other characters than letters, digits and hyphens: checkLabels checks them, and allows "_" and "*".
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// parseDomain parses the name of a rule or record: with or without the final dot, in upper or lower case, with U-labels
// or A-labels (RFC 5890), and optionally with a wildcard as first label.
func parseDomain(field, s string) (dnsname.Name, error) {
	if s == "" {
		return dnsname.Name{}, fieldErr(field, "is missing")
	}
	if !utf8.ValidString(s) { // idna would replace invalid bytes, and so map different names to one
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

// checkLabels refuses text that no resolver asks for: a URL, an address, a name with spaces. It refuses escapes too,
// because host names have none. dnsname.Parse checks the lengths.
func checkLabels(field, s string) error {
	if s == "" {
		return fieldErr(field, "the root cannot be the name of an application")
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
				return fieldErr(field, "%.80q contains %q; labels have letters, digits, hyphens and underscores, and the "+
					"first may be *", s, c)
			}
		}
		if strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return fieldErr(field, "%.80q has a label that begins or ends with a hyphen", s)
		}
	}
	return nil
}

// parseAddr parses an address that a client could connect to.
func parseAddr(field, s string, special specialaddr.Table) (netip.Addr, error) {
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
	// Private and loopback addresses are allowed: an edge application has a private address, and may run on the client's
	// own host.
	if c := special.Classes(a) & (specialaddr.Unspecified | specialaddr.Multicast | specialaddr.Reserved |
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
