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
	cuts   int // number of delegations; without any, a query need not search for one
	dnames int
	neg    NegativeSOA

	overlay bool // only names with records are in it
}

// NegativeSOA is the SOA record of negative answers. Its TTL is the smaller of the record's TTL and MINIMUM (RFC 2308
// §3).
type NegativeSOA struct {
	Wire    string // one record; the writer must point its owner to the zone's apex
	Pointer [2]int // offsets in Wire of two more pointers to the apex (MNAME, RNAME); 0 for none
}

// NewNodes returns a zone without records.
func NewNodes(id uuid.UUID, apex dnsname.Name) *Nodes {
	z := &Nodes{id: id, apex: apex, index: newIndex()}
	b := z.Edit()
	b.write(&draft{}) // the apex always exists
	return b.Done()
}

// overlayTTL is how long a client may cache that a name of an overlay lacks a type, in seconds. It equals the TTL of
// a rule without one.
const overlayTTL = 30

// setOverlay makes z an overlay. Its negative answers have an SOA that no record set holds. Nobody transfers an
// overlay, so the serial and the timers in it have no meaning.
func (z *Nodes) setOverlay() {
	root := dnsname.Root
	soa := SOA{MName: root, RName: root, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minimum: overlayTTL}
	z.setSOA(rr.NewSet(z.apex, rr.TypeSOA, overlayTTL, soa.Data()))
	z.serial, z.overlay = 0, true
}

// IsOverlay reports whether the zone leaves names that it does not have to less specific zones.
func (z *Nodes) IsOverlay() bool { return z.overlay }

// ID returns the zone's id.
func (z *Nodes) ID() uuid.UUID { return z.id }

// Apex returns the zone's name.
func (z *Nodes) Apex() dnsname.Name { return z.apex }

// Serial returns the serial of the served SOA.
func (z *Nodes) Serial() uint32 { return z.serial }

// Names returns the number of names, with empty non-terminals.
func (z *Nodes) Names() int { return z.index.count }

// HasCuts reports whether the zone delegates or redirects anything below its apex, so that a lookup must descend from
// the apex.
func (z *Nodes) HasCuts() bool { return z.cuts+z.dnames > 0 }

// Negative returns the SOA for negative answers. It returns false for a zone without an SOA.
func (z *Nodes) Negative() (NegativeSOA, bool) { return z.neg, z.neg.Wire != "" }

// Find returns the node of a name, given as its labels below the apex in lower-case wire form.
func (z *Nodes) Find(labels []byte) Node { return z.index.find(labels, hashKey(labels)) }

// setSOA prepares the SOA of negative answers and the serial.
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
