package zone

import (
	"encoding/binary"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// A node is one name of a zone, empty non-terminals included, in a form that the query path copies from:
//
//	key length 1, key, flags 1, children 4, sets 2, then for each set: type 2, flags 1, records 2, size 4, records
//
// The key is the name without the zone's apex. A record is ready for a message: owner as a pointer to the question
// (0xC00C), type, class, TTL, length, data. Numbers of our own are little-endian, those of the message big-endian.
//
// Bytes instead of Go values, because a million small objects cost more in headers, pointers and garbage collection
// than in data: this form takes about 50 bytes for a name with one address.
const (
	nodeFixed = 1 + 1 + 4 + 2
	setFixed  = 2 + 1 + 2 + 4

	ownerPointer = 0xC00C // the question's name begins at octet 12 of every message
	classIN      = 1
	recordFixed  = 2 + 2 + 2 + 4 + 2
)

// Node flags.
const (
	flagWildcard = 1 << iota // a child "*" exists
	flagCut                  // NS below the apex: the zone ends here
	flagDNAME
)

// setApexPointer marks a set whose every record ends in a pointer that must be set to where the zone's apex stands in
// the message. NS, CNAME, PTR and MX data that end in the apex are stored so; it halves referrals and chains.
const setApexPointer = 1

// Node is a name found in a zone. The zero Node is none.
type Node struct{ b string } // from the flags on

// Found reports whether there is such a name.
func (n Node) Found() bool { return n.b != "" }

// HasWildcard reports whether "*" exists right below this name.
func (n Node) HasWildcard() bool { return n.b[0]&flagWildcard != 0 }

// IsCut reports whether the zone delegates this name.
func (n Node) IsCut() bool { return n.b[0]&flagCut != 0 }

// HasDNAME reports whether the names below are redirected.
func (n Node) HasDNAME() bool { return n.b[0]&flagDNAME != 0 }

// Records is a record set ready for a message.
type Records struct {
	Type  rr.Type
	Count int
	Wire  string // Count records; owners point to the question
	apex  bool
}

// ApexPointer reports whether the last two octets of each record must be pointed to the zone's apex.
func (r Records) ApexPointer() bool { return r.apex }

// Find is the set of type t at this name.
func (n Node) Find(t rr.Type) (Records, bool) {
	for i := range n.sets() {
		if i.Type == t {
			return i, true
		}
	}
	return Records{}, false
}

// First is the set of the lowest type at this name: what a query for ANY is answered with (RFC 8482 §4.1).
func (n Node) First() (Records, bool) {
	for i := range n.sets() {
		return i, true
	}
	return Records{}, false
}

// sets walks the sets in ascending order of type.
func (n Node) sets() func(func(Records) bool) {
	return func(yield func(Records) bool) {
		b := n.b
		count := int(le16(b, 5))
		at := nodeFixed - 1
		for range count {
			size := int(le32(b, at+5))
			r := Records{
				Type:  rr.Type(le16(b, at)),
				Count: int(le16(b, at+3)),
				Wire:  b[at+setFixed : at+setFixed+size],
				apex:  b[at+2]&setApexPointer != 0,
			}
			if !yield(r) {
				return
			}
			at += setFixed + size
		}
	}
}

func (n Node) children() int { return int(le32(n.b, 1)) }

func le16(s string, i int) uint16 { return uint16(s[i]) | uint16(s[i+1])<<8 }

func le32(s string, i int) uint32 {
	return uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
}

// draft is a node being changed.
type draft struct {
	key      string
	flags    byte
	children int
	sets     []draftSet // ascending by type
}

type draftSet struct {
	typ   rr.Type
	flags byte
	count int
	wire  string
}

func (n Node) draft(key string) draft {
	d := draft{key: key, flags: n.b[0], children: n.children()}
	for s := range n.sets() {
		var f byte
		if s.apex {
			f = setApexPointer
		}
		d.sets = append(d.sets, draftSet{s.Type, f, s.Count, s.Wire})
	}
	return d
}

// put sets or, with no records, removes a set.
func (d *draft) put(s draftSet) {
	i, found := slices.BinarySearchFunc(d.sets, s.typ, func(a draftSet, t rr.Type) int { return int(a.typ) - int(t) })
	switch {
	case s.count == 0 && found:
		d.sets = slices.Delete(d.sets, i, i+1)
	case s.count == 0:
	case found:
		d.sets[i] = s
	default:
		d.sets = slices.Insert(d.sets, i, s)
	}
}

func (d *draft) has(t rr.Type) bool {
	return slices.ContainsFunc(d.sets, func(s draftSet) bool { return s.typ == t })
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
	b = binary.LittleEndian.AppendUint32(b, uint32(d.children))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(d.sets)))
	for _, s := range d.sets {
		b = binary.LittleEndian.AppendUint16(b, uint16(s.typ))
		b = append(b, s.flags)
		b = binary.LittleEndian.AppendUint16(b, uint16(s.count))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s.wire)))
		b = append(b, s.wire...)
	}
	return b
}

// encode makes the records of a set ready for messages.
func encode(apex dnsname.Name, s rr.Set) draftSet {
	out := draftSet{typ: s.Type, count: len(s.Data)}
	suffix := apexSuffix(apex, s)
	if suffix > 0 {
		out.flags = setApexPointer
	}
	size := 0
	for _, d := range s.Data {
		size += recordFixed + len(d)
	}
	b := make([]byte, 0, size)
	for _, d := range s.Data {
		if suffix > 0 {
			d = d[:len(d)-suffix] + "\xc0\x00"
		}
		b = appendRecord(b, s.Type, s.TTL, d)
	}
	out.wire = string(b)
	return out
}

func appendRecord(b []byte, t rr.Type, ttl uint32, data string) []byte {
	b = binary.BigEndian.AppendUint16(b, ownerPointer)
	b = binary.BigEndian.AppendUint16(b, uint16(t))
	b = binary.BigEndian.AppendUint16(b, classIN)
	b = binary.BigEndian.AppendUint32(b, ttl)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// apexSuffix is the length of the apex at the end of each record's data when all of them end in it and may be
// compressed; else 0. All or none, so that one flag tells for the whole set.
func apexSuffix(apex dnsname.Name, s rr.Set) int {
	if _, ok := rr.Compressible(s.Type); !ok || apex.IsRoot() || len(s.Data) == 0 {
		return 0
	}
	for _, d := range s.Data {
		target, ok := rr.Target(s.Type, d)
		// Exact octets: a pointer must not change the case in which the target was written.
		if !ok || !target.IsIn(apex) || d[len(d)-len(apex.Wire()):] != apex.Wire() {
			return 0
		}
	}
	return len(apex.Wire())
}
