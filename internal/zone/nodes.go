package zone

import (
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Nodes is the served content of one zone. It is immutable and safe for any number of readers.
type Nodes struct {
	id     uuid.UUID
	apex   dnsname.Name
	serial uint32
	index  index
	cuts   int // delegations; while there are none, a query need not look for one
	dnames int
	neg    NegativeSOA

	overlay bool // only names with records are in it
}

// NegativeSOA is the SOA record as negative answers carry it: its TTL is the lesser of its own and MINIMUM
// (RFC 2308 §3).
type NegativeSOA struct {
	Wire    string // one record; its owner must be pointed to the zone's apex
	Pointer [2]int // where in Wire two more pointers to the apex stand (MNAME, RNAME); 0 for none
}

// NewNodes is a zone without records.
func NewNodes(id uuid.UUID, apex dnsname.Name) *Nodes {
	z := &Nodes{id: id, apex: apex, index: newIndex()}
	b := z.Edit()
	b.write(&draft{}) // the apex always exists
	return b.Done()
}

// overlayTTL is how long a client may remember that a name of an overlay lacks a type: as long as it remembers a rule that
// says no TTL of its own.
const overlayTTL = 30

// beOverlay makes z an overlay. Its negative answers have an SOA that no record set holds; nobody transfers an overlay, so
// the serial and the timers in it mean nothing.
func (z *Nodes) beOverlay() {
	root := dnsname.Root
	soa := SOA{MName: root, RName: root, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minimum: overlayTTL}
	z.setSOA(rr.NewSet(z.apex, rr.TypeSOA, overlayTTL, soa.Data()))
	z.serial, z.overlay = 0, true
}

// IsOverlay reports whether names that are not in the zone are left to less specific zones.
func (z *Nodes) IsOverlay() bool { return z.overlay }

// ID is the zone's id.
func (z *Nodes) ID() uuid.UUID { return z.id }

// Apex is the zone's name.
func (z *Nodes) Apex() dnsname.Name { return z.apex }

// Serial is the serial of the served SOA.
func (z *Nodes) Serial() uint32 { return z.serial }

// Names counts the names, empty non-terminals included.
func (z *Nodes) Names() int { return z.index.count }

// HasCuts reports whether the zone delegates or redirects anything below its apex, so that a name must be looked for
// from the apex down.
func (z *Nodes) HasCuts() bool { return z.cuts+z.dnames > 0 }

// Negative is the SOA for negative answers; false for a zone that has no SOA.
func (z *Nodes) Negative() (NegativeSOA, bool) { return z.neg, z.neg.Wire != "" }

// Find is the node of a name, given as its labels above the apex in lower-case wire form.
func (z *Nodes) Find(labels []byte) Node { return z.index.find(labels, hashKey(labels)) }

// setSOA prepares the negative answers.
func (z *Nodes) setSOA(s rr.Set) {
	z.neg, z.serial = NegativeSOA{}, 0
	if len(s.Data) != 1 {
		return
	}
	data := s.Data[0]
	soa, ok := ParseSOA(data)
	if !ok {
		return
	}
	z.serial = soa.Serial
	short := ""
	for i, n := range []dnsname.Name{soa.MName, soa.RName} {
		size := len(n.Wire())
		name, cut := z.shorten(n, data[:size])
		data = data[size:]
		if short += name; cut {
			z.neg.Pointer[i] = recordHead + len(short) - 2
		}
	}
	ttl := min(s.TTL, soa.Minimum)
	z.neg.Wire = string(wire.AppendRecord(nil, wire.HeaderSize, rr.TypeSOA, ttl, short+data))
}

// shorten replaces the apex at the end of a name by room for a pointer. text is n as it was written.
func (z *Nodes) shorten(n dnsname.Name, text string) (string, bool) {
	above, ok := strings.CutSuffix(text, z.apex.Wire())
	if !ok || z.apex.IsRoot() || !n.IsIn(z.apex) {
		return text, false
	}
	return above + "\xc0\x00", true
}
