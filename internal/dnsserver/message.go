package dnsserver

import (
	"encoding/binary"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Header of RFC 1035 §4.1.1, and the flags in its second word.
const (
	headerSize = 12

	flagQR = 1 << 15
	flagAA = 1 << 10
	flagTC = 1 << 9
	flagRD = 1 << 8
	flagRA = 1 << 7
	flagAD = 1 << 5
	flagCD = 1 << 4

	opcodeMask  = 0xF << 11
	opcodeQuery = 0
)

const (
	classIN  = 1
	classCH  = 3
	classANY = 255
)

// query is what a message asks, as far as the server cares. Slices point into the message or into the handler.
type query struct {
	wire   []byte // the whole message
	flags  uint16
	asked  bool // a question was read; it ends at end
	end    int
	name   []byte // of the question, in lower case
	qtype  rr.Type
	qclass uint16
	edns   edns
	tsig   tsig
}

// readHeader takes the fields of the header that are always there.
func (q *query) readHeader(wire []byte) {
	q.wire = wire
	q.flags = binary.BigEndian.Uint16(wire[2:])
	q.asked = false
	q.end = headerSize
	q.edns.present = false
	q.tsig.present = false
}

func (q *query) questions() int { return int(binary.BigEndian.Uint16(q.wire[4:])) }

// readQuestion reads the one question and folds its name into scratch. A compressed name is refused: in front of the
// first name there is nothing to point to.
func (q *query) readQuestion(scratch *[dnsname.MaxWire + 1]byte) bool {
	b := q.wire[headerSize:]
	at := 0
	for {
		if at >= len(b) || at >= dnsname.MaxWire {
			return false
		}
		n := int(b[at])
		if n == 0 {
			break
		}
		if n > dnsname.MaxLabel {
			return false
		}
		at += 1 + n
	}
	at++
	if len(b) < at+4 {
		return false
	}
	for i, c := range b[:at] {
		scratch[i] = fold[c] // length octets are below 'A'
	}
	q.name = scratch[:at]
	q.qtype = rr.Type(binary.BigEndian.Uint16(b[at:]))
	q.qclass = binary.BigEndian.Uint16(b[at+2:])
	q.end = headerSize + at + 4
	q.asked = true
	return true
}

// fold is A-Z to a-z (RFC 4343 §3) as a table: a load costs less than two comparisons for each octet of each query.
var fold = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

// foldName makes a name lower-case, where it is.
func foldName(name []byte) []byte {
	for i, c := range name {
		name[i] = fold[c]
	}
	return name
}

// equalFold reports whether a name is another that is in lower case.
func equalFold(name, lower []byte) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, c := range name {
		if fold[c] != lower[i] {
			return false
		}
	}
	return true
}

// Sections after the question.
const (
	sectionAnswer = iota
	sectionAuthority
	sectionAdditional
)

// readRecords walks what follows the question. Only OPT and TSIG matter to a query; the rest must merely be there,
// as many as the header says. What follows the last record is not looked at, as BIND does.
func (q *query) readRecords() bool {
	at := q.end
	for section := sectionAnswer; section <= sectionAdditional; section++ {
		count := int(binary.BigEndian.Uint16(q.wire[6+2*section:]))
		for i := range count {
			next, ok := q.readRecord(at, section, i == count-1)
			if !ok {
				return false
			}
			at = next
		}
	}
	return true
}

// readRecord reads the record at an offset and returns the offset of the next.
func (q *query) readRecord(at, section int, last bool) (int, bool) {
	fixed, ok := skipName(q.wire, at)
	if !ok || len(q.wire) < fixed+10 {
		return 0, false
	}
	b := q.wire[fixed:]
	data := fixed + 10
	next := data + int(binary.BigEndian.Uint16(b[8:]))
	if len(q.wire) < next {
		return 0, false
	}
	switch rr.Type(binary.BigEndian.Uint16(b)) {
	case rr.TypeOPT:
		// RFC 6891 §6.1.1: one at most, in the additional section, owned by the root.
		if q.edns.present || section != sectionAdditional || q.wire[at] != 0 {
			return 0, false
		}
		ttl := binary.BigEndian.Uint32(b[4:])
		q.edns.read(binary.BigEndian.Uint16(b[2:]), ttl, q.wire[data:next])
		return next, true
	case rr.TypeTSIG:
		// RFC 8945 §5.1: the last record of the message.
		if section != sectionAdditional || !last {
			return 0, false
		}
		return next, q.tsig.read(q.wire, at, data, next)
	}
	return next, true
}

// skipName returns the offset behind the name at an offset. A pointer ends a name; it is not followed.
func skipName(b []byte, at int) (int, bool) {
	for at < len(b) {
		n := int(b[at])
		switch {
		case n == 0:
			return at + 1, true
		case n >= 0xC0:
			return at + 2, at+2 <= len(b)
		case n > dnsname.MaxLabel:
			return 0, false
		}
		at += 1 + n
	}
	return 0, false
}

// appendName appends the name at an offset with its pointers followed. Each pointer must lead further back than the
// one before, so the walk ends.
func appendName(dst, b []byte, at int) ([]byte, bool) {
	start, limit := len(dst), at
	for at < len(b) {
		n := int(b[at])
		switch {
		case n == 0:
			return append(dst, 0), len(dst)-start < dnsname.MaxWire
		case n >= 0xC0:
			if at+1 >= len(b) {
				return dst, false
			}
			to := (n&0x3F)<<8 | int(b[at+1])
			if to >= limit {
				return dst, false
			}
			at, limit = to, to
			continue
		case n > dnsname.MaxLabel || at+1+n > len(b) || len(dst)-start+1+n >= dnsname.MaxWire:
			return dst, false
		}
		dst = append(dst, b[at:at+1+n]...)
		at += 1 + n
	}
	return dst, false
}
