package lookup

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// Offsets in a record of a message: owner as a pointer 2, type 2, class 2, TTL 4, length 2, data.
const (
	lengthAt = 10
	dataAt   = 12
)

func pointer(b []byte, to int) { binary.BigEndian.PutUint16(b, wire.Pointer(to)) }

// put appends a set. owner and apex are the offsets of its owner name and of the zone's apex in the message. It
// returns false, and sets Truncated, when the set does not fit.
func (r *Reply) put(set zone.Records, owner, apex int, section *int) bool {
	from := len(r.Msg)
	if from+len(set.Wire) > r.Limit {
		r.Truncated = true
		return false
	}
	r.Msg = append(r.Msg, set.Wire...)
	*section += set.Count
	if owner == questionAt && !set.ApexPointer {
		return true // stored with the right pointers
	}
	for b := r.Msg[from:]; len(b) > 0; {
		end := dataAt + int(binary.BigEndian.Uint16(b[lengthAt:]))
		pointer(b, owner)
		if set.ApexPointer {
			pointer(b[end-2:], apex)
		}
		b = b[end:]
	}
	return true
}

// rotate moves the first Rotation records of a set to its end. Sets with records of different sizes stay unchanged.
// Address records, for which rotation is useful, have the same size.
func (r *Reply) rotate(set []byte, count int) {
	size := len(set) / count
	by := int(r.Rotation%uint32(count)) * size
	for at := 0; at < len(set); at += size {
		if dataAt+int(binary.BigEndian.Uint16(set[at+lengthAt:])) != size {
			return
		}
	}
	// Three reversals are a rotation that needs no copy.
	slices.Reverse(set[:by])
	slices.Reverse(set[by:])
	slices.Reverse(set)
}

// follow makes the target of the CNAME at offset from of the message the current name.
func (r *Reply) follow(z *zone.Nodes, set zone.Records, from, apex int) {
	data := r.Msg[from+dataAt:]
	tail := r.cur.at(apex)
	if !set.ApexPointer {
		r.cur.set(dnsname.AppendLower(r.target[:0], data), from+dataAt)
		return
	}
	head := dnsname.AppendLower(r.target[:0], data[:len(data)-2])
	r.cur.set(append(head, z.Apex().Wire()...), from+dataAt)
	r.cur.split(len(head), r.labelAt(tail))
}

// labelAt follows pointers from an offset of the message to the label that they point to. A name continues after a
// label, but not after a pointer, so later offsets must be relative to a label.
func (r *Reply) labelAt(at int) int {
	for r.Msg[at] >= wire.PointerMark {
		at = int(binary.BigEndian.Uint16(r.Msg[at:])) & wire.MaxPointer
	}
	return at
}

// redirect answers with a DNAME and the CNAME synthesized from it (RFC 6672 §3.2).
func (r *Reply) redirect(p found, apex int, t rr.Type) bool {
	set, _ := p.node.Find(rr.TypeDNAME)
	r.Kind, r.Synthesized = Positive, true
	if !r.hasDNAME(p.off) && !r.put(set, r.cur.at(p.off), r.cur.at(apex), &r.Answers) {
		return false
	}
	target := set.Wire[dataAt:]
	if p.off+len(target) > dnsname.MaxWire {
		r.Kind, r.Rcode = YXDomain, wire.RcodeYXDomain
		return false
	}
	copy(r.target[:], r.cur.wire[:p.off])
	n := len(dnsname.AppendLower(r.target[:p.off], []byte(target)))
	from := len(r.Msg)
	if from+dataAt+n > r.Limit {
		r.Truncated = true
		return false
	}
	r.Msg = append(r.Msg, set.Wire[:dataAt]...) // class and TTL are the DNAME's
	pointer(r.Msg[from:], r.cur.at(0))
	binary.BigEndian.PutUint16(r.Msg[from+2:], uint16(rr.TypeCNAME))
	binary.BigEndian.PutUint16(r.Msg[from+lengthAt:], uint16(n))
	r.Msg = append(r.Msg, r.target[:n]...)
	r.Answers++
	r.cur.set(r.target[:n], from+dataAt)
	return t != rr.TypeCNAME && t != rr.TypeANY
}

// hasDNAME reports whether the DNAME at this part of the name is already in the answer, and records that it now is. A
// chain can pass it more than once, and an answer contains a record set once.
func (r *Reply) hasDNAME(off int) bool {
	h := maphash.Bytes(seed, r.cur.wire[off:])
	if slices.Contains(r.dnames[:r.numDN], h) {
		return true
	}
	r.dnames[r.numDN] = h
	r.numDN++
	return false
}

// negative answers NODATA or NXDOMAIN with the SOA that limits the caching time (RFC 2308 §2).
func (r *Reply) negative(z *zone.Nodes, apex int, kind Kind, rcode uint8) {
	r.Kind, r.Rcode = kind, rcode
	soa, ok := z.Negative()
	if !ok {
		r.Kind, r.Rcode, r.Authoritative = ServFail, wire.RcodeServFail, false
		return
	}
	from := len(r.Msg)
	if from+len(soa.Wire) > r.Limit {
		r.Truncated = true
		return
	}
	r.Msg = append(r.Msg, soa.Wire...)
	r.Authorities++
	at := r.root
	if !z.Apex().IsRoot() {
		at = r.cur.at(apex)
	}
	pointer(r.Msg[from:], at)
	for _, p := range soa.Pointer {
		if p > 0 {
			pointer(r.Msg[from+p:], at)
		}
	}
}

// refer answers with the delegation at p and its glue.
func (r *Reply) refer(z *zone.Nodes, p found, apex int) {
	if r.Answers == 0 {
		r.Authoritative, r.Kind = false, Referral
	}
	set, _ := p.node.Find(rr.TypeNS)
	from := len(r.Msg)
	if !r.put(set, r.cur.at(p.off), r.cur.at(apex), &r.Authorities) {
		return
	}
	end := len(r.Msg)
	for i := from; i < end; {
		data := i + dataAt
		i = data + int(binary.BigEndian.Uint16(r.Msg[i+lengthAt:]))
		if !r.glue(z, p, apex, data, i, set.ApexPointer) {
			return
		}
	}
}

// glue appends the addresses that z has for the name server whose name is r.Msg[from:end]. It returns false when the
// referral is truncated. Addresses below the cut are a required part of a referral (RFC 9471 §2.1); others are added
// only when they fit.
func (r *Reply) glue(z *zone.Nodes, p found, apex, from, end int, short bool) bool {
	labels := len(dnsname.AppendLower(r.scratch[:0], r.Msg[from:end]))
	if short {
		labels -= 2
	} else if labels = inZone(r.scratch[:labels], z.Apex().Wire()); labels < 0 {
		return true
	}
	ns := r.scratch[:labels]
	node := z.Find(ns)
	if !node.Found() || from > wire.MaxPointer {
		return true
	}
	below := isBelow(ns, r.cur.wire[p.off:apex])
	for _, t := range [...]rr.Type{rr.TypeA, rr.TypeAAAA} {
		set, ok := node.Find(t)
		if !ok {
			continue
		}
		if !below && len(r.Msg)+len(set.Wire) > r.Limit {
			continue
		}
		if !r.put(set, from, 0, &r.Additionals) {
			return false
		}
	}
	return true
}

// inZone returns the length of a name's labels below an apex, or -1 when the name is not in the zone.
func inZone(wire []byte, apex string) int {
	rest := len(wire) - len(apex)
	if rest < 0 || string(wire[rest:]) != apex {
		return -1
	}
	return boundary(wire, rest)
}

// isBelow reports whether labels, without a closing root label, equal suffix or end with it.
func isBelow(labels, suffix []byte) bool {
	rest := len(labels) - len(suffix)
	return rest >= 0 && string(labels[rest:]) == string(suffix) && boundary(labels, rest) >= 0
}

// boundary returns at when a label begins there, otherwise -1.
func boundary(wire []byte, at int) int {
	i := 0
	for i < at {
		i += 1 + int(wire[i])
	}
	if i != at {
		return -1
	}
	return at
}
