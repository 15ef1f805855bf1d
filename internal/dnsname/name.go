// Package dnsname holds domain names in one canonical form, so that no decision depends on a raw string.
//
// Start with Parse and FromWire in name.go: both return a Name. order.go has the canonical order and the store key.
package dnsname

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of RFC 1035 §2.3.4.
const (
	MaxLabel = 63
	MaxWire  = 255
)

// Name is a fully qualified domain name in uncompressed wire form, in lower case, with the root label.
//
// Wire form, because escapes make text ambiguous: `a\.b.test.` has two labels and `a.b.test.` has three. A suffix
// test on text would confuse the two, and with them their owners. Lower case, because RFC 4343 compares names without
// case. A reply repeats the client's letter case from the question, not from a Name. Names are comparable with == and
// usable as map keys. The zero Name is not a name; see IsZero.
type Name struct{ wire string }

// Root is the name of the DNS root, ".".
var Root = Name{"\x00"}

var (
	errEmpty      = errors.New("name is empty")
	errEmptyLabel = errors.New("name has an empty label")
	errLongLabel  = errors.New("name has a label of more than 63 bytes")
	errLongName   = errors.New("name is longer than 255 bytes")
	errEscape     = errors.New("name has a broken escape")
	errTruncated  = errors.New("name is cut short")
	errPointer    = errors.New("name is compressed")
	errRelative   = errors.New("name has no final dot and no origin is known")
)

// Parse parses a name in presentation form (RFC 1035 §5.1, RFC 4343 §2.1). The final dot is optional: the name is
// fully qualified with or without it.
func Parse(s string) (Name, error) {
	if s == "@" { // "@" means the origin only where there is one; here it is an ordinary label
		return Name{"\x01@\x00"}, nil
	}
	return ParseIn(s, Root)
}

// ParseIn is like Parse, but a name without a final dot is relative to origin, and "@" is origin itself. With the
// zero origin both are errors.
func ParseIn(s string, origin Name) (Name, error) {
	if s == "@" && !origin.IsZero() {
		return origin, nil
	}
	w, absolute, err := appendWire(make([]byte, 0, len(s)+2+len(origin.wire)), s)
	if err != nil {
		return Name{}, fmt.Errorf("%w: %q", err, s)
	}
	switch {
	case absolute:
		w = append(w, 0)
	case origin.IsZero():
		return Name{}, fmt.Errorf("%w: %q", errRelative, s)
	default:
		w = append(w, origin.wire...)
	}
	if len(w) > MaxWire {
		return Name{}, fmt.Errorf("%w: %q", errLongName, s)
	}
	return Name{string(w)}, nil
}

// MustParse is like Parse but panics on an error. It is for constant names in programs and tests.
func MustParse(s string) Name {
	n, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return n
}

// appendWire appends the labels of s without a closing root label, and reports whether s ends in a dot.
func appendWire(w []byte, s string) (_ []byte, absolute bool, err error) {
	if s == "" {
		return nil, false, errEmpty
	}
	if s == "." {
		return w, true, nil
	}
	start := len(w)
	w = append(w, 0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '.' {
			n := len(w) - start - 1
			if n == 0 {
				return nil, false, errEmptyLabel
			}
			w[start] = byte(n)
			if i == len(s)-1 {
				return w, true, nil
			}
			start = len(w)
			w = append(w, 0)
			continue
		}
		if c == '\\' {
			var n int
			c, n, err = unescape(s[i+1:])
			if err != nil {
				return nil, false, err
			}
			i += n
		}
		w = append(w, Lower(c))
		if len(w)-start-1 > MaxLabel {
			return nil, false, errLongLabel
		}
		if len(w) > MaxWire {
			return nil, false, errLongName
		}
	}
	w[start] = byte(len(w) - start - 1)
	return w, false, nil
}

// unescape returns the byte of the escape after a backslash, and how many bytes of s belong to it.
func unescape(s string) (byte, int, error) {
	if s == "" {
		return 0, 0, errEscape
	}
	if s[0] < '0' || s[0] > '9' {
		return s[0], 1, nil
	}
	if len(s) < 3 || s[1] < '0' || s[1] > '9' || s[2] < '0' || s[2] > '9' {
		return 0, 0, errEscape
	}
	v := int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
	if v > 255 {
		return 0, 0, errEscape
	}
	return byte(v), 3, nil
}

// FromWire reads one uncompressed name from the front of b and returns its length.
func FromWire(b []byte) (Name, int, error) {
	n := 0
	for {
		if n >= len(b) {
			return Name{}, 0, errTruncated
		}
		l := int(b[n])
		if l > MaxLabel {
			return Name{}, 0, errPointer
		}
		n += 1 + l
		if n > MaxWire {
			return Name{}, 0, errLongName
		}
		if l == 0 {
			break
		}
	}
	return Name{string(AppendLower(make([]byte, 0, MaxWire), b[:n]))}, n, nil
}

// FromCanonical returns the Name of a canonical wire form, such as Wire returns. It does not check it.
func FromCanonical(wire string) Name { return Name{wire} }

// Wire returns the canonical wire form, with the root label.
func (n Name) Wire() string { return n.wire }

// IsZero reports whether n is the zero Name.
func (n Name) IsZero() bool { return n.wire == "" }

// IsRoot reports whether n is ".".
func (n Name) IsRoot() bool { return n.wire == "\x00" }

// IsWildcard reports whether the leftmost label is exactly "*" (RFC 4592 §2.1.1).
func (n Name) IsWildcard() bool { return strings.HasPrefix(n.wire, "\x01*") }

// NumLabels returns the number of labels without the root.
func (n Name) NumLabels() int {
	c := 0
	for i := 0; i < len(n.wire) && n.wire[i] != 0; i += 1 + int(n.wire[i]) {
		c++
	}
	return c
}

// Parent returns n without its leftmost label. The parent of the root is the zero Name.
func (n Name) Parent() Name {
	if len(n.wire) <= 1 {
		return Name{}
	}
	return Name{n.wire[1+int(n.wire[0]):]}
}

// Label returns the bytes of the leftmost label. It is empty for the root.
func (n Name) Label() string {
	if len(n.wire) <= 1 {
		return ""
	}
	return n.wire[1 : 1+int(n.wire[0])]
}

// Child returns n with label in front. It fails when the result would be too long.
func (n Name) Child(label string) (Name, error) {
	if label == "" {
		return Name{}, errEmptyLabel
	}
	if len(label) > MaxLabel {
		return Name{}, errLongLabel
	}
	if 1+len(label)+len(n.wire) > MaxWire {
		return Name{}, errLongName
	}
	b := make([]byte, 0, 1+len(label)+len(n.wire))
	b = append(b, byte(len(label)))
	for i := range len(label) {
		b = append(b, Lower(label[i]))
	}
	return Name{string(append(b, n.wire...))}, nil
}

// IsIn reports whether n is zone or below it, on label boundaries.
func (n Name) IsIn(zone Name) bool {
	if zone.wire == "" || !strings.HasSuffix(n.wire, zone.wire) {
		return false
	}
	cut := len(n.wire) - len(zone.wire)
	i := 0
	for i < cut {
		i += 1 + int(n.wire[i])
	}
	return i == cut
}

// In returns the labels of n below zone, in wire form without a closing root label. A zone stores its names in this
// form. n must be in zone.
func (n Name) In(zone Name) string { return n.wire[:len(n.wire)-len(zone.wire)] }

// String returns the presentation form with its final dot.
func (n Name) String() string {
	if n.wire == "" {
		return ""
	}
	if n.wire == "\x00" {
		return "."
	}
	b := make([]byte, 0, len(n.wire)+8)
	for i := 0; n.wire[i] != 0; {
		l := int(n.wire[i])
		b = appendLabel(b, n.wire[i+1:i+1+l])
		b = append(b, '.')
		i += 1 + l
	}
	return string(b)
}

// MarshalText implements encoding.TextMarshaler. It returns the presentation form, or empty text for the zero Name.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Empty text is the zero Name.
func (n *Name) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*n = Name{}
		return nil
	}
	*n, err = Parse(string(text))
	return err
}

// appendLabel appends one label in a form that Parse and readers of master files read back.
func appendLabel(b []byte, label string) []byte {
	for i := range len(label) {
		switch c := label[i]; c {
		case '.', '\\', '"', ';', '(', ')', '@', '$', ' ', '\'':
			b = append(b, '\\')
			if c == ' ' {
				b = append(b, '0', '3', '2')
				continue
			}
			b = append(b, c)
		default:
			if c < '!' || c > '~' {
				b = append(b, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
				continue
			}
			b = append(b, c)
		}
	}
	return b
}
