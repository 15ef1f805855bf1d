package match

import "github.com/nameplane/nameplane/internal/dnsname"

// mayMatch reports whether a pattern may match name. Most names match no rule, and their last labels are enough to
// recognise that. The other labels, and whether they are valid, are not read. mayMatch returns true for names with
// escapes that it does not read.
func (n *node[V]) mayMatch(name string) bool {
	var buf [dnsname.MaxLabel]byte
	at, end := n, len(name)
	if end > 0 && name[end-1] == '.' {
		end--
	}
	for end > 0 {
		if len(at.deep) > 0 {
			return true
		}
		from, size := end, 0
		for ; from > 0 && name[from-1] != '.'; from-- {
			c := name[from-1]
			if c == '\\' {
				return true
			}
			if size++; size > len(buf) {
				continue // too long, unless an escape follows
			}
			buf[len(buf)-size] = dnsname.Lower(c)
		}
		if from > 1 && name[from-2] == '\\' {
			return true // an escaped dot does not end a label
		}
		if from == 0 && len(at.wildcard) > 0 {
			return true
		}
		if size > len(buf) {
			return false
		}
		if at = at.below[string(buf[len(buf)-size:])]; at == nil {
			return false
		}
		end = from - 1
	}
	return at != n && len(at.exact) > 0
}
