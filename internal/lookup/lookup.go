// Package lookup finds the answer to a question in a snapshot of zones and writes it into a message without allocating.
//
// Start with Answer in lookup.go: it follows the steps of RFC 1034 §4.3.2. descend.go finds a name below a zone's apex,
// and write.go appends the records.
package lookup

import (
	"hash/maphash"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// Kind is the kind of an answer. Rate limits and metrics distinguish answers by it.
type Kind uint8

// The kinds of answers.
const (
	Refused  Kind = iota // none of our zones contains the name
	Positive             // records of the requested type, or a chain of CNAMEs
	NoData               // the name exists, the type does not
	NXDomain             // the name does not exist
	Referral             // the name is below a delegation
	ServFail             // the zone is ours but has no SOA, so it cannot be answered
	YXDomain             // a DNAME produced a name that is too long
	numKinds
)

// NumKinds is the number of Kinds.
const NumKinds = int(numKinds)

func (k Kind) String() string {
	return [...]string{"refused", "positive", "nodata", "nxdomain", "referral", "servfail", "yxdomain"}[k]
}

// questionAt is the offset of the question's name in every message.
const questionAt = wire.HeaderSize

// Reply receives an answer. The caller sets Msg, Limit and Rotation; Answer sets the other fields. A Reply can be
// reused.
type Reply struct {
	Msg   []byte // header and question; records are appended in the same memory
	Limit int    // largest length of Msg; at most cap(Msg), so that nothing is ever allocated

	Kind          Kind
	Rcode         uint8
	Authoritative bool
	Truncated     bool
	Synthesized   bool // a wildcard or a DNAME gave part of the answer, as it would for any number of names
	Answers       int  // numbers of records in the three sections
	Authorities   int
	Additionals   int
	Zone          *zone.Nodes // the zone of the question; nil when it is in none of ours

	// Encloser is the offset in the question's name at which its closest encloser begins. It is set when the wildcard
	// below the encloser answers for the name (RFC 4592 §3.3.1), and 0 otherwise. It is not set for overlays and for
	// later names of a chain.
	Encloser int

	// Rotation selects the record with which the sets of an overlay begin. The caller increments it from question to
	// question.
	Rotation uint32

	root    int   // offset of the root label in the message
	overlay found // the node of an overlay that findZone found

	cur     name
	target  [dnsname.MaxWire]byte // memory of cur after the first step of a chain
	scratch [dnsname.MaxWire]byte
	seen    [wire.MaxChain + 1]uint64 // hashes of the names of a chain
	dnames  [wire.MaxChain]uint64     // hashes of the owners of the DNAMEs in the answer
	numDN   int
}

// Question is a name in lower-case wire form, with the root label, and a type. The same name, in the client's letter
// case, stands at offset 12 of the message.
type Question struct {
	Name []byte
	Type rr.Type
}

// Answer looks up q and appends the answer to r.Msg. When the answer does not fit, it sets Truncated, and Msg
// contains only complete record sets.
func Answer(s *zone.Snapshot, q Question, r *Reply) {
	r.Kind, r.Rcode, r.Zone = Refused, wire.RcodeRefused, nil
	r.Authoritative, r.Truncated, r.Synthesized = false, false, false
	r.Answers, r.Authorities, r.Additionals, r.numDN, r.Encloser = 0, 0, 0, 0, 0
	r.cur.set(q.Name, questionAt)
	r.root = questionAt + len(q.Name) - 1
	z := r.findZone(s, q.Type)
	if z == nil {
		return
	}
	r.Zone, r.Rcode, r.Authoritative = z, wire.RcodeNoError, true
	for hop := range wire.MaxChain { // a longer chain is answered with the records until then
		if !r.step(z, q.Type) || r.inLoop(hop, q.Name) {
			return
		}
		// RFC 1034 §4.3.2 step 3a: go back to step 1 with the new name.
		if z = r.findZone(s, q.Type); z == nil {
			return // the chain leaves our zones: the resolver must find the rest
		}
	}
}

// inLoop reports whether a chain has returned to an earlier name. The records of a loop are answered once: repeating
// them until wire.MaxChain would give an attacker a large answer for a small question. Names are compared by keyed
// hash.
func (r *Reply) inLoop(hop int, first []byte) bool {
	if hop == 0 {
		r.seen[0] = maphash.Bytes(seed, first)
	}
	h := maphash.Bytes(seed, r.cur.wire)
	if slices.Contains(r.seen[:hop+1], h) {
		return true
	}
	r.seen[hop+1] = h
	return false
}

var seed = maphash.MakeSeed()

// findZone returns the most specific zone that contains the name (RFC 1034 §4.3.2 step 2). An overlay contains only
// names with records. For DS it is the parent's side of a cut, if we have it (RFC 4035 §3.1.4.1).
func (r *Reply) findZone(s *zone.Snapshot, t rr.Type) *zone.Nodes {
	var child *zone.Nodes
	n := &r.cur
	for i := max(0, n.count-s.MaxLabels()); i <= n.count; i++ {
		z := s.Zone(n.wire[n.start(i):])
		if z == nil {
			continue
		}
		if z.IsOverlay() {
			if r.inOverlay(z, n.start(i)) {
				return z
			}
			continue
		}
		if t == rr.TypeDS && i == 0 && n.count > 0 {
			child = z
			continue
		}
		return z
	}
	return child
}

// inOverlay reports whether an overlay answers the name: the name, or the wildcard that covers it, has records there.
// It stores the node in r.overlay for step.
func (r *Reply) inOverlay(z *zone.Nodes, apex int) bool {
	p := r.descend(z, apex, rr.TypeANY)
	if p.outcome == missing && !p.node.HasWildcard() {
		return false
	}
	if p.outcome == missing {
		p.node = z.Find(r.wildcard(p.off, apex))
	}
	_, has := p.node.First()
	r.overlay = p
	return has
}

// wildcard returns "*" below name[off:apex] as a key of the zone.
func (r *Reply) wildcard(off, apex int) []byte {
	return append(append(r.scratch[:0], 1, '*'), r.cur.wire[off:apex]...)
}

// step does RFC 1034 §4.3.2 step 3 in zone z. It reports whether a CNAME or DNAME leads to another name.
func (r *Reply) step(z *zone.Nodes, t rr.Type) bool {
	apex := len(r.cur.wire) - len(z.Apex().Wire())
	if z.IsOverlay() {
		r.Synthesized = r.Synthesized || r.overlay.outcome == missing
		return r.at(z, r.overlay.node, apex, t)
	}
	p := r.descend(z, apex, t)
	switch p.outcome {
	case cut:
		r.refer(z, p, apex)
		return false
	case redirected:
		return r.redirect(p, apex, t)
	case missing:
		if !p.node.HasWildcard() {
			r.negative(z, apex, NXDomain, wire.RcodeNXDomain)
			return false
		}
		p.node = z.Find(r.wildcard(p.off, apex))
		r.Synthesized = true
		if r.cur.pos == questionAt {
			r.Encloser = p.off
		}
	}
	return r.at(z, p.node, apex, t)
}

// at answers from the sets of one node.
func (r *Reply) at(z *zone.Nodes, n zone.Node, apex int, t rr.Type) bool {
	if t == rr.TypeANY {
		// RFC 8482 §4.1: one set is a sufficient answer, and too small for amplification.
		if set, ok := n.First(); ok {
			r.put(set, r.cur.at(0), r.cur.at(apex), &r.Answers)
			r.Kind = Positive
			return false
		}
	}
	if set, ok := n.Find(t); ok {
		from := len(r.Msg)
		if r.put(set, r.cur.at(0), r.cur.at(apex), &r.Answers) && set.Count > 1 && z.IsOverlay() {
			r.rotate(r.Msg[from:], set.Count)
		}
		r.Kind = Positive
		return false
	}
	if set, ok := n.Find(rr.TypeCNAME); ok {
		from := len(r.Msg)
		r.Kind = Positive
		if !r.put(set, r.cur.at(0), r.cur.at(apex), &r.Answers) {
			return false
		}
		r.follow(z, set, from, apex)
		return true
	}
	r.negative(z, apex, NoData, wire.RcodeNoError)
	return false
}
