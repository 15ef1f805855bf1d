package dnspeer

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// keptFlags are those of a query that its reply has too: the opcode and RD.
const keptFlags = wire.OpcodeMask | wire.FlagRD

// replyHead is the header and question of the replies to a message with one question.
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

// bare answers a message that was not read with nothing but a code.
func (c *conversation) bare(rcode uint16) error {
	if len(c.m.Wire) < wire.HeaderSize {
		return nil
	}
	msg := append([]byte(nil), c.m.Wire[:wire.HeaderSize]...)
	binary.BigEndian.PutUint16(msg[2:], wire.FlagQR|binary.BigEndian.Uint16(msg[2:])&keptFlags|rcode)
	clear(msg[4:])
	return c.m.Send(msg)
}

// plain is an unsigned reply without records.
func (c *conversation) plain(rcode, ede int) []byte {
	msg := append(make([]byte, 0, len(c.head)+300), c.head...)
	msg[3] = msg[3]&0xF0 | byte(rcode)
	return c.appendOPT(msg, ede)
}

// appendOPT appends our OPT record to the reply to those who sent one.
func (c *conversation) appendOPT(msg []byte, ede int) []byte {
	if c.opt == nil {
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

// optSize is the most that appendOPT appends.
const optSize = 11 + 6

// reply answers with nothing but a code.
func (c *conversation) reply(rcode, ede int) error {
	return c.send(c.plain(rcode, ede))
}

// send sends a reply, signed when the message was.
func (c *conversation) send(msg []byte) error {
	if c.signed != nil {
		msg = c.signed.Sign(msg, wire.TSIG{Time: uint64(time.Now().Unix())})
	}
	return c.m.Send(msg)
}

// reserve is the room for what send, and appendOPT, append.
func (c *conversation) reserve() int {
	n := 0
	if c.opt != nil {
		n += optSize
	}
	if c.signed != nil {
		n += c.signed.Size()
	}
	return n
}

// refuse answers that the peer may not.
func (c *conversation) refuse() error {
	return c.reply(dns.RcodeRefused, wire.EDEProhibited)
}

// fail answers that something here is broken.
func (c *conversation) fail(what string, err error) error {
	if errors.Is(err, errNoZone) {
		return c.reply(dns.RcodeNotAuth, wire.EDENotAuthoritative)
	}
	c.cfg.Log.Error("answer a peer", "what", what, "zone", c.name.String(), "peer", c.who(), "error", err)
	return c.reply(dns.RcodeServerFailure, wire.EDENotReady)
}
