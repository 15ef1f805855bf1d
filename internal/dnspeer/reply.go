package dnspeer

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// keptFlags are the flags that a reply copies from the query: the opcode and RD.
const keptFlags = wire.OpcodeMask | wire.FlagRD

// replyHead returns the header and question of the replies to a message with one question.
func replyHead(msg []byte) []byte {
	end, ok := wire.SkipName(msg, wire.HeaderSize)
	if end += 4; !ok || end > len(msg) {
		return nil
	}
	head := append([]byte(nil), msg[:end]...)
	binary.BigEndian.PutUint16(head[2:], wire.FlagQR|binary.BigEndian.Uint16(msg[2:])&keptFlags)
	clear(head[6:wire.HeaderSize])
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

// unsignedReply returns an unsigned reply without records.
func (r *request) unsignedReply(rcode, ede int) []byte {
	msg := append(make([]byte, 0, len(r.head)+300), r.head...)
	msg[3] = msg[3]&0xF0 | byte(rcode)
	return r.appendOPT(msg, ede)
}

// appendOPT appends our OPT record if the client sent one.
func (r *request) appendOPT(msg []byte, ede int) []byte {
	if r.opt == nil {
		return msg
	}
	msg = append(msg, 0)
	msg = binary.BigEndian.AppendUint16(msg, dns.TypeOPT)
	msg = binary.BigEndian.AppendUint16(msg, wire.UDPSize)
	msg = append(msg, 0, 0, 0, 0)
	if ede == wire.EDENone {
		msg = append(msg, 0, 0)
	} else {
		msg = append(msg, 0, 6, 0, wire.OptionEDE, 0, 2, byte(ede>>8), byte(ede))
	}
	binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])+1)
	return msg
}

// optSize is the maximum number of bytes that appendOPT appends.
const optSize = 11 + 6

// reply answers with an RCODE and no records.
func (r *request) reply(rcode, ede int) error {
	return r.send(r.unsignedReply(rcode, ede))
}

// send sends a reply, signed if the message was signed.
func (r *request) send(msg []byte) error {
	if r.signed != nil {
		msg = r.signed.Sign(msg, wire.TSIG{Time: uint64(time.Now().Unix())})
	}
	return r.m.Send(msg)
}

// reserved returns the number of bytes that send and appendOPT append.
func (r *request) reserved() int {
	n := 0
	if r.opt != nil {
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
