package resolve

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

const (
	headerSize = wire.HeaderSize
	// Of the third octet of the header: QR and opcode (RFC 1035 §4.1.1).
	kindMask  = 0xf8
	kindReply = 0x80
	flagTC    = 0x02
)

// questionEnd is the octet behind the one question of a message that we packed.
func questionEnd(wire []byte) int {
	at := headerSize
	for wire[at] != 0 {
		at += 1 + int(wire[at])
	}
	return at + 5
}

// Match returns why a message is not the reply to a query: its id, or its one question. The case of the
// name does not count.
func Match(query, reply []byte) error {
	end := questionEnd(query)
	switch {
	case len(reply) < headerSize || reply[0] != query[0] || reply[1] != query[1]:
		return ErrID
	case len(reply) < end || reply[2]&kindMask != kindReply || binary.BigEndian.Uint16(reply[4:]) != 1:
		return ErrQuestion
	}
	asked, said := query[headerSize:end], reply[headerSize:end]
	name := len(asked) - 4
	if !dnsname.EqualFold(asked[:name], said[:name]) || !bytes.Equal(asked[name:], said[name:]) {
		return ErrQuestion
	}
	return nil
}

func unpack(wire []byte) (*dns.Msg, error) {
	m := new(dns.Msg)
	if err := m.Unpack(wire); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	for _, section := range [][]dns.RR{m.Answer, m.Ns} {
		if slices.ContainsFunc(section, rr.IsCut) {
			return nil, fmt.Errorf("%w: a record ends before its data does", errMalformed)
		}
	}
	return m, nil
}
