package designate

import (
	"bytes"
	"encoding/json"
)

// plainObject takes a JSON object apart whose keys have no escapes, as the body of nearly every change; nil for all else.
// encoding/json makes two dozen small things on the way to the same, one of which is read.
func plainObject(b []byte) map[string]json.RawMessage {
	b = trimJSON(b)
	if len(b) < 2 || b[0] != '{' || !json.Valid(b) {
		return nil
	}
	return plainFields(b)
}

// plainFields is plainObject for what is known to be an object: every value ends, and what is not a key's quote is the end.
func plainFields(b []byte) map[string]json.RawMessage {
	fields := make(map[string]json.RawMessage, 4)
	for b = trimJSON(b[1:]); b[0] == '"'; b = trimJSON(b) {
		n := stringEnd(b)
		key := b[1 : n-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			return nil
		}
		b = trimJSON(trimJSON(b[n:])[1:]) // the colon
		n = valueEnd(b)
		fields[string(key)] = json.RawMessage(b[:n:n])
		if b = trimJSON(b[n:]); b[0] == ',' {
			b = b[1:]
		}
	}
	return fields
}

// plainItems takes a list apart that is known to be JSON; false for what is none.
func plainItems(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	if len(raw) < 2 || raw[0] != '[' {
		return nil, false
	}
	for b := trimJSON(raw[1:]); b[0] != ']'; b = trimJSON(b) {
		n := valueEnd(b)
		list = append(list, json.RawMessage(b[:n:n]))
		if b = trimJSON(b[n:]); b[0] == ',' {
			b = b[1:]
		}
	}
	return list, true
}

// plainText reads a string without escapes, of a body that is UTF-8; false for all else.
func plainText(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 {
		return "", false
	}
	return string(raw[1 : len(raw)-1]), true
}

// plainTexts reads a list of strings without escapes, as encoding/json gave it; false for all else.
func plainTexts(raw json.RawMessage) (list []string, ok bool) {
	if len(raw) < 2 || raw[0] != '[' {
		return nil, false
	}
	list = []string{}
	for b := trimJSON(raw[1:]); b[0] != ']'; b = trimJSON(b) {
		if b[0] != '"' {
			return nil, false
		}
		n := stringEnd(b)
		if bytes.IndexByte(b[:n], '\\') >= 0 {
			return nil, false
		}
		list = append(list, string(b[1:n-1]))
		if b = trimJSON(b[n:]); b[0] == ',' {
			b = b[1:]
		}
	}
	return list, true
}

// trimJSON drops the white space of JSON in front.
func trimJSON(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// stringEnd is the length of the string that b begins with.
func stringEnd(b []byte) int {
	for i := 1; ; i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// valueEnd is the length of the value that b begins with.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return len(bytes.TrimRight(b[:i], " \n\t\r"))
			}
			depth--
		case ',':
			if depth == 0 {
				return len(bytes.TrimRight(b[:i], " \n\t\r"))
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
}
