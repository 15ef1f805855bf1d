package dnsserver

import (
	"encoding/binary"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// recordCopier copies records into another message at another offset. Compressed names can point to anything before
// them, so it writes them out. Owners that equal the name of the question become pointers to the position of that
// name in the new message.
type recordCopier struct {
	from []byte // source message, with a question
	name []byte // name of the question, in lower case
	at   int    // offset of that name in the target message

	owner [dnsname.MaxWire]byte
	data  [maxNamedData]byte
}

// dataLayout describes the RDATA of a type with compressible names: a number of fixed bytes, then names. Other data may
// follow them.
type dataLayout struct{ fixed, names int }

// maxNamedData is the largest size of such RDATA up to the end of its last name.
const maxNamedData = 6 + 2*dnsname.MaxWire

// layoutOf returns the layout of the types whose names can be compressed (RFC 3597 §4).
func layoutOf(t rr.Type) dataLayout {
	switch uint16(t) {
	case dns.TypeNS, dns.TypeMD, dns.TypeMF, dns.TypeCNAME, dns.TypeMB, dns.TypeMG, dns.TypeMR, dns.TypePTR,
		dns.TypeDNAME:
		return dataLayout{0, 1}
	case dns.TypeSOA, dns.TypeMINFO, dns.TypeRP:
		return dataLayout{0, 2}
	case dns.TypeMX, dns.TypeAFSDB, dns.TypeRT, dns.TypeKX:
		return dataLayout{2, 1}
	case dns.TypePX:
		return dataLayout{2, 2}
	case dns.TypeSRV:
		return dataLayout{6, 1}
	}
	return dataLayout{}
}

// copySections appends the records of two sections to r. When they do not all fit, r keeps those that do and is
// truncated.
func (m *recordCopier) copySections(r *lookup.Reply, answers, authorities int) {
	at, ok := wire.SkipName(m.from, wire.HeaderSize)
	at += 4
	for i := 0; ok && i < answers+authorities; i++ {
		if at, ok = m.copyRecord(r, at); !ok {
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

// copyRecord appends the record at an offset, and returns the offset of the next. It returns false when the record
// does not fit.
func (m *recordCopier) copyRecord(r *lookup.Reply, at int) (int, bool) {
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

// newOwner returns the owner name at an offset as it is written in the target message.
func (m *recordCopier) newOwner(at int) ([]byte, bool) {
	owner, ok := wire.AppendName(m.owner[:0], m.from, at)
	if ok && m.at <= wire.MaxPointer && dnsname.EqualFold(owner, m.name) {
		return binary.BigEndian.AppendUint16(m.owner[:0], wire.Pointer(m.at)), true
	}
	return owner, ok
}

// newData returns the RDATA at [from, to) as they are written in the target message, in two parts.
func (m *recordCopier) newData(t rr.Type, from, to int) (head, rest []byte, ok bool) {
	layout := layoutOf(t)
	if from+layout.fixed > to {
		return nil, nil, false
	}
	head = append(m.data[:0], m.from[from:from+layout.fixed]...)
	at := from + layout.fixed
	for range layout.names {
		if head, ok = wire.AppendName(head, m.from[:to], at); !ok {
			return nil, nil, false
		}
		at, _ = wire.SkipName(m.from, at)
	}
	return head, m.from[at:to], true
}
