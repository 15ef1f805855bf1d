package rr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// SyntaxError is an error in record data in presentation form, with its position.
type SyntaxError struct {
	Offset int // offset in the given text, in bytes
	Reason string
}

func (e *SyntaxError) Error() string { return e.Reason }

// checkText refuses text that the library would accept without an error. The library drops parentheses and everything
// after a semicolon, and joins the words around them. It lets a quoted string run to the end of the input, and reads
// \999 as another byte.
func checkText(text string) error {
	quote := -1 // offset of the open quoted string
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			n, ok := Escape(text[i+1:])
			if !ok {
				return &SyntaxError{i, `broken escape: a backslash wants one character or three digits up to 255 after it`}
			}
			i += n
		case c == '"' && quote < 0:
			quote = i
		case c == '"':
			quote = -1
		case c < ' ' && c != '\t' || c == 0x7f:
			return &SyntaxError{i, fmt.Sprintf(`control character 0x%02x: write it as \%03d`, c, c)}
		case quote < 0 && (c == ';' || c == '(' || c == ')'):
			return &SyntaxError{i, fmt.Sprintf("%q outside quotes: quote the string, or put a backslash before it", c)}
		}
	}
	if quote >= 0 {
		return &SyntaxError{quote, "a quoted string is not closed"}
	}
	return nil
}

// parseNAPTR parses NAPTR data. Its flags, service and regular expression are character strings, which need no quotes
// (RFC 1035 §5.1), but the library wants them.
func parseNAPTR(text string, origin dnsname.Name) (string, error) {
	const first, last = 2, 4 // positions of the strings among the words
	quoted := make([]byte, 0, len(text)+2*(last-first+1))
	for i, rest := 0, text; rest != ""; i++ {
		word := rest[:wordEnd(rest)]
		rest = rest[len(word):]
		blanks := len(word) - len(strings.TrimLeft(word, " \t"))
		quoted, word = append(quoted, word[:blanks]...), word[blanks:]
		if first <= i && i <= last && word != "" && word[0] != '"' {
			word = `"` + word + `"`
		}
		quoted = append(quoted, word...)
	}
	d, err := parseOther(typeNAPTR, string(quoted), origin)
	if s, ok := errors.AsType[*SyntaxError](err); ok {
		s.Offset = min(s.Offset, len(text))
	}
	return d, err
}

// wordEnd returns the length of the first word of s with the blanks before it.
func wordEnd(s string) int {
	inWord, inQuotes := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
			inWord = true
		case c == '"':
			inWord, inQuotes = true, !inQuotes
		case c != ' ' && c != '\t':
			inWord = true
		case inWord && !inQuotes:
			return i
		}
	}
	return len(s)
}

// Escape returns how many bytes of s belong to an escape (RFC 1035 §5.1). s is the text after the backslash.
func Escape[T ~string | ~[]byte](s T) (int, bool) {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	switch {
	case len(s) == 0 || s[0] < ' ':
		return 0, false
	case !digit(s[0]):
		return 1, true
	case len(s) < 3 || !digit(s[1]) || !digit(s[2]):
		return 0, false
	}
	v := int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
	return 3, v <= 255
}

// reword turns the library's error into one about text. The library's message is `dns: what: "token" at line:
// 1:column`. The column counts from the start of the line that we passed, which has before bytes in front of text.
func reword(t Type, text string, before int, err error) error {
	what, token, column := splitError(err)
	e := &SyntaxError{Offset: max(0, min(column-before-len(token), len(text)))}
	// The library's column is that of the token's last byte, or of the one after it.
	if token != "" && !strings.HasPrefix(text[e.Offset:], token) {
		if e.Offset < len(text) && strings.HasPrefix(text[e.Offset+1:], token) {
			e.Offset++
		} else {
			e.Offset = max(0, strings.Index(text, token))
		}
	}
	field, bad := strings.CutPrefix(what, "bad "+t.String()+" ")
	switch {
	case strings.TrimSpace(token) == "":
		e.Offset = len(strings.TrimRight(text, " \t"))
		e.Reason = fmt.Sprintf("%s record ends too early: its data is not complete", t)
	case what == "garbage after rdata":
		e.Reason = fmt.Sprintf("unexpected %s after the data of the %s record", quoted(token), t)
	case bad && field != "":
		e.Reason = fmt.Sprintf("%s record: %s is not a valid %s", t, quoted(token), field)
	default:
		e.Reason = fmt.Sprintf("%s record: %s: %s", t, what, quoted(token))
	}
	return e
}

// splitError splits the library's message, because its error type has no accessors.
func splitError(err error) (what, token string, column int) {
	what = strings.TrimPrefix(err.Error(), "dns: ")
	if i := strings.LastIndex(what, " at line: "); i >= 0 {
		at := what[i+len(" at line: "):]
		what = what[:i]
		_, col, _ := strings.Cut(at, ":")
		column, _ = strconv.Atoi(col)
	}
	for i := 0; i < len(what); i++ {
		if !strings.HasPrefix(what[i:], `: "`) {
			continue
		}
		if tok, err := strconv.Unquote(what[i+2:]); err == nil {
			return what[:i], tok, column
		}
	}
	return what, "", column
}

// quoted returns a token for an error message, shortened because it may be as long as a record.
func quoted(token string) string {
	const most = 64
	if len(token) > most {
		return strconv.Quote(token[:most]) + "..."
	}
	return strconv.Quote(token)
}
