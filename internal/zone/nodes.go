package zone

import (
	"encoding/binary"

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
	TTL     uint32
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
	_, m, err := dnsname.FromWire([]byte(data))
	if err != nil {
		return
	}
	_, r, err := dnsname.FromWire([]byte(data[m:]))
	if err != nil || len(data) != m+r+20 {
		return
	}
	z.serial = binary.BigEndian.Uint32([]byte(data[m+r:]))
	ttl := min(s.TTL, binary.BigEndian.Uint32([]byte(data[m+r+16:])))
	neg := NegativeSOA{TTL: ttl}
	mname, mptr := z.shorten(data[:m])
	rname, rptr := z.shorten(data[m : m+r])
	if mptr {
		neg.Pointer[0] = recordHead + len(mname) - 2
	}
	if rptr {
		neg.Pointer[1] = recordHead + len(mname) + len(rname) - 2
	}
	neg.Wire = string(wire.AppendRecord(nil, wire.HeaderSize, rr.TypeSOA, ttl, mname+rname+data[m+r:]))
	z.neg = neg
}

// shorten replaces the apex at the end of a name by room for a pointer.
func (z *Nodes) shorten(name string) (string, bool) {
	n, _, err := dnsname.FromWire([]byte(name))
	apex := z.apex.Wire()
	if err != nil || z.apex.IsRoot() || !n.IsIn(z.apex) || name[len(name)-len(apex):] != apex {
		return name, false
	}
	return name[:len(name)-len(apex)] + "\xc0\x00", true
}
