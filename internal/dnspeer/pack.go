package dnspeer

import (
	"encoding/binary"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// packer writes the messages of a transfer. Each message has a question whose name is the apex of the zone. So every
// owner ends in a pointer of two bytes instead of the apex.
type packer struct {
	buf      []byte
	question int // end of the question; every message has the bytes before it
	limit    int // maximum size of a message up to its last record
	most     int // maximum size of a message with one record
	answers  int
	owner    string // labels of the last owner, without the apex
	ownerAt  int    // offset of these labels; 0: not in the message
}

// newPacker returns a packer that writes after a header and question. Messages have about size bytes, of which reserve
// are for data after the records. A record that is larger gets a message of its own.
func newPacker(head []byte, size, most, reserve int) *packer {
	p := &packer{buf: make([]byte, len(head), size+reserve), question: len(head),
		limit: min(size, most) - reserve, most: most - reserve}
	copy(p.buf, head)
	return p
}

// reset begins the next message.
func (p *packer) reset() {
	p.buf, p.answers, p.ownerAt = p.buf[:p.question], 0, 0
	binary.BigEndian.PutUint16(p.buf[10:], 0)
}

// message returns the current message, with the number of records in its header.
func (p *packer) message() []byte {
	binary.BigEndian.PutUint16(p.buf[6:], uint16(p.answers))
	return p.buf
}

// put appends a record of a zone's node, which begins with its owner as a pointer to the question. If the record does
// not fit, put returns false and has written nothing.
func (p *packer) put(labels, record string, apexPointer bool) bool {
	start, limit := len(p.buf), p.limit
	if p.answers == 0 {
		limit = p.most
	}
	again := p.ownerAt > 0 && labels == p.owner
	size := len(record)
	if !again {
		size += len(labels)
	}
	if start+size > limit {
		return false
	}
	switch {
	case labels == "":
	case again:
		p.buf = binary.BigEndian.AppendUint16(p.buf, wire.Pointer(p.ownerAt))
		record = record[2:]
	default:
		p.buf = append(p.buf, labels...)
		p.owner, p.ownerAt = labels, start
	}
	p.buf = append(p.buf, record...)
	if apexPointer {
		binary.BigEndian.PutUint16(p.buf[len(p.buf)-2:], wire.Pointer(wire.HeaderSize))
	}
	p.answers++
	return true
}

// putSet appends all records of a node's set, and calls flush whenever a message is full.
func (p *packer) putSet(labels string, r zone.Records, flush func() error) error {
	for rest := r.Wire; rest != ""; {
		n := 2 + wire.RecordFixed + int(rest[10])<<8 + int(rest[11])
		if err := p.putOrFlush(labels, rest[:n], r.ApexPointer, flush); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (p *packer) putOrFlush(labels, record string, apexPointer bool, flush func() error) error {
	if p.put(labels, record, apexPointer) {
		return nil
	}
	if err := flush(); err != nil {
		return err
	}
	if !p.put(labels, record, apexPointer) {
		return errTooLarge
	}
	return nil
}

// putData appends the records of a set that is not in a node. Its name must be in the zone.
func (p *packer) putData(labels string, s rr.Set, flush func() error) error {
	for _, d := range s.Data {
		record := string(wire.AppendRecord(nil, wire.HeaderSize, s.Type, s.TTL, d))
		if err := p.putOrFlush(labels, record, false, flush); err != nil {
			return err
		}
	}
	return nil
}
