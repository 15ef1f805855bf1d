package designate

import (
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// parseHost reads a name as Designate spells them: with a final dot, of letters, digits, hyphens and underscores. A
// wildcard may stand in front where it is allowed. Other names of the DNS come in through zone files.
func parseHost(s string, wildcard bool) (dnsname.Name, bool) {
	rest, dot := strings.CutSuffix(s, ".")
	if !dot || len(s) > 254 {
		return dnsname.Name{}, false
	}
	if wildcard && rest == "*" {
		rest = "a"
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

// hostname reads a name; the zero Name when it is not one.
func (in *input) hostname(key string, wildcard bool) dnsname.Name {
	s := in.text(key, 255)
	if s == nil {
		return dnsname.Name{}
	}
	format := "domainname"
	if wildcard {
		format = "hostname"
	}
	n, ok := parseHost(*s, wildcard)
	if !ok {
		in.note(key, fmt.Sprintf("'%s' is not a '%s'", short([]byte(*s)), format), "format", format)
	}
	return n
}
