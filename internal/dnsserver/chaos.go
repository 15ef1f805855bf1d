package dnsserver

import (
	"encoding/binary"

	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// chaos answers class CH: the server's version and identity, when the operator configured them.
func (h *handler) chaos() int {
	text := h.chaosText()
	if text == "" || h.q.qtype != rr.TypeTXT && h.q.qtype != rr.TypeANY {
		return h.refuse(wire.EDENotSupported)
	}
	r := &h.reply
	r.Msg = binary.BigEndian.AppendUint16(r.Msg, wire.Pointer(wire.HeaderSize))
	r.Msg = binary.BigEndian.AppendUint16(r.Msg, uint16(rr.TypeTXT))
	r.Msg = binary.BigEndian.AppendUint16(r.Msg, wire.ClassCH)
	r.Msg = append(r.Msg, 0, 0, 0, 0) // TTL
	r.Msg = binary.BigEndian.AppendUint16(r.Msg, uint16(1+len(text)))
	r.Msg = append(r.Msg, byte(len(text)))
	r.Msg = append(r.Msg, text...)
	r.Answers, r.Authoritative, r.Kind = 1, true, lookup.Positive
	return wire.EDENone
}

// chaosText returns the text for the name of the question, or "".
func (h *handler) chaosText() string {
	switch string(h.q.name) {
	case "\x07version\x04bind\x00", "\x07version\x06server\x00":
		return h.settings.version
	case "\x08hostname\x04bind\x00", "\x02id\x06server\x00":
		return h.settings.nsid
	}
	return ""
}
