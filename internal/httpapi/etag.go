package httpapi

import "strings"

// HasTag reports whether the values of an If-Match header contain an entity tag for which same returns true, or "*".
func HasTag(header []string, same func(tag string) bool) bool {
	for t := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if t = strings.TrimSpace(t); t == "*" || same(t) {
			return true
		}
	}
	return false
}

// HasWeakTag reports whether the values of an If-None-Match header contain an entity tag, or "*". The comparison is
// weak (RFC 9110 §13.1.2).
func HasWeakTag(header []string, tag string) bool {
	return HasTag(header, func(t string) bool { return strings.TrimPrefix(t, "W/") == tag })
}
