package resolve

import (
	"bytes"
	"context"
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
	// QR and opcode in the third byte of the header (RFC 1035 §4.1.1).
	kindMask  = 0xf8
	kindReply = 0x80
	flagTC    = 0x02
)

// questionEnd returns the offset after the question. The message has one question and was packed by us.
func questionEnd(wire []byte) int {
	at := headerSize
	for wire[at] != 0 {
		at += 1 + int(wire[at])
	}
	return at + 5
}

// Match returns nil if reply belongs to query. Otherwise it returns ErrID or ErrQuestion. The names may differ in
// case.
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

// sizeKey is the key of a context for WithSize.
type sizeKey struct{}

// WithSize returns a context for Exchange. Exchange sets *size to the number of bytes of the reply as the server sent
// it. The reply itself does not have it, because packing it again may compress names differently.
func WithSize(ctx context.Context, size *int) context.Context {
	return context.WithValue(ctx, sizeKey{}, size)
}

// NoteSize sets the size of WithSize. Implementations of Exchanger call it.
func NoteSize(ctx context.Context, size int) {
	if s, ok := ctx.Value(sizeKey{}).(*int); ok {
		*s = size
	}
}

// unpack parses a reply. It rejects records with incomplete data, which the parser of the dns package accepts.
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
