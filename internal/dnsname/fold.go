package dnsname

// folded maps A-Z to a-z (RFC 4343 §3). A table load costs less than two comparisons for each byte of each query.
var folded = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

// Lower returns the lower case of an ASCII letter, and any other byte unchanged. Length bytes of names in wire form
// are below 'A', so a name in wire form can be converted byte by byte.
func Lower(c byte) byte { return folded[c] }

// AppendLower appends the lower case of a name in wire form, or of a part of one.
func AppendLower(dst, name []byte) []byte {
	at := len(dst)
	dst = append(dst, name...)
	for i, c := range dst[at:] {
		dst[at+i] = folded[c]
	}
	return dst
}

// EqualFold reports whether two names in wire form are equal without regard to case.
func EqualFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if folded[c] != folded[b[i]] {
			return false
		}
	}
	return true
}
