package lookup

import (
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// found is the result of the search for a name below a zone's apex.
type found struct {
	outcome outcome
	node    zone.Node // the node at which the search ended
	off     int       // offset in the name at which that node's own name begins
}

type outcome uint8

const (
	matched    outcome = iota // node is the name
	missing                   // node is its closest encloser (RFC 4592 §3.3.1)
	cut                       // node delegates the name
	redirected                // node has a DNAME and the name is below it
)

// descend finds the name in z. The apex of z begins at offset apex of the name.
func (r *Reply) descend(z *zone.Nodes, apex int, t rr.Type) found {
	if z.HasCuts() {
		return r.descendFromApex(z, apex, t)
	}
	// No cut above can own the name, so search for the name itself first.
	c := &r.cur
	if n := z.Find(c.wire[:apex]); n.Found() {
		return found{matched, n, 0}
	}
	for i := 1; ; i++ {
		off := min(c.start(i), apex)
		if n := z.Find(c.wire[off:apex]); n.Found() || off == apex {
			return found{missing, n, off}
		}
	}
}

// descendFromApex searches label by label, as in RFC 1034 §4.3.2 step 3: a cut or a DNAME takes precedence over
// everything below it.
func (r *Reply) descendFromApex(z *zone.Nodes, apex int, t rr.Type) found {
	c := &r.cur
	at := found{matched, z.Find(nil), apex}
	i := c.count
	for i > 0 && c.start(i-1) >= apex {
		i--
	}
	if i > 0 && at.node.HasDNAME() {
		return found{redirected, at.node, apex}
	}
	for i--; i >= 0; i-- {
		off := c.start(i)
		n := z.Find(c.wire[off:apex])
		if !n.Found() {
			return found{missing, at.node, at.off}
		}
		at = found{matched, n, off}
		// DS is the only type that the parent answers at the cut itself.
		if n.IsCut() && !(i == 0 && t == rr.TypeDS) {
			return found{cut, n, off}
		}
		if i > 0 && n.HasDNAME() {
			return found{redirected, n, off}
		}
	}
	return at
}
