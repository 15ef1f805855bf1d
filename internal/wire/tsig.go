package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Errors in a TSIG record (RFC 8945 §3).
const (
	TSIGNoError  = 0
	TSIGBadSig   = 16
	TSIGBadKey   = 17
	TSIGBadTime  = 18
	TSIGBadTrunc = 22
	// TSIGFormErr is not an error of a TSIG record: the message is malformed, and its reply has that RCODE.
	TSIGFormErr = 0xFFFF
)

// TSIGErrorText returns the name of an error in a TSIG record.
func TSIGErrorText(code uint16) string {
	switch code {
	case TSIGBadSig:
		return "BADSIG" // the RCODE with this number is BADVERS
	case TSIGFormErr:
		return "FORMERR"
	}
	return RcodeText(int(code))
}

// Sizes of the fields of a TSIG record's data around its MAC (RFC 8945 §4.2).
const (
	tsigBeforeMAC = 6 + 2 + 2 // time signed, fudge, MAC size
	tsigAfterMAC  = 2 + 2 + 2 // original id, error, other length
)

// TSIGFudge is how many seconds clocks may differ (RFC 8945 §10). A larger fudge in a message is ignored. Otherwise a
// careless signer would decide for how long others may replay its messages.
const TSIGFudge = 300

// TSIG is a TSIG record.
type TSIG struct {
	At        int // offset in the message: the MAC covers all bytes before it
	Key       dnsname.Name
	Algorithm dnsname.Name
	Time      uint64 // seconds
	Fudge     uint16
	MAC       []byte
	ID        uint16 // ID of the message when it was signed
	Error     uint16
	Other     []byte
}

// ReadTSIG returns the TSIG record of a message, which is its last record, or nil when it has none. It returns false
// when a record cannot be read.
func ReadTSIG(msg []byte) (*TSIG, bool) {
	if len(msg) < HeaderSize {
		return nil, false
	}
	at := HeaderSize
	for range binary.BigEndian.Uint16(msg[4:]) {
		next, ok := SkipName(msg, at)
		if !ok || next+4 > len(msg) {
			return nil, false
		}
		at = next + 4
	}
	records := 0
	for i := 6; i < HeaderSize; i += 2 {
		records += int(binary.BigEndian.Uint16(msg[i:]))
	}
	for i := range records {
		r, ok := ReadRecord(msg, at)
		if !ok {
			return nil, false
		}
		if r.Type == rr.TypeTSIG {
			t := &TSIG{At: at}
			inLast := i == records-1 && binary.BigEndian.Uint16(msg[10:]) > 0
			return t, inLast && t.read(msg, r)
		}
		at = r.Next
	}
	return nil, true
}

// IsSigned reports whether the message ends with a TSIG record. The rest of the message may be malformed.
func IsSigned(msg []byte) bool {
	t, ok := ReadTSIG(msg)
	return ok && t != nil
}

// read parses the record.
func (t *TSIG) read(msg []byte, r Record) bool {
	var ok bool
	head := msg[r.Fixed:]
	t.Key, ok = readName(msg, t.At)
	if !ok || binary.BigEndian.Uint16(head[2:]) != ClassANY || binary.BigEndian.Uint32(head[4:]) != 0 {
		return false
	}
	if t.Algorithm, ok = readName(msg[:r.Next], r.Data); !ok {
		return false
	}
	at, _ := SkipName(msg, r.Data)
	if at+tsigBeforeMAC > r.Next {
		return false
	}
	b := msg[at:r.Next]
	t.Time = uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
	t.Fudge = binary.BigEndian.Uint16(b[6:])
	size := int(binary.BigEndian.Uint16(b[8:]))
	b = b[tsigBeforeMAC:]
	if len(b) < size+tsigAfterMAC {
		return false
	}
	t.MAC = b[:size]
	b = b[size:]
	t.ID, t.Error = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	t.Other = b[tsigAfterMAC:]
	return len(t.Other) == int(binary.BigEndian.Uint16(b[4:]))
}

// readName reads the name at an offset and follows its pointers.
func readName(msg []byte, at int) (dnsname.Name, bool) {
	b, ok := AppendName(make([]byte, 0, dnsname.MaxWire), msg, at)
	if !ok {
		return dnsname.Name{}, false
	}
	n, _, err := dnsname.FromWire(b)
	return n, err == nil
}

// Append appends the record to a message.
func (t *TSIG) Append(msg []byte) []byte {
	msg = append(msg, t.Key.Wire()...)
	msg = binary.BigEndian.AppendUint16(msg, uint16(rr.TypeTSIG))
	msg = binary.BigEndian.AppendUint16(msg, ClassANY)
	msg = append(msg, 0, 0, 0, 0, 0, 0) // TTL, and room for the length
	data := len(msg)
	msg = append(msg, t.Algorithm.Wire()...)
	msg = t.appendTime(msg)
	msg = binary.BigEndian.AppendUint16(msg, uint16(len(t.MAC)))
	msg = append(msg, t.MAC...)
	msg = binary.BigEndian.AppendUint16(msg, t.ID)
	msg = t.appendError(msg)
	binary.BigEndian.PutUint16(msg[data-2:], uint16(len(msg)-data))
	binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])+1)
	return msg
}

func (t *TSIG) appendTime(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(t.Time>>32))
	b = binary.BigEndian.AppendUint32(b, uint32(t.Time))
	return binary.BigEndian.AppendUint16(b, t.Fudge)
}

func (t *TSIG) appendError(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, t.Error)
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.Other)))
	return append(b, t.Other...)
}

// variables returns the data that a MAC covers besides messages (RFC 8945 §4.3.3). Later messages of one answer have
// only the timers (§5.3.1).
func (t *TSIG) variables(timersOnly bool) []byte {
	if timersOnly {
		return t.appendTime(nil)
	}
	b := append([]byte(nil), t.Key.Wire()...)
	b = binary.BigEndian.AppendUint16(b, ClassANY)
	b = append(b, 0, 0, 0, 0) // TTL
	b = append(b, t.Algorithm.Wire()...)
	return t.appendError(t.appendTime(b))
}

// TSIGKey is a key that two servers share.
type TSIGKey struct {
	Name      dnsname.Name
	Algorithm dnsname.Name
	Secret    []byte
}

// hash returns the hash function of the key's algorithm, or nil for algorithms that are too weak.
func (k *TSIGKey) hash() func() hash.Hash {
	switch k.Algorithm.Wire() {
	case "\x0bhmac-sha256\x00":
		return sha256.New
	case "\x0bhmac-sha384\x00":
		return sha512.New384
	case "\x0bhmac-sha512\x00":
		return sha512.New
	}
	return nil
}

// Usable reports whether the key can sign: it has a secret, and an algorithm that is strong enough.
func (k *TSIGKey) Usable() bool { return len(k.Secret) > 0 && k.hash() != nil }

// TSIGChain signs and verifies the messages of one exchange: a query, then the messages of its answer. Each MAC
// covers the one before it (RFC 8945 §5.3). A client signs first and then verifies; a server verifies first. The key
// must be usable.
type TSIGChain struct {
	Key    TSIGKey
	signed int       // number of messages with a TSIG record so far
	next   hash.Hash // has read the MAC of the last of them and the messages after it; nil: nothing
}

// Unsigned adds a message of an answer that has no TSIG record. The next MAC covers it. The message is not kept:
// there may be 99 of 64 KiB each (RFC 8945 §5.3.1).
func (c *TSIGChain) Unsigned(msg []byte) { c.mac().Write(msg) }

// mac returns the hash of the next MAC.
func (c *TSIGChain) mac() hash.Hash {
	if c.next == nil {
		c.next = hmac.New(c.Key.hash(), c.Key.Secret)
	}
	return c.next
}

// Size returns how many bytes Sign appends, without other data.
func (c *TSIGChain) Size() int {
	return len(c.Key.Name.Wire()) + RecordFixed + len(c.Key.Algorithm.Wire()) +
		tsigBeforeMAC + c.Key.hash()().Size() + tsigAfterMAC
}

// Sign appends the TSIG record of the next message. The caller sets its time, and optionally an error and other data.
func (c *TSIGChain) Sign(msg []byte, t TSIG) []byte {
	t.Key, t.Algorithm, t.Fudge, t.ID = c.Key.Name, c.Key.Algorithm, TSIGFudge, binary.BigEndian.Uint16(msg)
	t.MAC = c.sum(&t, msg)
	c.step(t.MAC)
	return t.Append(msg)
}

// Verify checks the next message and its TSIG record. It follows the order of RFC 8945 §5.2: the key, the MAC, the
// time, the length of the MAC. In this order, a sender without the key can neither learn our time nor get MACs. It
// returns the error for the reply.
func (c *TSIGChain) Verify(msg []byte, t *TSIG, now time.Time) uint16 {
	if t.Key != c.Key.Name || t.Algorithm != c.Key.Algorithm {
		return TSIGBadKey
	}
	full := c.Key.hash()().Size()
	if len(t.MAC) > full || len(t.MAC) < max(10, full/2) {
		return TSIGFormErr // RFC 8945 §5.2.2.1
	}
	head := append([]byte(nil), msg[:t.At]...) // as it was signed: with the original ID and without the record
	binary.BigEndian.PutUint16(head, t.ID)
	binary.BigEndian.PutUint16(head[10:], binary.BigEndian.Uint16(head[10:])-1)
	sum := c.sum(t, head)
	c.step(t.MAC)
	fudge := min(int64(t.Fudge), TSIGFudge)
	switch late := now.Unix() - int64(t.Time); {
	case !hmac.Equal(sum[:len(t.MAC)], t.MAC):
		return TSIGBadSig
	case late > fudge || -late > fudge:
		return TSIGBadTime
	case len(t.MAC) < full:
		return TSIGBadTrunc // none of our peers has a reason to truncate
	}
	return TSIGNoError
}

// step advances to the message after the one with this MAC.
func (c *TSIGChain) step(mac []byte) {
	c.signed, c.next = c.signed+1, nil
	c.mac().Write(binary.BigEndian.AppendUint16(nil, uint16(len(mac))))
	c.mac().Write(mac)
}

// sum returns the MAC of the next message. The caller calls step next.
func (c *TSIGChain) sum(t *TSIG, msg []byte) []byte {
	m := c.mac()
	m.Write(msg)
	m.Write(t.variables(c.signed > 1))
	return m.Sum(nil)
}
