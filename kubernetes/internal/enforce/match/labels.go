package match

import "github.com/nameplane/nameplane/internal/dnsname"

// labels are the labels of a name in lower case and without escapes, on the caller's stack. dnsname.Parse does the
// same, but allocates; FuzzAppend compares the two.
type labels struct {
	text [dnsname.MaxWire]byte
	ends [dnsname.MaxWire/2 + 1]uint8 // end of each label in bytes
	n    int
}

func (l *labels) label(i int) []byte {
	from := 0
	if i > 0 {
		from = int(l.ends[i-1])
	}
	return l.text[from:l.ends[i]]
}

// read parses a name in presentation form. It reports whether it is a valid name other than the root.
func (l *labels) read(s string) bool {
	at, start := 0, 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '.' {
			if at == start || !l.end(at, start) {
				return false
			}
			start = at
			continue
		}
		if c == '\\' {
			var took int
			if c, took = unescape(s[i+1:]); took == 0 {
				return false
			}
			i += took
		}
		// The wire form has a length byte for each label and one for the root.
		if at+l.n+3 > dnsname.MaxWire {
			return false
		}
		l.text[at] = dnsname.Lower(c)
		at++
	}
	return at == start && l.n > 0 || at > start && l.end(at, start)
}

func (l *labels) end(at, start int) bool {
	if at-start > dnsname.MaxLabel {
		return false
	}
	l.ends[l.n] = uint8(at)
	l.n++
	return true
}

// unescape parses the text after a backslash (RFC 1035 §5.1). It returns the number of characters, or 0 if the escape
// is invalid.
func unescape(s string) (byte, int) {
	if s == "" {
		return 0, 0
	}
	if s[0] < '0' || s[0] > '9' {
		return s[0], 1
	}
	if len(s) < 3 || s[1] < '0' || s[1] > '9' || s[2] < '0' || s[2] > '9' {
		return 0, 0
	}
	v := int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
	if v > 255 {
		return 0, 0
	}
	return byte(v), 3
}
