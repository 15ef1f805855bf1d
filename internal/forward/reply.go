package forward

import (
	"encoding/binary"
	"time"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Question is what is to be found, in class IN.
type Question struct {
	Name []byte // lower-case wire form, root label included; not kept
	Type rr.Type
	DO   bool // the client wants DNSSEC records (RFC 3225)
	CD   bool // the client validates by itself (RFC 4035 §3.2.2)
	// Delegated says that a zone of ours has left the name to others, so that it is somebody's even in a private zone.
	Delegated bool
}

// Reply is what was found. Its records stand in Msg behind the question that the caller put there.
type Reply struct {
	Msg         []byte // the message that was given, with the records; never longer than its capacity was
	Rcode       uint8
	Answers     int // records in the two sections; there are none in the additional one
	Authorities int
	AD          bool // the upstream has validated the answer; for clients that sent AD or DO (RFC 6840 §5.8)
	Truncated   bool // the records did not fit, and none are there: TC is to be set
	Stale       bool // the TTL has passed, and nobody could be asked (RFC 8767)
	EDE         int  // INFO-CODE of an extended error (RFC 8914); wire.EDENone for none
}

// staleTTL is what stale records are given with (RFC 8767 §4).
const staleTTL = 30

// entry is an answer as it is kept: records in wire form that can be copied behind any question of the name they were
// found for. As the question stands at octet 12 and its length is that of its name, their compression pointers are right
// in every such message, and owners that are the name asked for get the spelling of the client. An entry does not change.
type entry struct {
	key         string
	body        []byte
	ttls        []uint16 // where in body the TTLs are
	answers     int
	authorities int
	rcode       uint8
	ad          bool
	ede         int
	stored      time.Time
	life        time.Duration // least TTL; 0: for those who wait for it, but not to be kept
}

// failure is an entry without records.
func failure(rcode uint8, ede int) *entry { return &entry{rcode: rcode, ede: ede} }

func (e *entry) fresh(now time.Time) bool { return now.Sub(e.stored) < e.life }

// positive or negative, but an answer: what may be given when it is stale.
func (e *entry) isAnswer() bool { return e.rcode != wire.RcodeServFail && e.rcode != wire.RcodeRefused }

// appendTo puts the records behind msg, with TTLs as they are now.
func (e *entry) appendTo(msg []byte, now time.Time) Reply {
	r := Reply{Msg: msg, Rcode: e.rcode, AD: e.ad, EDE: e.ede}
	if len(msg)+len(e.body) > cap(msg) {
		r.Truncated = true
		return r
	}
	r.Answers, r.Authorities = e.answers, e.authorities
	r.Msg = append(msg, e.body...)
	records := r.Msg[len(msg):]
	if age := uint32(max(0, now.Sub(e.stored)) / time.Second); age > 0 {
		for _, at := range e.ttls {
			ttl := binary.BigEndian.Uint32(records[at:])
			binary.BigEndian.PutUint32(records[at:], ttl-min(ttl, age))
		}
	}
	return r
}

// appendStale is appendTo for an entry whose time has passed. That it was validated once does not count: its signatures may
// have expired since.
func (e *entry) appendStale(msg []byte) Reply {
	r := e.appendTo(msg, e.stored)
	r.Stale, r.AD, r.EDE = true, false, wire.EDEStale
	if e.rcode == wire.RcodeNXDomain {
		r.EDE = wire.EDEStaleNXDomain
	}
	if !r.Truncated {
		for _, at := range e.ttls {
			binary.BigEndian.PutUint32(r.Msg[len(msg)+int(at):], staleTTL)
		}
	}
	return r
}

// maxKey is the room for a key.
const maxKey = 255 + 3

// appendKey is what answers are found by. DO and CD change what an upstream says, so they are in it.
func (q *Question) appendKey(b []byte) []byte {
	b = append(b, q.Name...)
	var flags byte
	if q.DO {
		flags |= 1
	}
	if q.CD {
		flags |= 2
	}
	return append(b, byte(q.Type>>8), byte(q.Type), flags)
}
