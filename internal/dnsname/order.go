package dnsname

import "bytes"

// Compare compares names in canonical order (RFC 4034 §6.1): by label from the right, a name before everything below
// it.
func (n Name) Compare(m Name) int {
	return bytes.Compare(n.AppendKey(nil), m.AppendKey(nil))
}

// AppendKey appends a form of n whose byte order is the canonical order of names. The key of a name is a prefix of
// the keys of exactly the names below it. Stores use it as their key.
//
// Labels go from right to left, each closed by 0x00. Inside a label, 0x00 and 0x01 are written 0x01 0x01 and 0x01
// 0x02. That keeps their order and reserves 0x00 for the end of a label.
func (n Name) AppendKey(dst []byte) []byte {
	var at [128]uint8
	c := 0
	for i := 0; i < len(n.wire) && n.wire[i] != 0; i += 1 + int(n.wire[i]) {
		at[c] = uint8(i)
		c++
	}
	for c--; c >= 0; c-- {
		i := int(at[c])
		for _, b := range []byte(n.wire[i+1 : i+1+int(n.wire[i])]) {
			if b < 2 {
				dst = append(dst, 1, b+1)
				continue
			}
			dst = append(dst, b)
		}
		dst = append(dst, 0)
	}
	return dst
}

// FromKey parses a key that AppendKey wrote. It returns false for anything else.
func FromKey(key []byte) (Name, bool) {
	var rev []byte // label without escapes
	buf := make([]byte, MaxWire)
	at := MaxWire - 1 // buf[at:] is the name so far; the last byte is the root label
	for i := 0; i < len(key); {
		rev = rev[:0]
		for ; i < len(key) && key[i] != 0; i++ {
			b := key[i]
			if b == 1 {
				i++
				if i == len(key) || key[i] != 1 && key[i] != 2 {
					return Name{}, false
				}
				b = key[i] - 1
			}
			if b != Lower(b) {
				return Name{}, false
			}
			rev = append(rev, b)
		}
		if i == len(key) || len(rev) == 0 || len(rev) > MaxLabel || at < 1+len(rev) {
			return Name{}, false
		}
		i++ // the 0x00 that closes the label
		at -= 1 + len(rev)
		buf[at] = byte(len(rev))
		copy(buf[at+1:], rev)
	}
	return Name{string(buf[at:])}, true
}
