package forward

import (
	"encoding/binary"
	"time"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Question is a question in class IN.
type Question struct {
	Name []byte // lower-case wire form with the root label; not retained
	Type rr.Type
	DO   bool // the client wants DNSSEC records (RFC 3225)
	CD   bool // the client validates itself (RFC 4035 §3.2.2)
	// Delegated means that a zone of ours delegates the name, so that it may exist even in a private zone.
	Delegated bool
}

// Reply is the result. Its records are in Msg after the question that the caller put there.
type Reply struct {
	Msg         []byte // the given message with the records; never longer than its capacity
	Rcode       uint8
	Answers     int // number of records in each section; the additional section has none
	Authorities int
	AD          bool // the upstream validated the answer; for clients that sent AD or DO (RFC 6840 §5.8)
	Truncated   bool // the records did not fit and are omitted: the caller must set TC
	Stale       bool // the answer has expired, and no upstream could be reached (RFC 8767)
	EDE         int  // INFO-CODE of an extended error (RFC 8914); wire.EDENone: none
}

// staleTTL is the TTL of stale records in a reply (RFC 8767 §4).
const staleTTL = 30

// entry is a stored answer: records in wire form that can be copied after any question for the same name. The question
// begins at byte 12 and its length is that of its name. So the compression pointers are correct in every such message,
// and owners that are the name in the question get the client's spelling. An entry is immutable.
type entry struct {
	key         string
	body        []byte
	ttls        []uint16 // offsets of the TTLs in body
	answers     int
	authorities int
	rcode       uint8
	ad          bool
	ede         int
	stored      time.Time
	life        time.Duration // least TTL; 0: for waiting clients, but not cached
}

// failure returns a SERVFAIL entry.
func failure(ede int) *entry { return &entry{rcode: wire.RcodeServFail, ede: ede} }

func (e *entry) fresh(now time.Time) bool { return now.Sub(e.stored) < e.life }

// isAnswer reports whether the entry is a positive or negative answer, which may be used when it is stale.
func (e *entry) isAnswer() bool { return e.rcode != wire.RcodeServFail && e.rcode != wire.RcodeRefused }

// appendTo appends the records to msg, with their TTLs counted down.
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

// appendStale appends the records of an expired entry. AD is cleared: the signatures may have expired since.
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

// maxKey is the maximum length of a key.
const maxKey = 255 + 3

// appendKey appends the cache key of a question. It includes DO and CD, because they change the replies of upstreams.
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
