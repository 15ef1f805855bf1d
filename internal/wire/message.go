// Package wire reads and writes parts of DNS messages without a library: headers, names, records, codes and TSIG.
//
// It has what more than one package needs, keeps no state, and does not allocate on the query path. Start with
// ReadRecord in message.go; TSIGChain in tsig.go signs and verifies messages.
package wire

import (
	"encoding/binary"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// The header of RFC 1035 §4.1.1, and the flags in its second word.
const (
	HeaderSize = 12

	FlagQR = 1 << 15
	FlagAA = 1 << 10
	FlagTC = 1 << 9
	FlagRD = 1 << 8
	FlagRA = 1 << 7
	FlagAD = 1 << 5
	FlagCD = 1 << 4

	OpcodeMask = 0xF << 11
)

// Classes of RFC 1035 §3.2.4 and RFC 2136 §1.3.
const (
	ClassIN   = 1
	ClassCH   = 3
	ClassNONE = 254
	ClassANY  = 255
)

const (
	// MaxSize is the largest message: over TCP its length has two bytes.
	MaxSize = 65535
	// UDPSize is the size of UDP messages that no usual path fragments (DNS flag day 2020).
	UDPSize = 1232
	// MaxChain limits the CNAMEs and DNAMEs that are followed for one question. Resolvers give up after 8 to 16.
	MaxChain = 16
	// RecordFixed is the size of a record between its owner and its data: type 2, class 2, TTL 4, length 2.
	RecordFixed = 10
	// MaxPointer is the last offset that a compression pointer can name (RFC 1035 §4.1.4).
	MaxPointer = 0x3FFF
	// PointerMark has the two bits that mark the first byte of a compression pointer. The length of a label is less.
	PointerMark = 0xC0
)

// Pointer returns a compression pointer to an offset of the message, which is at most MaxPointer.
func Pointer(to int) uint16 { return PointerMark<<8 | uint16(to) }

// SkipName returns the offset after the name at an offset. A pointer ends a name; it is not followed.
func SkipName(msg []byte, at int) (int, bool) {
	for at < len(msg) {
		n := int(msg[at])
		switch {
		case n == 0:
			return at + 1, true
		case n >= PointerMark:
			return at + 2, at+2 <= len(msg)
		case n > dnsname.MaxLabel:
			return 0, false
		}
		at += 1 + n
	}
	return 0, false
}

// AppendName appends the name at an offset and follows its pointers. Each pointer must lead further back than the one
// before, so the loop ends.
func AppendName(dst, msg []byte, at int) ([]byte, bool) {
	start, limit := len(dst), at
	for at < len(msg) {
		n := int(msg[at])
		switch {
		case n == 0:
			return append(dst, 0), len(dst)-start < dnsname.MaxWire
		case n >= PointerMark:
			if at+1 >= len(msg) {
				return dst, false
			}
			to := (n&0x3F)<<8 | int(msg[at+1])
			if to >= limit {
				return dst, false
			}
			at, limit = to, to
			continue
		case n > dnsname.MaxLabel || at+1+n > len(msg) || len(dst)-start+1+n >= dnsname.MaxWire:
			return dst, false
		}
		dst = append(dst, msg[at:at+1+n]...)
		at += 1 + n
	}
	return dst, false
}

// Record has the offsets of the parts of a record in a message. The owner ends at Fixed, the data at Next.
type Record struct {
	Type  rr.Type
	Fixed int // type, class, TTL, length
	Data  int
	Next  int
}

// ReadRecord finds the record at an offset, and reports whether all of it is in the message.
func ReadRecord(msg []byte, at int) (Record, bool) {
	fixed, ok := SkipName(msg, at)
	data := fixed + RecordFixed
	if !ok || len(msg) < data {
		return Record{}, false
	}
	next := data + int(binary.BigEndian.Uint16(msg[fixed+8:]))
	return Record{rr.Type(binary.BigEndian.Uint16(msg[fixed:])), fixed, data, next}, next <= len(msg)
}

// AppendHead appends the fields before the data of a record of class IN. The owner is a pointer to an offset.
func AppendHead(msg []byte, owner int, t rr.Type, ttl uint32, size int) []byte {
	msg = binary.BigEndian.AppendUint16(msg, Pointer(owner))
	msg = binary.BigEndian.AppendUint16(msg, uint16(t))
	msg = binary.BigEndian.AppendUint16(msg, ClassIN)
	msg = binary.BigEndian.AppendUint32(msg, ttl)
	return binary.BigEndian.AppendUint16(msg, uint16(size))
}

// AppendRecord appends a record of class IN. The owner is a pointer to an offset.
func AppendRecord(msg []byte, owner int, t rr.Type, ttl uint32, data string) []byte {
	return append(AppendHead(msg, owner, t, ttl, len(data)), data...)
}
