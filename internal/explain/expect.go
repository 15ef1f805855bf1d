package explain

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/rr"
)

// ParseExpect parses an expected record such as "A=192.0.2.1". It normalises the data to the form that answers of
// servers have, so that both can be compared: addresses in their shortest form, names in lower case with the final dot,
// and text in quotes.
func ParseExpect(text string) (Set, error) {
	word, data, ok := strings.Cut(text, "=")
	if !ok {
		return Set{}, errors.New("must have the form TYPE=DATA")
	}
	var set Set
	if err := set.Type.UnmarshalText([]byte(word)); err != nil {
		return Set{}, err
	}
	if !set.Type.IsData() {
		return Set{}, fmt.Errorf("%s is not a record type", set.Type)
	}
	if set.Type == rr.TypeTXT && data != "" && !strings.Contains(data, `"`) {
		data = quoted(data)
	}
	parsed, err := rr.ParseData(set.Type, data)
	if err != nil {
		return Set{}, err
	}
	set.Data = []string{rr.DataText(set.Type, rr.DataKey(set.Type, parsed))}
	return set, nil
}

// MaxSelectors limits the DKIM selectors of a scan.
const MaxSelectors = 8

// CheckSelectors checks DKIM selectors. A selector is one or more labels of letters, digits, hyphens and underscores
// (RFC 6376 §3.1).
func CheckSelectors(all []string) error {
	if len(all) > MaxSelectors {
		return fmt.Errorf("%d selectors are too many; at most %d are allowed", len(all), MaxSelectors)
	}
	for _, s := range all {
		long := func(label string) bool { return len(label) > 63 }
		if !selector.MatchString(s) || len(s) > maxSelector || slices.ContainsFunc(strings.Split(s, "."), long) {
			return fmt.Errorf("%q is not a DKIM selector; give the part before \"._domainkey\"", s)
		}
	}
	return nil
}

// selector matches a DKIM selector. The length of labels is checked without the expression: a counted repetition takes
// a hundred kilobytes from the start on.
var selector = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

const maxSelector = 128

// quoted returns text as the quoted strings of a TXT record, each at most 255 bytes long (RFC 1035 §3.3).
func quoted(text string) string {
	const most = 255
	var out []string
	for ; len(text) > most; text = text[most:] {
		out = append(out, `"`+text[:most]+`"`)
	}
	return strings.Join(append(out, `"`+text+`"`), " ")
}
