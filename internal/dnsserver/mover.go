package dnsserver

import (
	"encoding/binary"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// mover copies records to another place in another message. Names in them can point to what is in front of them, so they
// are written out; owners that are the name of the question point to where that stands now.
type mover struct {
	from []byte // the message, with a question
	name []byte // of the question, in lower case
	at   int    // where that name stands in the other message

	owner [dnsname.MaxWire]byte
	data  [maxNamedData]byte
}

// namedData is how the data of a type with names in it are made: octets, then names. What follows them is the rest.
type namedData struct{ octets, names int }

// maxNamedData is the most that the part of such data up to its last name can be.
const maxNamedData = 6 + 2*dnsname.MaxWire

// layoutOf tells of the types whose names can be compressed (RFC 3597 §4) how they are made.
func layoutOf(t rr.Type) namedData {
	switch uint16(t) {
	case dns.TypeNS, dns.TypeMD, dns.TypeMF, dns.TypeCNAME, dns.TypeMB, dns.TypeMG, dns.TypeMR, dns.TypePTR, dns.TypeDNAME:
		return namedData{0, 1}
	case dns.TypeSOA, dns.TypeMINFO, dns.TypeRP:
		return namedData{0, 2}
	case dns.TypeMX, dns.TypeAFSDB, dns.TypeRT, dns.TypeKX:
		return namedData{2, 1}
	case dns.TypePX:
		return namedData{2, 2}
	case dns.TypeSRV:
		return namedData{6, 1}
	}
	return namedData{}
}

// move appends the records of two sections to r. When they do not fit, r is truncated, and has the answers that do.
func (m *mover) move(r *lookup.Reply, answers, authorities int) {
	at, ok := wire.SkipName(m.from, wire.HeaderSize)
	at += 4
	for i := 0; ok && i < answers+authorities; i++ {
		if at, ok = m.moveRecord(r, at); !ok {
			break
		}
		if i < answers {
			r.Answers++
		} else {
			r.Authorities++
		}
	}
	r.Truncated = r.Truncated || !ok
}

// moveRecord appends the record at an octet, and returns the octet behind it. It reports false when the record does not fit.
func (m *mover) moveRecord(r *lookup.Reply, at int) (int, bool) {
	from, ok := wire.ReadRecord(m.from, at)
	if !ok {
		return 0, false
	}
	owner, ok := m.newOwner(at)
	if !ok {
		return 0, false
	}
	head, rest, ok := m.newData(from.Type, from.Data, from.Next)
	size := len(head) + len(rest)
	if !ok || size > wire.MaxSize || len(r.Msg)+len(owner)+wire.RecordFixed+size > r.Limit {
		return 0, false
	}
	r.Msg = append(append(r.Msg, owner...), m.from[from.Fixed:from.Fixed+8]...)
	r.Msg = binary.BigEndian.AppendUint16(r.Msg, uint16(size))
	r.Msg = append(append(r.Msg, head...), rest...)
	return from.Next, true
}

// newOwner is the owner at an octet as it is written now.
func (m *mover) newOwner(at int) ([]byte, bool) {
	owner, ok := wire.AppendName(m.owner[:0], m.from, at)
	if ok && m.at <= wire.MaxPointer && dnsname.EqualFold(owner, m.name) {
		return binary.BigEndian.AppendUint16(m.owner[:0], wire.Pointer(m.at)), true
	}
	return owner, ok
}

// newData is the data at [from, to) as they are written now, in two parts.
func (m *mover) newData(t rr.Type, from, to int) (head, rest []byte, ok bool) {
	layout := layoutOf(t)
	if from+layout.octets > to {
		return nil, nil, false
	}
	head = append(m.data[:0], m.from[from:from+layout.octets]...)
	at := from + layout.octets
	for range layout.names {
		if head, ok = wire.AppendName(head, m.from[:to], at); !ok {
			return nil, nil, false
		}
		at, _ = wire.SkipName(m.from, at)
	}
	return head, m.from[at:to], true
}
