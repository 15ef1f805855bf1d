package dnspeer

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/transfer"
)

// Errors in a TSIG (RFC 8945 §3).
const (
	tsigOK       = 0
	tsigBadSig   = 16
	tsigBadKey   = 17
	tsigBadTime  = 18
	tsigBadTrunc = 22
	// tsigFormErr is no error of a TSIG: the message is not well formed, and is answered so.
	tsigFormErr = 0xFFFF
)

const (
	fudge = 300 // seconds that clocks may differ (RFC 8945 §10)

	headerSize  = 12
	recordFixed = 10 // of a record between its owner and its data
	beforeMAC   = 6 + 2 + 2
	afterMAC    = 2 + 2 + 2
)

// hashes are those that a key can have here.
var hashes = map[string]func() hash.Hash{dns.HmacSHA256: sha256.New, dns.HmacSHA384: sha512.New384, dns.HmacSHA512: sha512.New}

// signature is a TSIG record.
type signature struct {
	at        int // where in the message it stands: what is in front of it is signed
	key       dnsname.Name
	algorithm dnsname.Name
	time      uint64 // seconds
	fudge     uint16
	mac       []byte
	id        uint16 // of the message when it was signed
	code      uint16
	other     []byte
}

// readSignature finds the TSIG of a message, which is its last record; nil when it has none. It reports false when there is a
// record that cannot be read.
func readSignature(wire []byte) (*signature, bool) {
	if len(wire) < headerSize {
		return nil, false
	}
	at := headerSize
	for range binary.BigEndian.Uint16(wire[4:]) {
		next, ok := skipName(wire, at)
		if !ok || next+4 > len(wire) {
			return nil, false
		}
		at = next + 4
	}
	records := 0
	for i := 6; i < headerSize; i += 2 {
		records += int(binary.BigEndian.Uint16(wire[i:]))
	}
	for i := range records {
		fixed, ok := skipName(wire, at)
		if !ok || fixed+recordFixed > len(wire) {
			return nil, false
		}
		next := fixed + recordFixed + int(binary.BigEndian.Uint16(wire[fixed+8:]))
		if next > len(wire) {
			return nil, false
		}
		if binary.BigEndian.Uint16(wire[fixed:]) == dns.TypeTSIG {
			s := &signature{at: at}
			inLast := i == records-1 && binary.BigEndian.Uint16(wire[10:]) > 0
			return s, inLast && s.read(wire, fixed, next)
		}
		at = next
	}
	return nil, true
}

// read takes apart the record whose type stands at fixed, and which ends at end.
func (s *signature) read(wire []byte, fixed, end int) bool {
	var ok bool
	if s.key, _, ok = nameAt(wire, s.at); !ok || binary.BigEndian.Uint16(wire[fixed+2:]) != dns.ClassANY ||
		binary.BigEndian.Uint32(wire[fixed+4:]) != 0 {
		return false
	}
	var at int
	if s.algorithm, at, ok = nameAt(wire[:end], fixed+recordFixed); !ok || at+beforeMAC > end {
		return false
	}
	b := wire[at:end]
	s.time = uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
	s.fudge = binary.BigEndian.Uint16(b[6:])
	size := int(binary.BigEndian.Uint16(b[8:]))
	b = b[beforeMAC:]
	if len(b) < size+afterMAC {
		return false
	}
	s.mac = b[:size]
	b = b[size:]
	s.id, s.code = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	s.other = b[afterMAC:]
	return len(s.other) == int(binary.BigEndian.Uint16(b[4:]))
}

// nameAt reads a name with its pointers followed, and tells where it ends.
func nameAt(wire []byte, at int) (dnsname.Name, int, bool) {
	text, next, err := dns.UnpackDomainName(wire, at)
	if err != nil {
		return dnsname.Name{}, 0, false
	}
	n, err := dnsname.Parse(text)
	return n, next, err == nil
}

// skipName is the offset behind a name.
func skipName(b []byte, at int) (int, bool) {
	for at < len(b) {
		n := int(b[at])
		switch {
		case n == 0:
			return at + 1, true
		case n >= 0xC0:
			return at + 2, at+2 <= len(b)
		case n > dnsname.MaxLabel:
			return 0, false
		}
		at += 1 + n
	}
	return 0, false
}

// session signs the replies to a signed message.
type session struct {
	key    transfer.Key
	secret []byte
	hash   func() hash.Hash
	prior  []byte // MAC of the message before: the query's, then that of each reply
	timers bool   // the first reply is signed: of the next ones' variables only the time is (RFC 8945 §5.3.1)
	query  *signature
}

func newSession(k transfer.Key, q *signature) (*session, bool) {
	secret, err := base64.StdEncoding.DecodeString(k.Secret)
	h := hashes[k.Algorithm]
	return &session{key: k, secret: secret, hash: h, prior: q.mac, query: q}, err == nil && h != nil
}

// verify checks a message that was signed with the session's key, in the order that RFC 8945 §5.2 asks for: first the MAC,
// then the time, so that nobody learns our time, or uses us for making MACs, who does not know the key; then the length.
func (s *session) verify(wire []byte, now time.Time) uint16 {
	q := s.query
	full := s.hash().Size()
	if len(q.mac) > full || len(q.mac) < max(10, full/2) {
		return tsigFormErr // RFC 8945 §5.2.2.1
	}
	head := [headerSize]byte(wire)
	binary.BigEndian.PutUint16(head[:], q.id)
	binary.BigEndian.PutUint16(head[10:], binary.BigEndian.Uint16(head[10:])-1)
	m := hmac.New(s.hash, s.secret)
	m.Write(head[:])
	m.Write(wire[headerSize:q.at])
	m.Write(s.variables(nil, q.time, q.fudge, q.code, q.other))
	switch late := now.Unix() - int64(q.time); {
	case !hmac.Equal(m.Sum(nil)[:len(q.mac)], q.mac):
		return tsigBadSig
	case late > int64(q.fudge) || -late > int64(q.fudge):
		return tsigBadTime
	case len(q.mac) < full:
		return tsigBadTrunc // no client of ours has a reason to
	}
	return tsigOK
}

// variables are what is signed besides the message (RFC 8945 §4.3.3).
func (s *session) variables(b []byte, at uint64, fudge, code uint16, other []byte) []byte {
	b = append(b, s.key.Name.Wire()...)
	b = binary.BigEndian.AppendUint16(b, dns.ClassANY)
	b = append(b, 0, 0, 0, 0)
	b = append(b, algorithmWire(s.key.Algorithm)...)
	b = appendTime(b, at, fudge)
	b = binary.BigEndian.AppendUint16(b, code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(other)))
	return append(b, other...)
}

func algorithmWire(text string) string { return dnsname.MustParse(text).Wire() }

func appendTime(b []byte, at uint64, fudge uint16) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(at>>32))
	b = binary.BigEndian.AppendUint32(b, uint32(at))
	return binary.BigEndian.AppendUint16(b, fudge)
}

// size is how many octets sign appends, other data not counted.
func (s *session) size() int {
	return len(s.key.Name.Wire()) + recordFixed + len(algorithmWire(s.key.Algorithm)) + beforeMAC + s.hash().Size() + afterMAC
}

// sign appends the TSIG of a reply. A code other than tsigOK tells what was wrong with the query's.
func (s *session) sign(msg []byte, now time.Time, code uint16) []byte {
	at := uint64(now.Unix())
	var other []byte
	if code == tsigBadTime { // RFC 8945 §5.2.3: the client's time, so that it can verify, and ours to tell it
		other = appendTime(nil, at, 0)[:6]
		at = s.query.time
	}
	m := hmac.New(s.hash, s.secret)
	m.Write(binary.BigEndian.AppendUint16(nil, uint16(len(s.prior))))
	m.Write(s.prior)
	m.Write(msg)
	if s.timers {
		m.Write(appendTime(nil, at, fudge))
	} else {
		m.Write(s.variables(nil, at, fudge, code, other))
	}
	s.prior, s.timers = m.Sum(nil), true
	return appendSignature(msg, signature{key: s.key.Name, algorithm: dnsname.MustParse(s.key.Algorithm), time: at, fudge: fudge,
		mac: s.prior, id: binary.BigEndian.Uint16(msg), code: code, other: other})
}

// appendSignature appends a TSIG record.
func appendSignature(msg []byte, s signature) []byte {
	msg = append(msg, s.key.Wire()...)
	msg = binary.BigEndian.AppendUint16(msg, dns.TypeTSIG)
	msg = binary.BigEndian.AppendUint16(msg, dns.ClassANY)
	msg = append(msg, 0, 0, 0, 0, 0, 0) // TTL, and room for the length
	data := len(msg)
	msg = append(msg, s.algorithm.Wire()...)
	msg = appendTime(msg, s.time, s.fudge)
	msg = binary.BigEndian.AppendUint16(msg, uint16(len(s.mac)))
	msg = append(msg, s.mac...)
	msg = binary.BigEndian.AppendUint16(msg, s.id)
	msg = binary.BigEndian.AppendUint16(msg, s.code)
	msg = binary.BigEndian.AppendUint16(msg, uint16(len(s.other)))
	msg = append(msg, s.other...)
	binary.BigEndian.PutUint16(msg[data-2:], uint16(len(msg)-data))
	binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])+1)
	return msg
}
