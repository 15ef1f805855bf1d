package lookup

import (
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// place is where the way from a zone's apex down to a name ends.
type place struct {
	what what
	node zone.Node // the node there
	off  int       // octet of the name at which that node's own name begins
}

type what uint8

const (
	matched    what = iota // node is the name
	missing                // node is its closest encloser (RFC 4592 §3.3.1)
	cut                    // node delegates the name away
	redirected             // node has a DNAME and the name is below it
)

// descend finds the name in z, whose apex is the part of the name from octet apex on.
func (r *Reply) descend(z *zone.Nodes, apex int, t rr.Type) place {
	if z.HasCuts() {
		return r.descendFromApex(z, apex, t)
	}
	// Nothing above can take the name away, so the name itself is looked for first.
	c := &r.cur
	if n := z.Find(c.wire[:apex]); n.Found() {
		return place{matched, n, 0}
	}
	for i := 1; ; i++ {
		off := min(c.start(i), apex)
		if n := z.Find(c.wire[off:apex]); n.Found() || off == apex {
			return place{missing, n, off}
		}
	}
}

// descendFromApex walks down label by label, as RFC 1034 §4.3.2 step 3 has it: a cut or a DNAME on the way wins over
// everything below it.
func (r *Reply) descendFromApex(z *zone.Nodes, apex int, t rr.Type) place {
	c := &r.cur
	at := place{matched, z.Find(nil), apex}
	i := c.count
	for i > 0 && c.start(i-1) >= apex {
		i--
	}
	if i > 0 && at.node.HasDNAME() {
		return place{redirected, at.node, apex}
	}
	for i--; i >= 0; i-- {
		off := c.start(i)
		n := z.Find(c.wire[off:apex])
		if !n.Found() {
			return place{missing, at.node, at.off}
		}
		at = place{matched, n, off}
		// DS is the one type for which the cut itself is the parent's to answer.
		if n.IsCut() && !(i == 0 && t == rr.TypeDS) {
			return place{cut, n, off}
		}
		if i > 0 && n.HasDNAME() {
			return place{redirected, n, off}
		}
	}
	return at
}
