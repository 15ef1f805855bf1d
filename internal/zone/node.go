package zone

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// A node is one name of a zone, which may be an empty non-terminal, in a form that the query path copies from:
//
//	key length 1, key, flags 1, children, sets, then for each set: type 2, size and flag, number of records, the records
//
// The key is the name without the zone's apex. A record is ready for a message: owner as a pointer to the question
// (0xC00C), type, class, TTL, length, data. Numbers with a size above are little-endian, those of the message
// big-endian, and all others are varints as in encoding/binary's Uvarint.
//
// Nodes are bytes instead of Go values, because a million small objects cost more in headers, pointers and garbage
// collection than in data. A name with one address takes about 40 bytes, which is usually one cache line.
const (
	// recordHead is the size of a record before its data, with the owner as a pointer to the question.
	recordHead = 2 + wire.RecordFixed
)

// Node flags.
const (
	flagWildcard = 1 << iota // a child "*" exists
	flagCut                  // NS below the apex: the zone ends here
	flagDNAME
)

// setApexPointer marks a set in which every record ends with a pointer to the zone's apex, which the writer of a
// message must fill in. NS, CNAME, PTR and MX data that end with the apex are stored so. It halves referrals and
// chains.
const setApexPointer = 1

// Node is a name found in a zone. The zero Node means that the name does not exist.
type Node struct{ b string } // encoded node, beginning with its flags

// Found reports whether the name exists.
func (n Node) Found() bool { return n.b != "" }

// HasWildcard reports whether "*" exists directly below this name.
func (n Node) HasWildcard() bool { return n.b[0]&flagWildcard != 0 }

// IsCut reports whether the zone delegates this name.
func (n Node) IsCut() bool { return n.b[0]&flagCut != 0 }

// HasDNAME reports whether a DNAME redirects the names below.
func (n Node) HasDNAME() bool { return n.b[0]&flagDNAME != 0 }

// Records is a record set ready for a message.
type Records struct {
	Type        rr.Type
	Count       int
	Wire        string // Count records; owners point to the question
	ApexPointer bool   // the last two bytes of each record must be pointed to the zone's apex
}

// Find returns the set of type t at this name.
func (n Node) Find(t rr.Type) (Records, bool) {
	count, at := n.sets()
	for ; count > 0; count-- {
		if rr.Type(le16(n.b, at)) == t {
			r, _ := n.set(at)
			return r, true
		}
		at = n.skip(at)
	}
	return Records{}, false
}

// First returns the set of the lowest type at this name, the answer to a query for ANY (RFC 8482 §4.1).
func (n Node) First() (Records, bool) {
	count, at := n.sets()
	if count == 0 {
		return Records{}, false
	}
	r, _ := n.set(at)
	return r, true
}

// sets returns the number of sets, which are in ascending order of type, and the offset of the first.
func (n Node) sets() (count, at int) {
	_, at = uvarint(n.b, 1)
	return uvarint(n.b, at)
}

// set returns the set at an offset, and the offset of the next one.
func (n Node) set(at int) (r Records, next int) {
	size, i := uvarint(n.b, at+2)
	count, i := uvarint(n.b, i)
	next = i + size>>1
	return Records{rr.Type(le16(n.b, at)), count, n.b[i:next], size&setApexPointer != 0}, next
}

// skip returns the offset of the set after the one at an offset.
func (n Node) skip(at int) int {
	size, i := uvarint(n.b, at+2)
	_, i = uvarint(n.b, i)
	return i + size>>1
}

func (n Node) children() int {
	c, _ := uvarint(n.b, 1)
	return c
}

func le16(s string, i int) uint16 {
	s = s[i : i+2]
	return uint16(s[0]) | uint16(s[1])<<8
}

// uvarint returns the number at an offset, and the offset after it. Nearly all numbers have one byte, so this
// function is small enough to be inlined.
func uvarint(s string, i int) (v, next int) {
	if c := s[i]; c < 0x80 {
		return int(c), i + 1
	}
	return longUvarint(s, i)
}

func longUvarint(s string, i int) (v, next int) {
	for shift := 0; ; shift += 7 {
		c := int(s[i])
		i++
		v |= c & 0x7f << shift
		if c < 0x80 {
			return v, i
		}
	}
}

// draft is a node that is being changed.
type draft struct {
	key      string
	flags    byte
	children int
	sets     []Records // ascending by type
}

func (n Node) draft(key string) draft {
	d := draft{key: key, flags: n.b[0], children: n.children()}
	count, at := n.sets()
	for range count {
		var s Records
		s, at = n.set(at)
		d.sets = append(d.sets, s)
	}
	return d
}

// put sets a set, or removes it when it has no records.
func (d *draft) put(s Records) {
	i, found := slices.BinarySearchFunc(d.sets, s.Type, func(a Records, t rr.Type) int { return int(a.Type) - int(t) })
	switch {
	case s.Count == 0 && found:
		d.sets = slices.Delete(d.sets, i, i+1)
	case s.Count == 0:
	case found:
		d.sets[i] = s
	default:
		d.sets = slices.Insert(d.sets, i, s)
	}
}

func (d *draft) has(t rr.Type) bool {
	return slices.ContainsFunc(d.sets, func(s Records) bool { return s.Type == t })
}

// reflag sets the flags that follow from the sets.
func (d *draft) reflag() {
	d.flags &^= flagCut | flagDNAME
	if d.key != "" && d.has(rr.TypeNS) {
		d.flags |= flagCut
	}
	if d.has(rr.TypeDNAME) {
		d.flags |= flagDNAME
	}
}

func (d *draft) empty() bool { return len(d.sets) == 0 && d.children == 0 }

func (d *draft) append(b []byte) []byte {
	b = append(b, byte(len(d.key)))
	b = append(b, d.key...)
	b = append(b, d.flags)
	b = binary.AppendUvarint(b, uint64(d.children))
	b = binary.AppendUvarint(b, uint64(len(d.sets)))
	for _, s := range d.sets {
		size := uint64(len(s.Wire)) << 1
		if s.ApexPointer {
			size |= setApexPointer
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(s.Type))
		b = binary.AppendUvarint(b, size)
		b = binary.AppendUvarint(b, uint64(s.Count))
		b = append(b, s.Wire...)
	}
	return b
}

// encode prepares the records of a set for messages.
func encode(apex dnsname.Name, s rr.Set) Records {
	out := Records{Type: s.Type, Count: len(s.Data)}
	suffix := apexSuffix(apex, s)
	out.ApexPointer = suffix > 0
	var b strings.Builder
	b.Grow(size(s.Data))
	for _, d := range s.Data {
		if suffix > 0 {
			d = d[:len(d)-suffix] + "\xc0\x00"
		}
		var head [recordHead]byte
		b.Write(wire.AppendHead(head[:0], wire.HeaderSize, s.Type, s.TTL, len(d)))
		b.WriteString(d)
	}
	out.Wire = b.String()
	return out
}

// apexSuffix returns the length of the apex when the data of all records end with it and may be compressed, otherwise
// 0. It is all or none, so that one flag holds for the whole set.
func apexSuffix(apex dnsname.Name, s rr.Set) int {
	if _, ok := rr.Compressible(s.Type); !ok || apex.IsRoot() || len(s.Data) == 0 {
		return 0
	}
	for _, d := range s.Data {
		target, ok := rr.Target(s.Type, d)
		// Compare exact bytes: a pointer must not change the letter case in which the target was written.
		if !ok || !target.IsIn(apex) || d[len(d)-len(apex.Wire()):] != apex.Wire() {
			return 0
		}
	}
	return len(apex.Wire())
}
