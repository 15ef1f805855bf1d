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

// labels are those of a name, the leftmost first.
func labels(n dnsname.Name) (out []string) {
	for m := n; !m.IsZero() && !m.IsRoot(); m = m.Parent() {
		out = append(out, m.Label())
	}
	return out
}

func idn(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var out []explain.Finding
	international := false
	strict := idna.New(idna.ValidateForRegistration())
	for _, l := range labels(f.Name) {
		if !strings.HasPrefix(l, "xn--") && isASCII(l) {
			continue
		}
		international = true
		shown, err := strict.ToUnicode(l)
		if err == nil {
			_, err = strict.ToASCII(shown)
		}
		if shown == "" || strings.HasPrefix(shown, "xn--") && isASCII(shown) {
			err = fmt.Errorf("it stands for nothing")
		}
		if err != nil {
			out = append(out, fail("", explain.You, name, "%q in %s is not a correct form of an international name.", l, name))
			continue
		}
		if mixed := scripts(shown); len(mixed) > 1 {
			out = append(out, fail("", explain.You, name, "%q (%s) mixes letters of %s: browsers do not show it as it is meant.", shown, l, words.Some(mixed)))
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

// together are scripts that one language writes with (UTS 39 §5.1).
var together = [][]string{{"Latin", "Han", "Hiragana", "Katakana"}, {"Latin", "Han", "Bopomofo"}, {"Latin", "Han", "Hangul"}}

// scripts are those that a label mixes; one or none if that is in order.
func scripts(label string) (out []string) {
	for _, r := range label {
		for script, table := range unicode.Scripts {
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

func hostName(f *explain.Facts) []explain.Finding {
	if f.Name.IsZero() {
		if f.Input == "" {
			return nil
		}
		return []explain.Finding{fail("", explain.You, f.Input, "%q is not a domain name.", f.Input)}
	}
	name := text(f.Name)
	// Names of services begin with an underscore on purpose, and the wildcard is one; they are hosts only with addresses.
	host := slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool {
		return (o.Type == rr.TypeA || o.Type == rr.TypeAAAA) && o.Result == iterate.Answer && o.End == f.Name
	})
	for _, l := range labels(f.Name) {
		why := illegal(l)
		switch {
		case why == "" || l == "*":
		case strings.Contains(l, "_") && illegal(strings.ReplaceAll(l, "_", "a")) == "" && !host:
		default:
			return []explain.Finding{fail("", explain.You, name, "%s cannot be a host's name: %q %s.", name, l, why)}
		}
	}
	return pass(name, "%s can be a host's name.", name)
}

// illegal is what of a label cannot be in a host's name (RFC 1123 §2.1).
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

func bareName(f *explain.Facts) []explain.Finding {
	switch {
	case f.Input == "":
		return nil
	case len(f.Trimmed) == 0:
		return pass(f.Input, "Only a name was entered.")
	case f.Name.IsZero():
		return []explain.Finding{fail(explain.Error, explain.You, f.Input, "%q has no name in it.", f.Input)}
	}
	// We could read it all the same, so that it is a hint and no fault.
	x := fail(explain.Info, explain.You, f.Input, "%s was left out of %q: it is not a part of the name.", words.Some(words.Each(f.Trimmed, strconv.Quote)), f.Input)
	x.Fix = fmt.Sprintf("Enter only %s, in DNS panels, too.", text(f.Name))
	return []explain.Finding{x}
}
