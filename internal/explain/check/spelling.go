package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// labels returns the labels of a name, the leftmost first.
func labels(n dnsname.Name) (out []string) {
	for m := n; !m.IsZero() && !m.IsRoot(); m = m.Parent() {
		out = append(out, m.Label())
	}
	return out
}

// idn is check NAM17: International letters in the name are written correctly.
func idn(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	international := false
	// The rules for registration are stricter than those for lookups (RFC 5891 §4 and §5): a registry refuses more than a
	// browser.
	strict := idna.New(idna.ValidateForRegistration())
	for _, l := range labels(f.Name) {
		if !strings.HasPrefix(l, "xn--") && isASCII(l) {
			continue
		}
		international = true
		// Convert in both directions: two different xn-- forms must not stand for the same letters.
		shown, err := strict.ToUnicode(l)
		if err == nil {
			_, err = strict.ToASCII(shown)
		}
		if shown == "" || strings.HasPrefix(shown, "xn--") && isASCII(shown) {
			err = fmt.Errorf("the xn-- form has no Unicode form")
		}
		if err != nil {
			out = append(out, fail("", explain.You, name, "%q in %s is not a valid label of an international name.", l, name))
			continue
		}
		if mixed := scripts(shown); len(mixed) > 1 {
			out = append(out, fail("", explain.You, name, "%q (%s) mixes letters of %s: browsers show its xn-- form instead.",
				shown, l, words.Some(mixed)))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case !international:
		return nil
	}
	return pass(name, "The international letters in %s are written correctly.", name)
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }

// together lists the combinations of scripts that one language uses (UTS 39 §5.1).
var together = [][]string{{"Latin", "Han", "Hiragana", "Katakana"}, {"Latin", "Han", "Bopomofo"},
	{"Latin", "Han", "Hangul"}}

// scripts returns the scripts that a label mixes: at most one if the combination is allowed.
func scripts(label string) (out []string) {
	for _, r := range label {
		for script, table := range unicode.Scripts {
			// Digits and hyphens belong to all scripts, and combining marks to that of their letter.
			if script != "Common" && script != "Inherited" && unicode.Is(table, r) && !slices.Contains(out, script) {
				out = append(out, script)
			}
		}
	}
	slices.Sort(out)
	if slices.ContainsFunc(together, func(set []string) bool { return len(without(out, set)) == 0 }) {
		return out[:min(len(out), 1)]
	}
	return out
}

// hostName is check NAM18: The name is a valid host name.
func hostName(f *explain.Facts) []explain.Finding {
	if f.Name.IsZero() {
		if f.Input == "" {
			return nil
		}
		return []explain.Finding{fail("", explain.You, f.Input, "%q is not a domain name.", f.Input)}
	}
	name := text(f.Name)
	// Service names start with an underscore on purpose. They are host names only if they have addresses.
	host := slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return (o.Type == rr.TypeA || o.Type == rr.TypeAAAA) && o.Result == iterate.Answer && o.End == f.Name
	})
	for _, l := range labels(f.Name) {
		why := illegal(l)
		switch {
		// A wildcard is not a host name, but a user may ask for one.
		case why == "" || l == "*":
		// Names like _dmarc or _sip._tcp are right, if the underscore is their only special character (RFC 8552).
		case strings.Contains(l, "_") && illegal(strings.ReplaceAll(l, "_", "a")) == "" && !host:
		default:
			return []explain.Finding{fail("", explain.You, name, "%s is not a valid host name: %q %s.", name, l, why)}
		}
	}
	return pass(name, "%s is a valid host name.", name)
}

// illegal returns why a label is not allowed in a host name (RFC 1123 §2.1), or "".
func illegal(label string) string {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-')
	}
	switch {
	case strings.Contains(label, "_"):
		return "has an underscore"
	case !isASCII(label):
		return "has letters that must be written in their xn-- form"
	case strings.ContainsFunc(label, odd):
		return "has other characters than letters, digits and hyphens"
	case strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-"):
		return "begins or ends with a hyphen"
	}
	return ""
}

// bareName is check NAM19: Only a name was entered.
func bareName(f *explain.Facts) []explain.Finding {
	switch {
	case f.Input == "":
		return nil
	case len(f.Trimmed) == 0:
		return pass(f.Input, "Only a name was entered.")
	case f.Name.IsZero():
		return []explain.Finding{fail(explain.Error, explain.You, f.Input, "%q contains no domain name.", f.Input)}
	}
	// The name was found all the same, so this is only a hint.
	x := fail(explain.Info, explain.You, f.Input, "%s was removed from %q: it is not part of the name.",
		words.Some(words.Each(f.Trimmed, strconv.Quote)), f.Input)
	x.Fix = fmt.Sprintf("Enter only %s, also in DNS panels.", text(f.Name))
	return []explain.Finding{x}
}
