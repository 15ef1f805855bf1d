// Package strictjson refuses JSON that two programs may read differently. Start with Unmarshal.
package strictjson

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/zone"
)

// maxDepth limits nested arrays and objects. The deepest body of our APIs, a login, has seven.
const maxDepth = 16

// Whole is the field of an error about the whole text.
const Whole = "body"

// Unmarshal is json.Unmarshal for request bodies and other untrusted input. It also refuses text that is not UTF-8,
// duplicate keys of an object, and very deep nesting, with a *zone.InvalidError.
//
// encoding/json takes the last of two equal keys, and ignores case when it matches keys with struct fields. A gateway
// or an audit tool that takes the first key, or only the exact one, would check another request than the one that is
// executed. Keys that differ only in case therefore count as equal.
func Unmarshal(b []byte, into any) error {
	if err := json.Unmarshal(b, into); err != nil {
		return err
	}
	return check(b)
}

// level is an array or object that is not closed yet.
type level struct {
	keys map[string]bool // folded keys of an object; nil for an array
	key  string          // the last key of an object
	item int             // index of the current element of an array
}

// check refuses valid JSON that is ambiguous.
func check(b []byte) error {
	if !utf8.Valid(b) {
		return &zone.InvalidError{Field: Whole, Reason: "is not UTF-8"}
	}
	var open []level
	isKey := false // the next string is a key
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if len(open) == maxDepth {
				return &zone.InvalidError{Field: Whole,
					Reason: fmt.Sprintf("has more than %d arrays and objects in each other", maxDepth)}
			}
			open = append(open, level{})
			if isKey = b[i] == '{'; isKey {
				open[len(open)-1].keys = map[string]bool{}
			}
		case '}', ']':
			open, isKey = open[:len(open)-1], false
		case ',':
			top := &open[len(open)-1]
			isKey = top.keys != nil
			top.item++
		case '"':
			end := stringEnd(b, i)
			if isKey && !open[len(open)-1].add(b[i:end]) {
				return &zone.InvalidError{Field: path(open), Reason: "is there twice"}
			}
			i, isKey = end-1, false
		}
	}
	return nil
}

// stringEnd returns the offset after the string that begins at an offset.
func stringEnd(b []byte, at int) int {
	for i := at + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// add adds a key. It returns false when the object has it already.
func (l *level) add(quoted []byte) bool {
	key := string(quoted[1 : len(quoted)-1])
	if strings.Contains(key, `\`) {
		_ = json.Unmarshal(quoted, &key) // the whole text was valid JSON
	}
	l.key = key
	if key = fold(key); l.keys[key] {
		return false
	}
	l.keys[key] = true
	return true
}

// fold returns the same text for keys that encoding/json matches with the same field, also with ſ and K (Kelvin).
func fold(key string) string {
	if strings.IndexFunc(key, func(c rune) bool { return 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf }) < 0 {
		return key
	}
	return strings.ToLower(strings.ToUpper(key))
}

// path returns the path of the last key, such as "changes[2].ttl".
func path(open []level) string {
	var s strings.Builder
	for _, l := range open {
		switch {
		case l.keys == nil:
			fmt.Fprintf(&s, "[%d]", l.item)
		case s.Len() > 0:
			fmt.Fprintf(&s, ".%.64s", l.key)
		default:
			fmt.Fprintf(&s, "%.64s", l.key)
		}
	}
	return cmp.Or(s.String(), `""`)
}
