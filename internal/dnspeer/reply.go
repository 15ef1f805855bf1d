package dnspeer

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// keptFlags are the flags that a reply copies from the query: the opcode and RD.
const keptFlags = wire.OpcodeMask | wire.FlagRD

// replyHead returns the header and question of the replies to a message. It leaves out the question if the message has
// more than one, or none, or a compressed one.
func replyHead(msg []byte) []byte {
	if len(msg) < wire.HeaderSize {
		return nil
	}
	end := wire.HeaderSize
	if binary.BigEndian.Uint16(msg[4:]) == 1 {
		if _, n, err := dnsname.FromWire(msg[end:]); err == nil && end+n+4 <= len(msg) {
			end += n + 4
		}
	}
	head := append([]byte(nil), msg[:end]...)
	binary.BigEndian.PutUint16(head[2:], wire.FlagQR|binary.BigEndian.Uint16(msg[2:])&keptFlags)
	clear(head[4:wire.HeaderSize])
	if end > wire.HeaderSize {
		head[5] = 1
	}
	return head
}

// replyHeader answers a message that could not be read with only a header and an RCODE.
func (r *request) replyHeader(rcode uint16) error {
	if len(r.m.Wire) < wire.HeaderSize {
		return nil
	}
	msg := append([]byte(nil), r.m.Wire[:wire.HeaderSize]...)
	binary.BigEndian.PutUint16(msg[2:], wire.FlagQR|binary.BigEndian.Uint16(msg[2:])&keptFlags|rcode)
	clear(msg[4:])
	return r.m.Send(msg)
}

// unsignedReply returns an unsigned reply without records. why is the text of the extended error.
func (r *request) unsignedReply(rcode, ede int, why string) []byte {
	msg := append(make([]byte, 0, len(r.head)+300), r.head...)
	msg[3] = msg[3]&0xF0 | byte(rcode&0xF)
	if room := r.m.Limit - len(msg) - optSize - maxTSIG; len(why) > room {
		why = strings.ToValidUTF8(why[:max(room, 0)], "")
	}
	msg = r.appendOPT(msg, ede, why)
	if r.m.EDNS {
		msg[len(r.head)+5] = byte(rcode >> 4) // RFC 6891 §6.1.3: the first byte of the TTL
	}
	return msg
}

// appendOPT appends our OPT record if the client sent one.
func (r *request) appendOPT(msg []byte, ede int, why string) []byte {
	if !r.m.EDNS {
		return msg
	}
	r.optAt = len(msg)
	msg = append(msg, 0)
	msg = binary.BigEndian.AppendUint16(msg, dns.TypeOPT)
	msg = binary.BigEndian.AppendUint16(msg, wire.UDPSize)
	msg = append(msg, 0, 0, 0, 0)
	if ede == wire.EDENone {
		msg = append(msg, 0, 0)
	} else {
		msg = binary.BigEndian.AppendUint16(msg, uint16(6+len(why)))
		msg = binary.BigEndian.AppendUint16(msg, wire.OptionEDE)
		msg = binary.BigEndian.AppendUint16(msg, uint16(2+len(why)))
		msg = append(binary.BigEndian.AppendUint16(msg, uint16(ede)), why...)
	}
	binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])+1)
	return msg
}

const (
	// optSize is the maximum number of bytes that appendOPT appends, without a text.
	optSize = 11 + 6
	// maxTSIG is more than any TSIG record of a reply has: two names, a MAC of 64 bytes, and 32 bytes of other fields.
	maxTSIG = 2*dnsname.MaxWire + 64 + 32
)

// reply answers with an RCODE and no records.
func (r *request) reply(rcode, ede int) error {
	return r.send(r.unsignedReply(rcode, ede, ""))
}

// send sends a reply, signed if the message was signed.
func (r *request) send(msg []byte) error {
	msg = r.pad(msg)
	if r.signed != nil {
		msg = r.signed.Sign(msg, wire.TSIG{Time: uint64(time.Now().Unix())})
	}
	return r.m.Send(msg)
}

// pad adds padding to the OPT record that ends a reply, if the client wants it.
func (r *request) pad(msg []byte) []byte {
	at := r.optAt
	r.optAt = 0
	if !r.m.Padded || at == 0 {
		return msg
	}
	after := 0
	if r.signed != nil {
		after = r.signed.Size()
	}
	msg = wire.AppendPadding(msg, after, r.m.Limit)
	binary.BigEndian.PutUint16(msg[at+9:], uint16(len(msg)-at-11)) // the length of the OPT record's data
	return msg
}

// reserved returns the number of bytes that send and appendOPT append.
func (r *request) reserved() int {
	n := 0
	if r.m.EDNS {
		n += optSize
	}
	if r.signed != nil {
		n += r.signed.Size()
	}
	return n
}

// refuse answers that the peer has no permission.
func (r *request) refuse() error {
	return r.reply(dns.RcodeRefused, wire.EDEProhibited)
}

// fail answers that there is no such zone, or that this server has failed.
func (r *request) fail(what string, err error) error {
	if errors.Is(err, errNoZone) {
		return r.reply(dns.RcodeNotAuth, wire.EDENotAuthoritative)
	}
	r.cfg.Log.Error("answer a peer", "what", what, "zone", r.name.String(), "peer", r.peer(), "error", err)
	return r.reply(dns.RcodeServerFailure, wire.EDENotReady)
}
