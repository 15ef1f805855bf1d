// Package enforce represents egress firewalls as values: rules, the names in them, their errors, and which rule decides
// about a packet.
//
// Start with ParseFirewall in rule.go, which parses the rules of a namespace. Pattern in pattern.go is the name in a
// rule, and Decide in decide.go finds the rule for a packet.
package enforce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// PatternKind is the kind of names that a Pattern matches.
type PatternKind uint8

const (
	Exact    PatternKind = iota + 1 // one name
	Wildcard                        // "*.": names with exactly one more label
	Deep                            // "**.": names with one or more additional labels; not in the stock API
)

var prefixes = [...]string{Exact: "", Wildcard: "*.", Deep: "**."}

// Pattern is the name in a rule. It is comparable, and two spellings of a name give equal patterns. The zero Pattern
// matches nothing.
type Pattern struct {
	kind PatternKind
	base dnsname.Name // without "*." or "**."
}

// PatternOptions are features that an administrator may enable.
type PatternOptions struct {
	Deep bool // accept "**."
}

// maxPattern is the maximum length of spec.name of a DNSNameResolver: 253 bytes and the final dot.
const maxPattern = 254

// ParsePattern parses the name in a rule, in any case, with or without its final dot, with U-labels or A-labels. It
// rejects every name that the custom resource could not hold, with an error for the author of the rule.
func ParsePattern(s string, o PatternOptions) (Pattern, error) {
	kind, rest := Exact, s
	switch {
	case strings.HasPrefix(s, "**."):
		if !o.Deep {
			return Pattern{}, fmt.Errorf("%q: names of several levels (\"**.\") are not enabled; \"*.\" matches exactly one "+
				"label", s)
		}
		kind, rest = Deep, s[3:]
	case strings.HasPrefix(s, "*."):
		kind, rest = Wildcard, s[2:]
	}
	if strings.Contains(rest, "*") {
		return Pattern{}, fmt.Errorf("%q: a \"*\" may only be the whole first label, as in \"*.example.com\"", s)
	}
	ascii, err := toASCII(rest)
	if err != nil {
		return Pattern{}, fmt.Errorf("%q: %w", s, err)
	}
	if err := checkHost(ascii); err != nil {
		return Pattern{}, fmt.Errorf("%q: %w", s, err)
	}
	name, err := dnsname.Parse(ascii)
	if err != nil {
		return Pattern{}, err
	}
	p := Pattern{kind, name}
	if len(p.String()) > maxPattern {
		return Pattern{}, fmt.Errorf("%q: the name is longer than 253 characters", s)
	}
	return p, nil
}

// toASCII converts U-labels to A-labels. It does not change ASCII names: checkHost validates them, with better error
// messages.
func toASCII(s string) (string, error) {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(s), nil
	}
	if !utf8.ValidString(s) {
		return "", errors.New("not an internationalized domain name: not UTF-8")
	}
	a, err := idna.Lookup.ToASCII(s)
	if err != nil {
		return "", fmt.Errorf("not an internationalized domain name: %w", err)
	}
	return a, nil
}

// checkHost checks s against the pattern of the custom resource's spec.name. Otherwise the API server would report a
// violation as a regular expression.
func checkHost(s string) error {
	s = strings.TrimSuffix(s, ".")
	if s == "" {
		return errors.New("the name is empty")
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		return fmt.Errorf("this is an address, not a name; write cidrSelector: %s", netip.PrefixFrom(addr, addr.BitLen()))
	}
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if err := checkLabel(l); err != nil {
			return err
		}
	}
	if len(labels) < 2 {
		return errors.New("a name needs at least two labels, as in example.com; whole top-level domains and single words " +
			"are refused")
	}
	return nil
}

func checkLabel(l string) error {
	switch {
	case l == "":
		return errors.New("two dots in a row, or a dot in front")
	case len(l) > dnsname.MaxLabel:
		return fmt.Errorf("label %q has %d characters, more than 63", l, len(l))
	case l[0] == '-' || l[len(l)-1] == '-':
		return fmt.Errorf("label %q begins or ends with a hyphen", l)
	}
	for i := range len(l) {
		if c := l[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return fmt.Errorf("label %q has a character other than letters, digits and hyphens", l)
		}
	}
	return nil
}

// Kind returns the kind of names that p matches.
func (p Pattern) Kind() PatternKind { return p.kind }

// Base returns the name of p without "*." or "**.".
func (p Pattern) Base() dnsname.Name { return p.base }

// IsZero reports whether p is the zero Pattern.
func (p Pattern) IsZero() bool { return p.kind == 0 }

// String returns p in lower case with its final dot: the spec.name of its custom resource, and the name in its address
// sets.
func (p Pattern) String() string {
	if p.IsZero() {
		return ""
	}
	return prefixes[p.kind] + p.base.String()
}

// Matches reports whether p matches n. The name "*.x" itself counts as a name below x.
func (p Pattern) Matches(n dnsname.Name) bool {
	switch p.kind {
	case Exact:
		return n == p.base
	case Wildcard:
		return !n.IsRoot() && n.Parent() == p.base
	case Deep:
		return n != p.base && n.IsIn(p.base)
	}
	return false
}

// safe are the characters with which Kubernetes encodes hashes: no vowels, and no digits that resemble letters.
const safe = "bcdfghjklmnpqrstvwxz2456789"

// ObjectName returns the metadata.name of p's custom resource, as in OVN-Kubernetes, so that either can replace the
// other. collisions is the number of object names that other patterns already use.
func ObjectName(p Pattern, collisions uint32) string {
	h := fnv.New32a()
	// Kubernetes hashes objects as printed by spew; here it is a Go string.
	h.Write([]byte("(string)" + p.String()))
	if collisions != 0 {
		var b [8]byte
		binary.LittleEndian.PutUint32(b[:], collisions)
		h.Write(b[:])
	}
	digits := []byte(strconv.FormatUint(uint64(h.Sum32()), 10))
	for i, d := range digits {
		digits[i] = safe[int(d)%len(safe)]
	}
	return "dns-" + string(digits)
}
