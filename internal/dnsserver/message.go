package dnsserver

import (
	"encoding/binary"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

const opcodeQuery = 0

// query holds the parts of a message that the server needs. Slices point into the message or into the handler.
type query struct {
	wire        []byte // the whole message
	flags       uint16
	hasQuestion bool // a question was read; it ends at end
	end         int
	name        []byte // name of the question, in lower case
	qtype       rr.Type
	qclass      uint16
	edns        edns
	signed      bool // the last record is a TSIG, which Peers reads
}

// readHeader reads the header fields that every message has, and resets the others.
func (q *query) readHeader(msg []byte) {
	q.wire = msg
	q.flags = binary.BigEndian.Uint16(msg[2:])
	q.hasQuestion = false
	q.end = wire.HeaderSize
	q.edns.present = false
	q.signed = false
}

func (q *query) questions() int { return int(binary.BigEndian.Uint16(q.wire[4:])) }

// readQuestion reads the one question and writes its name in lower case to scratch. It refuses a compressed name,
// because nothing precedes the first name that a pointer could refer to.
func (q *query) readQuestion(scratch *[dnsname.MaxWire + 1]byte) bool {
	b := q.wire[wire.HeaderSize:]
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
		scratch[i] = dnsname.Lower(c)
	}
	q.name = scratch[:at]
	q.qtype = rr.Type(binary.BigEndian.Uint16(b[at:]))
	q.qclass = binary.BigEndian.Uint16(b[at+2:])
	q.end = wire.HeaderSize + at + 4
	q.hasQuestion = true
	return true
}

// Sections after the question.
const (
	sectionAnswer = iota
	sectionAuthority
	sectionAdditional
)

// readRecords reads the records after the question. Only OPT and TSIG matter to a query. The others need only be
// present, as many as the header says. Bytes after the last record are ignored, as in BIND.
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
	r, ok := wire.ReadRecord(q.wire, at)
	if !ok {
		return 0, false
	}
	switch r.Type {
	case rr.TypeOPT:
		// RFC 6891 §6.1.1: one at most, in the additional section, owned by the root.
		if q.edns.present || section != sectionAdditional || q.wire[at] != 0 {
			return 0, false
		}
		b := q.wire[r.Fixed:]
		q.edns.read(binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:]), q.wire[r.Data:r.Next])
	case rr.TypeTSIG:
		// RFC 8945 §5.1: the last record of the message.
		if section != sectionAdditional || !last {
			return 0, false
		}
		q.signed = true
	}
	return r.Next, true
}
