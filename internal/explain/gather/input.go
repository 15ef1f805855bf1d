package gather

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// ParseInput returns the domain name in text that somebody typed or pasted: a URL, an e-mail address, a name with a
// port. trimmed lists the parts of the text that do not belong to the name.
func ParseInput(s string) (name dnsname.Name, trimmed []string, err error) {
	in := input{rest: s}
	in.trimEnds()
	in.trimURL()
	in.trimEnds()
	text, err := in.toASCII()
	if err == nil {
		err = checkLabels(text)
	}
	if err != nil {
		return dnsname.Name{}, in.trimmed, fmt.Errorf("%q is not a domain name: %w", s, err)
	}
	if name, err = dnsname.Parse(text); err != nil {
		return dnsname.Name{}, in.trimmed, fmt.Errorf("%q is not a domain name: %w", s, err)
	}
	return name, in.trimmed, nil
}

// InputError reports an invalid name or type. Nothing was sent.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// input is the remaining text, and the parts that were cut off.
type input struct {
	rest    string
	trimmed []string
}

func (in *input) trim(cut, rest string) {
	if cut != "" {
		in.trimmed = append(in.trimmed, cut)
	}
	in.rest = rest
}

// trimEnds cuts off characters that are often copied with a name: visible and invisible spaces, quotes, brackets,
// punctuation.
func (in *input) trimEnds() {
	if _, err := netip.ParseAddr(strings.Trim(in.rest, "[]")); err == nil {
		return // brackets and colons belong to an address: toASCII reports it as such
	}
	wrapping := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune("\"'`<>()[]{}“”‘’«»„", r)
	}
	rest := strings.TrimLeftFunc(in.rest, wrapping)
	in.trim(in.rest[:len(in.rest)-len(rest)], rest)
	rest = strings.TrimRightFunc(in.rest, func(r rune) bool { return wrapping(r) || strings.ContainsRune(",;!", r) })
	in.trim(in.rest[len(rest):], rest)
}

var (
	scheme = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]*:)?//|^(?i:mailto|sip|sips|xmpp|tel):`)
	port   = regexp.MustCompile(`:[0-9]*$`)
)

// trimURL cuts off everything except the host of a URL or of an e-mail address.
func (in *input) trimURL() {
	cut := scheme.FindString(in.rest)
	in.trim(cut, in.rest[len(cut):])
	path := ""
	if i := strings.IndexAny(in.rest, "/?#"); i >= 0 {
		in.rest, path = in.rest[:i], in.rest[i:]
	}
	if i := strings.LastIndex(in.rest, "@"); i >= 0 {
		in.trim(in.rest[:i+1], in.rest[i+1:])
	}
	if _, err := netip.ParseAddr(in.rest); err != nil {
		cut = port.FindString(in.rest)
		in.trim(cut, strings.TrimSuffix(in.rest, cut))
	}
	in.trim(path, in.rest)
	if dots := len(in.rest) - len(strings.TrimRight(in.rest, ".")); dots > 1 && dots < len(in.rest) {
		in.trim(in.rest[len(in.rest)-dots+1:], in.rest[:len(in.rest)-dots+1])
	}
}

// idnaProfile converts names to A-labels as browsers do (UTS 46), except that it accepts labels that are not host
// names: many names that people ask for contain an underscore.
var idnaProfile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

func (in *input) toASCII() (string, error) {
	switch _, err := netip.ParseAddr(strings.Trim(in.rest, "[]")); {
	case err == nil:
		return "", errors.New("it is an IP address")
	case in.rest == "":
		return "", errors.New("it contains no name")
	case strings.ContainsFunc(in.rest, unicode.IsSpace):
		return "", errors.New("it contains a space")
	}
	if !strings.ContainsFunc(in.rest, func(r rune) bool { return r > unicode.MaxASCII }) {
		return in.rest, nil
	}
	text, err := idnaProfile.ToASCII(in.rest)
	if err != nil {
		return "", fmt.Errorf("it cannot be converted to A-labels (%w)", err)
	}
	return text, nil
}

// checkLabels reports in plain words the errors that dnsname.Parse would report.
func checkLabels(text string) error {
	if text == "." || strings.Contains(text, `\`) {
		return nil // with escapes, only the parser knows where labels end
	}
	text = strings.TrimSuffix(text, ".")
	for label := range strings.SplitSeq(text, ".") {
		switch {
		case label == "":
			return errors.New("it has an empty label: two dots in a row, or a dot at the beginning")
		case len(label) > dnsname.MaxLabel:
			return fmt.Errorf("the label %.20s… has %d characters; at most %d are allowed",
				label, len(label), dnsname.MaxLabel)
		case strings.ContainsAny(label, `,;:"'()<>[]{}|^%&=+!$~`+"`"):
			return fmt.Errorf("the label %q has characters that are not allowed in names", label)
		}
	}
	if len(text) > maxText {
		return fmt.Errorf("it has %d characters; at most %d are allowed", len(text), maxText)
	}
	return nil
}

// maxText is the length of the longest name without escapes and without the final dot.
const maxText = dnsname.MaxWire - 2
