package match

import "github.com/nameplane/nameplane/internal/dnsname"

// may reports whether a pattern may stand for name. Most names are of no rule, and are known as such by their last labels: the
// others, and whether they are right, need not be read. What has escapes in it is left to those who read all of it.
func (n *node[V]) may(name string) bool {
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
				continue // too long, unless an escape comes
			}
			buf[len(buf)-size] = dnsname.Lower(c)
		}
		if from > 1 && name[from-2] == '\\' {
			return true // that was no end of a label
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
