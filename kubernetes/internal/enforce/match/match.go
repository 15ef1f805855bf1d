// Package match finds the patterns of egress rules that match a name.
//
// Start with Tree: Add adds patterns, and Append finds those that match a name.
package match

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// Tree stores patterns by their labels, the last label first. A name that matches no rule is thus recognised after two
// or three labels, however many patterns there are. Add must not be called while other goroutines read: build a new
// tree and swap it with an atomic pointer. A nil Tree has no patterns.
type Tree[V any] struct{ root node[V] }

// node is one name. Its values are stored by kind of pattern. A name uses the exact values of its own node, the
// wildcard values of its parent, and the deep values of all ancestors.
type node[V any] struct {
	below                 map[string]*node[V] // child nodes by label, in lower case; nil if there are none
	exact, wildcard, deep []V
}

// Add adds a pattern and its value. Several values may have the same pattern.
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

// descend returns the node of name, and creates missing nodes.
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

// Append appends the values of all patterns that match name to dst. name is in presentation form, in any case, as in a
// query; an invalid name matches nothing. Append allocates only if dst must grow, and does not lock.
func (t *Tree[V]) Append(dst []V, name string) []V {
	if t == nil || !t.root.mayMatch(name) {
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
