package dnsserver

import (
	"encoding/binary"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// EDNS option codes.
const (
	optionNSID      = 3  // RFC 5001
	optionCookie    = 10 // RFC 7873
	optionKeepalive = 11 // RFC 7828
)

const (
	optFixed         = 11 // size of an OPT record without options (RFC 6891 §6.1.2)
	optionHeaderSize = 4

	minUDPSize = 512 // RFC 6891 §6.2.3: a smaller value counts as this
	flagDO     = 1 << 15
)

// edns is the OPT record of a query.
type edns struct {
	present   bool
	size      int // the requestor's UDP payload size
	version   byte
	do        bool
	nsid      bool
	keepalive bool
	padding   bool
	cookie    []byte // the whole option; nil for none
	malformed bool   // the options cannot be read and count as absent
}

// read parses an OPT record from its CLASS, TTL and RDATA.
func (e *edns) read(class uint16, ttl uint32, data []byte) {
	plain := edns{
		present: true,
		size:    max(int(class), minUDPSize),
		version: byte(ttl >> 16),
		do:      ttl&flagDO != 0,
	}
	*e = plain
	if !e.readOptions(data) {
		*e = plain
		e.malformed = true
	}
}

// readOptions returns false when an option is cut short, or when a cookie has a length that RFC 7873 §5.2.2 calls
// malformed. Of two cookies the first counts (§5.2).
func (e *edns) readOptions(data []byte) bool {
	for len(data) > 0 {
		if len(data) < optionHeaderSize {
			return false
		}
		code := binary.BigEndian.Uint16(data)
		end := optionHeaderSize + int(binary.BigEndian.Uint16(data[2:]))
		if len(data) < end {
			return false
		}
		switch code {
		case optionNSID:
			e.nsid = true
		case optionKeepalive:
			e.keepalive = true
		case wire.OptionPadding:
			e.padding = true
		case optionCookie:
			if e.cookie != nil {
				break
			}
			e.cookie = data[optionHeaderSize:end]
			if !cookieLength(len(e.cookie)) {
				return false
			}
		}
		data = data[end:]
	}
	return true
}

// reserve returns the number of bytes that the OPT record of the reply needs. Extended errors are not counted: most
// belong to replies without records. The one for stale records is left out when it does not fit.
func (h *handler) reserve() int {
	e := &h.q.edns
	if !e.present {
		return 0
	}
	n := optFixed
	if e.cookie != nil {
		n += optionHeaderSize + cookieSize
	}
	if e.nsid && h.settings.nsid != "" {
		n += optionHeaderSize + len(h.settings.nsid)
	}
	if e.keepalive && h.from.keepalive != 0 {
		n += optionHeaderSize + 2
	}
	if h.pads() {
		n += optionHeaderSize
	}
	return n
}

// pads reports whether the reply is padded: the client has padded its query, and nobody else can read the reply.
func (h *handler) pads() bool { return h.q.edns.padding && h.from.encrypted != nil }

// appendOPT appends our OPT record. Only a query with an OPT record gets one (RFC 6891 §6.1.1).
func (h *handler) appendOPT(msg []byte, rcode, ede int) []byte {
	e := &h.q.edns
	msg = append(msg, 0)
	msg = binary.BigEndian.AppendUint16(msg, uint16(rr.TypeOPT))
	msg = binary.BigEndian.AppendUint16(msg, uint16(h.settings.udpSize))
	var do byte
	if e.do {
		do = 0x80
	}
	msg = append(msg, byte(rcode>>4), 0, do, 0, 0, 0)
	data := len(msg)
	if e.cookie != nil {
		msg = appendOption(msg, optionCookie, cookieSize)
		msg = append(msg, h.cookie[:]...)
	}
	if e.nsid && h.settings.nsid != "" {
		msg = appendOption(msg, optionNSID, len(h.settings.nsid))
		msg = append(msg, h.settings.nsid...)
	}
	if e.keepalive && h.from.keepalive != 0 {
		msg = appendOption(msg, optionKeepalive, 2)
		msg = binary.BigEndian.AppendUint16(msg, h.from.keepalive)
	}
	if ede != wire.EDENone && len(msg)+optionHeaderSize+2 <= h.limit {
		msg = appendOption(msg, wire.OptionEDE, 2)
		msg = binary.BigEndian.AppendUint16(msg, uint16(ede))
	}
	if h.pads() {
		msg = wire.AppendPadding(msg, 0, h.limit)
	}
	binary.BigEndian.PutUint16(msg[data-2:], uint16(len(msg)-data))
	return msg
}

func appendOption(msg []byte, code uint16, size int) []byte {
	msg = binary.BigEndian.AppendUint16(msg, code)
	return binary.BigEndian.AppendUint16(msg, uint16(size))
}
