package registry

import (
	"regexp"
	"strings"
	"sync"
)

// field is a value of a WHOIS text, which has no standard format (RFC 3912 §1). It is a line "key: value", a line
// "[key] value", or a line below a heading.
type field struct {
	section string // the heading above it, in lower case; may be empty
	key     string // in lower case; empty for a line without a key below a heading
	value   string
	block   int // number of the block; blank lines separate blocks
}

// bracket matches a line of JPRS: "a. [Domain Name]   EXAMPLE.JP".
var bracket = lazy(`^(?:[a-z]\. ?)?\[([^\]]{1,40})\]\s*(.*)$`)

// scanner splits lines into fields.
type scanner struct {
	fields  []field
	section string
	indent  int // indentation of the heading
	block   int
}

// maxLines limits the length of a text. The longest valid ones consist mostly of terms of use.
const maxLines = 2000

// scanWhois splits a text into fields. It drops comments.
func scanWhois(text string) []field {
	lines := strings.SplitN(text, "\n", maxLines+1)
	if len(lines) > maxLines {
		lines = lines[:maxLines]
	}
	var s scanner
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			s.block++
			// A heading may be followed by a blank line. A blank line after any other line ends the section.
			if n := len(s.fields); n > 0 && s.fields[n-1].section == s.section {
				s.section = ""
			}
		case strings.HasPrefix(trimmed, "%") || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ">>>"):
		default:
			s.line(indentOf(line), trimmed, i+1 < len(lines) && indentOf(lines[i+1]) > indentOf(line))
		}
	}
	return s.fields
}

// indentOf returns the indentation of a line.
func indentOf(line string) int {
	return len(line) - len(strings.TrimLeft(line, " \t"))
}

// line reads one line. deeper reports whether the next line is indented more.
func (s *scanner) line(indent int, line string, deeper bool) {
	inside := s.section != "" && indent > s.indent
	if !inside {
		s.section = ""
	}
	key, value, ok := keyValue(line)
	switch {
	case ok && value == "":
		s.section, s.indent = key, indent
	case ok:
		s.add(key, value)
		if strings.HasPrefix(line, "[") || bracket().MatchString(line) {
			s.section, s.indent = key, indent // further values may follow on separate lines
		}
	case inside && s.open():
		s.fields[len(s.fields)-1].value += " " + line
	case inside:
		s.add("", line)
	case deeper && len(strings.Fields(line)) <= 4:
		s.section, s.indent = strings.ToLower(line), indent
	}
}

// open reports whether the last value has a parenthesis that a later line closes, as in DS records.
func (s *scanner) open() bool {
	n := len(s.fields)
	if n == 0 {
		return false
	}
	last := s.fields[n-1].value
	return len(last) < maxWords && strings.Count(last, "(") > strings.Count(last, ")")
}

func (s *scanner) add(key, value string) {
	s.fields = append(s.fields, field{s.section, key, value, s.block})
}

// keyValue splits a line "key: value", "key....: value" or "[key] value".
func keyValue(line string) (key, value string, ok bool) {
	if m := bracket().FindStringSubmatch(line); m != nil {
		return strings.ToLower(m[1]), strings.TrimSpace(m[2]), true
	}
	key, value, ok = strings.Cut(line, ":")
	key = strings.ToLower(strings.TrimRight(key, " \t."))
	words := strings.Fields(key)
	if !ok || len(words) == 0 || len(words) > 6 || len(key) > 50 || strings.HasPrefix(value, "//") {
		return "", "", false
	}
	if len(words) > 1 && hostName(words[0]) != "" { // a name server and its IPv6 address
		return "", "", false
	}
	return strings.Join(words, " "), strings.TrimSpace(value), true
}

// lazy returns a function that compiles an expression at its first call. A server that never queries a registry does
// not need the memory.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
