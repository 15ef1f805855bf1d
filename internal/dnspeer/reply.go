package dnspeer

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/miekg/dns"
)

// noEDE is no extended error.
const noEDE = 0xFFFF

const (
	flagQR = 1 << 15
	flagAA = 1 << 10

	// keptFlags are those of a query that its reply has too: the opcode and RD.
	keptFlags = 0xF<<11 | 1<<8

	optionEDE = 15 // RFC 8914
	udpSize   = 1232
)

// replyHead is the header and question of the replies to a message with one question.
func replyHead(wire []byte) []byte {
	end, ok := skipName(wire, headerSize)
	if end += 4; !ok || end > len(wire) {
		return nil
	}
	head := append([]byte(nil), wire[:end]...)
	binary.BigEndian.PutUint16(head[2:], flagQR|binary.BigEndian.Uint16(wire[2:])&keptFlags)
	clear(head[6:headerSize])
	return head
}

// malformed answers what cannot be read.
func (c *conversation) malformed() error {
	if len(c.m.Wire) < headerSize {
		return nil
	}
	msg := append([]byte(nil), c.m.Wire[:headerSize]...)
	binary.BigEndian.PutUint16(msg[2:], flagQR|binary.BigEndian.Uint16(msg[2:])&keptFlags|dns.RcodeFormatError)
	clear(msg[4:])
	return c.m.Send(msg)
}

// plain is an unsigned reply without records.
func (c *conversation) plain(rcode, ede int) []byte {
	msg := append(make([]byte, 0, len(c.head)+300), c.head...)
	return c.appendOPT(setRcode(msg, rcode), ede)
}

func setRcode(msg []byte, rcode int) []byte {
	msg[3] = msg[3]&0xF0 | byte(rcode)
	return msg
}

// appendOPT appends our OPT record to the reply to those who sent one.
func (c *conversation) appendOPT(msg []byte, ede int) []byte {
	if c.opt == nil {
		return msg
	}
	msg = append(msg, 0)
	msg = binary.BigEndian.AppendUint16(msg, dns.TypeOPT)
	msg = binary.BigEndian.AppendUint16(msg, udpSize)
	msg = append(msg, 0, 0, 0, 0)
	if ede == noEDE {
		msg = append(msg, 0, 0)
	} else {
		msg = append(msg, 0, 6, 0, optionEDE, 0, 2, byte(ede>>8), byte(ede))
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
		msg = c.signed.sign(msg, time.Now(), tsigOK)
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
		n += c.signed.size()
	}
	return n
}

// refuse answers that the peer may not.
func (c *conversation) refuse() error {
	return c.reply(dns.RcodeRefused, int(dns.ExtendedErrorCodeProhibited))
}

// fail answers that something here is broken.
func (c *conversation) fail(what string, err error) error {
	if errors.Is(err, errNoZone) {
		return c.reply(dns.RcodeNotAuth, int(dns.ExtendedErrorCodeNotAuthoritative))
	}
	c.cfg.Log.Error("answer a peer", "what", what, "zone", c.name.String(), "peer", c.who(), "error", err)
	return c.reply(dns.RcodeServerFailure, int(dns.ExtendedErrorCodeNotReady))
}
