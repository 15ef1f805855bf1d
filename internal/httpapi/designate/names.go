package designate

import (
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// parseHost parses a name in the form that Designate accepts: letters, digits, hyphens and underscores, and a final
// dot. With wildcard the first label may be "*". Other DNS names can come only from imported zone files.
func parseHost(s string, wildcard bool) (dnsname.Name, bool) {
	rest, dot := strings.CutSuffix(s, ".")
	if !dot || len(s) > 254 {
		return dnsname.Name{}, false
	}
	if wildcard && rest == "*" {
		rest = "a" // a valid label in its stead, for the loop below
	}
	if wildcard {
		rest = strings.TrimPrefix(rest, "*.")
	}
	for label := range strings.SplitSeq(rest, ".") {
		if !isHostLabel(label) {
			return dnsname.Name{}, false
		}
	}
	n, err := dnsname.Parse(s)
	return n, err == nil
}

func isHostLabel(label string) bool {
	if label == "" || len(label) > dnsname.MaxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		switch c := label[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// hostname returns a name and its spelling as in zone.RecordSet, or the zero Name when the field is absent or not a
// name. The formats in the problems are those of Designate's JSON schema.
func (in *input) hostname(key string, wildcard bool) (name dnsname.Name, spelling string) {
	s := in.text(key, 255)
	if s == nil {
		return dnsname.Name{}, ""
	}
	format := "domainname"
	if wildcard {
		format = "hostname"
	}
	n, ok := parseHost(*s, wildcard)
	if !ok {
		in.note(key, fmt.Sprintf("'%s' is not a '%s'", short([]byte(*s)), format), "format", format)
	}
	if n.String() == *s {
		return n, ""
	}
	return n, *s
}
