// Package match finds the patterns of egress rules that stand for a name.
package match

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// Tree holds patterns by their labels, the last label first, so that a name of no rule is known as such after two or three
// labels, however many patterns there are. Whoever has new patterns builds another one and swaps it in behind an atomic
// pointer: Add must not be called while others read. A nil Tree has no patterns.
type Tree[V any] struct{ root node[V] }

// node is one name. What it leads to is kept by the kind of pattern, because a name asks its own node for exact ones, the
// node above it for wildcards, and all nodes above it for deep ones.
type node[V any] struct {
	below                 map[string]*node[V] // by label, in lower case; nil where nothing is
	exact, wildcard, deep []V
}

// Add adds a pattern and what it leads to. Several may have the same pattern.
func (t *Tree[V]) Add(p enforce.Pattern, v V) {
	n := t.root.descend(p.Base())
	switch p.Kind() {
	case enforce.Exact:
		n.exact = append(n.exact, v)
	case enforce.Wildcard:
		n.wildcard = append(n.wildcard, v)
	case enforce.Deep:
		n.deep = append(n.deep, v)
	}
}

// descend finds the node of name, and makes what is missing on the way.
func (n *node[V]) descend(name dnsname.Name) *node[V] {
	if name.IsRoot() || name.IsZero() {
		return n
	}
	up := n.descend(name.Parent())
	if up.below == nil {
		up.below = map[string]*node[V]{}
	}
	child := up.below[name.Label()]
	if child == nil {
		child = &node[V]{}
		up.below[name.Label()] = child
	}
	return child
}

// Append adds the values of all patterns that stand for name to dst. name is in presentation form, in any case, as it stands
// in a question; what is no name matches nothing. Nothing is allocated unless dst must grow, and nothing is locked.
func (t *Tree[V]) Append(dst []V, name string) []V {
	if t == nil || !t.root.may(name) {
		return dst
	}
	var l labels
	if !l.read(name) {
		return dst
	}
	at := &t.root
	for i := l.n - 1; i >= 0; i-- {
		dst = append(dst, at.deep...)
		if i == 0 {
			dst = append(dst, at.wildcard...)
		}
		if at = at.below[string(l.label(i))]; at == nil {
			return dst
		}
	}
	return append(dst, at.exact...)
}
