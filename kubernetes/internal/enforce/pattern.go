// Package enforce holds egress firewalls as values: rules, the names in them, what is wrong with them, and which rule
// decides about a packet.
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

// PatternKind says which names a Pattern stands for.
type PatternKind uint8

const (
	Exact    PatternKind = iota + 1 // one name
	Wildcard                        // "*.": names with exactly one label more
	Deep                            // "**.": names with one label more or several; ours, not in the stock API
)

var prefixes = [...]string{Exact: "", Wildcard: "*.", Deep: "**."}

// Pattern is the name in a rule. It is comparable, and two spellings of one name give equal patterns. The zero Pattern is
// none.
type Pattern struct {
	kind PatternKind
	base dnsname.Name // without "*." or "**."
}

// PatternOptions are what an administrator may turn on.
type PatternOptions struct {
	Deep bool // accept "**."
}

// maxPattern is the longest spec.name of a DNSNameResolver: 253 octets and the final dot.
const maxPattern = 254

// ParsePattern reads a name of a rule, in any case, with or without its final dot, with U-labels or A-labels. It refuses
// all that the custom resource of the name could not hold, and says why in words for the one who wrote it.
func ParsePattern(s string, o PatternOptions) (Pattern, error) {
	kind, rest := Exact, s
	switch {
	case strings.HasPrefix(s, "**."):
		if !o.Deep {
			return Pattern{}, fmt.Errorf("%q: names of several levels (\"**.\") are not turned on; \"*.\" stands for exactly one label", s)
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

// toASCII turns U-labels into A-labels. Names that are ASCII already are not touched: what is in them is judged by
// checkHost, with better words.
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

// checkHost holds s to the pattern of the custom resource's spec.name, whose violation would otherwise surface as a regular
// expression in an error of the API server.
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
		return errors.New("a name needs at least two labels, as in example.com; whole top-level domains and single words are refused")
	}
	return nil
}

func checkLabel(l string) error {
	switch {
	case l == "":
		return errors.New("two dots in a row, or a dot in front")
	case len(l) > dnsname.MaxLabel:
		return fmt.Errorf("label %q has %d characters; 63 are the most", l, len(l))
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

// Kind tells which names p stands for.
func (p Pattern) Kind() PatternKind { return p.kind }

// Base is the name of p without "*." or "**.".
func (p Pattern) Base() dnsname.Name { return p.base }

// IsZero reports whether p is no pattern at all.
func (p Pattern) IsZero() bool { return p.kind == 0 }

// String is p in lower case with its final dot: the spec.name of its custom resource, and the name in its address sets.
func (p Pattern) String() string {
	if p.IsZero() {
		return ""
	}
	return prefixes[p.kind] + p.base.String()
}

// Matches reports whether p stands for n. A question for "*.x" itself is one for a name below x.
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

// safe are the characters Kubernetes spells hashes with: no vowels, no digits that look like letters.
const safe = "bcdfghjklmnpqrstvwxz2456789"

// ObjectName is the metadata.name of p's custom resource, as OVN-Kubernetes names it, so that either may take over
// from the other. collisions tells how many names of other patterns stood in the way.
func ObjectName(p Pattern, collisions uint32) string {
	h := fnv.New32a()
	// What is hashed is a Go string as spew prints it, which is how Kubernetes hashes objects.
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
