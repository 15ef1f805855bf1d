package zonefile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// words iterates over the words of an entry.
type words struct {
	text []byte
	at   int
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// next returns the next word and its offset. At the end the word is empty.
func (w *words) next() (word []byte, off int) {
	for w.at < len(w.text) && isBlank(w.text[w.at]) {
		w.at++
	}
	off = w.at
	quoted := false
	for ; w.at < len(w.text); w.at++ {
		c := w.text[w.at]
		if c == '\\' && w.at+1 < len(w.text) {
			w.at++
		} else if c == '"' {
			quoted = !quoted
		} else if isBlank(c) && !quoted {
			break
		}
	}
	return w.text[off:w.at], off
}

// end returns a fault when words follow a directive.
func (w *words) end(directive string) *fault {
	if word, off := w.next(); len(word) > 0 {
		return &fault{off: off, reason: fmt.Sprintf("unexpected %s after %s", show(word), directive)}
	}
	return nil
}

// record reads `[owner] [TTL] [class] type data`, with TTL and class in either order.
func (f *file) record(text []byte) (Record, *fault) {
	w := &words{text: text}
	if !isBlank(text[0]) {
		word, off := w.next()
		n, bad := f.readName(word, off)
		if bad != nil {
			return Record{}, bad
		}
		f.owner = n
	}
	t, ttl, hasTTL, bad := f.header(w)
	if bad != nil {
		return Record{}, bad
	}
	if f.owner.IsZero() {
		return Record{}, &fault{reason: "the first record has no owner name",
			hint: "a line that begins with a blank belongs to the name before it"}
	}
	if f.origin.IsZero() && t == rr.TypeSOA {
		f.origin = f.owner
	}
	switch {
	case hasTTL && !f.ttlFixed:
		f.ttl, f.hasTTL = ttl, true
	case !hasTTL && !f.hasTTL:
		return Record{}, &fault{reason: "the record has no TTL and there is no default",
			hint: "begin the file with a line such as $TTL 1h"}
	case !hasTTL:
		ttl = f.ttl
	}
	data, err := rr.ParseDataIn(t, string(text[w.at:]), f.origin.Name)
	if err != nil {
		return Record{}, dataFault(text, w.at, t, err)
	}
	return Record{Name: f.owner.Name, Spelling: f.owner.spelling, Type: t, TTL: ttl, Data: data}, nil
}

// header reads the words between the owner and the data.
func (f *file) header(w *words) (t rr.Type, ttl uint32, hasTTL bool, bad *fault) {
	hasClass := false
	for {
		word, off := w.next()
		switch {
		case len(word) == 0:
			return 0, 0, false, &fault{off: off, reason: "the record has no type"}
		case '0' <= word[0] && word[0] <= '9' && !hasTTL:
			if ttl, bad = parseTTL(word, off); bad != nil {
				return 0, 0, false, bad
			}
			hasTTL = true
		case !hasClass && isClass(word):
			if !isIN(word) {
				return 0, 0, false, &fault{off: off, reason: fmt.Sprintf("class %s is not served", show(word)),
					hint: "only class IN is; the class may be left out"}
			}
			hasClass = true
		default:
			t, err := rr.ParseType(string(word))
			if err != nil {
				return 0, 0, false, &fault{off: off, reason: "unknown record type " + show(word),
					hint: `a type without a name is written TYPE and its number, its data \# and hexadecimal`}
			}
			return t, ttl, hasTTL, nil
		}
	}
}

func isIN(word []byte) bool {
	return len(word) == 2 && word[0]|0x20 == 'i' && word[1]|0x20 == 'n' || strings.EqualFold(string(word), "CLASS1")
}

// isClass reports whether word is a class of RFC 1035 §3.2.4 or RFC 3597 §5. ANY is not included: it is also refused
// as a type.
func isClass(word []byte) bool {
	if isIN(word) {
		return true
	}
	if c := word[0] | 0x20; c != 'c' && c != 'h' && c != 'n' {
		return false // quick test for most types
	}
	switch s := strings.ToUpper(string(word)); s {
	case "CS", "CH", "HS", "CHAOS", "NONE":
		return true
	default:
		return strings.HasPrefix(s, "CLASS")
	}
}

// readName reads an owner or origin.
func (f *file) readName(word []byte, off int) (spelledName, *fault) {
	if string(word) == f.lastOwner.text && f.lastOwner.origin == f.origin {
		return f.lastOwner.name, nil
	}
	if i := bytes.IndexByte(word, '"'); i >= 0 && (i == 0 || word[i-1] != '\\') {
		return spelledName{}, &fault{off: off + i, reason: "a name is not quoted", hint: `a blank in a name is written \032`}
	}
	n, err := dnsname.ParseIn(string(word), f.origin.Name)
	if err != nil {
		bad := &fault{off: off, reason: err.Error()}
		if f.origin.IsZero() {
			bad.hint = "begin the file with $ORIGIN and the zone's name, or give the zone's name with the file"
		}
		return spelledName{}, bad
	}
	name := spelledName{n, f.spelling(word, n)}
	f.lastOwner = cachedOwner{string(word), f.origin, name}
	return name, nil
}

// spelling returns the spelling of the name n in a file.
func (f *file) spelling(word []byte, n dnsname.Name) string {
	if f.origin.spelling == "" && !hasUpper(word) {
		return ""
	}
	text := string(word)
	if text == "@" {
		return f.origin.spelling
	}
	if alone, err := dnsname.Parse(text); err != nil || alone != n { // relative to the origin
		text += "." + cmp.Or(f.origin.spelling, f.origin.String())
	} else if !strings.HasSuffix(text, ".") {
		text += "."
	}
	if same, err := dnsname.Parse(text); err != nil || same != n || !hasUpper([]byte(text)) {
		return ""
	}
	return text
}

func hasUpper(name []byte) bool {
	return bytes.ContainsFunc(name, func(r rune) bool { return 'A' <= r && r <= 'Z' })
}

// parseTTL reads seconds, or numbers with units as BIND does: 1h30m.
func parseTTL(word []byte, off int) (uint32, *fault) {
	broken := &fault{off: off, reason: show(word) + " is not a TTL",
		hint: "a TTL is a number of seconds, or has units such as 1h30m"}
	total, n, digits, units := uint64(0), uint64(0), 0, false
	for i, c := range word {
		if '0' <= c && c <= '9' {
			n = min(n*10+uint64(c-'0'), math.MaxUint32)
			digits++
			continue
		}
		at := strings.IndexByte("smhdw", c|0x20)
		if at < 0 || digits == 0 || i > 32 {
			return 0, broken
		}
		total += n * [...]uint64{1, 60, 3600, 86400, 604800}[at]
		n, digits, units = 0, 0, true
	}
	if digits > 0 && units {
		return 0, broken // 1h30: seconds or minutes?
	}
	if total += n; total > rr.MaxTTL {
		return 0, &fault{off: off, reason: fmt.Sprintf("TTL %s is larger than 2147483647 seconds (RFC 2181)", show(word))}
	}
	return uint32(total), nil
}

// dataFault returns the fault for an error in the data, which begins at off of text.
func dataFault(text []byte, off int, t rr.Type, err error) *fault {
	var syntax *rr.SyntaxError
	if !errors.As(err, &syntax) {
		return &fault{off: off, reason: err.Error(), err: err}
	}
	bad := &fault{off: off + syntax.Offset, reason: syntax.Reason}
	if a, err := netip.ParseAddr(string(bytes.TrimSpace(text[off:]))); err == nil && a.Zone() == "" {
		switch {
		case t == rr.TypeA && a.Is6():
			bad.hint = "an IPv6 address has type AAAA"
		case t == rr.TypeAAAA && a.Is4():
			bad.hint = "an IPv4 address has type A"
		}
	}
	return bad
}

// show returns a word for an error message.
func show(word []byte) string {
	const most = 64
	if len(word) > most {
		return fmt.Sprintf("%q...", word[:most])
	}
	return fmt.Sprintf("%q", word)
}
