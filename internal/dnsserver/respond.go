package dnsserver

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// numRcodes is the number of RCODEs that the server uses.
const numRcodes = wire.RcodeBadVers + 1

// Kinds of replies that lookup does not produce.
const (
	kindNone      = lookup.Kind(lookup.NumKinds) + iota
	kindForwarded // answered by the forwarder or by Peers
	numKinds
)

// replyLater is the length that answer returns for a query that must wait for the forwarder or for Peers.
const replyLater = -1

// client is the sender of a query.
type client struct {
	addr      netip.Addr
	tcp       bool        // the transport sets no limit to the size of a reply
	single    bool        // the transport has one reply for each query, so no transfers: DNS over HTTPS
	keepalive uint16      // idle timeout to send, in tenths of a second; 0 for none (RFC 7828 §3.1)
	encrypted *Encryption // nil when others can read the messages
}

// handler turns queries into replies. Each serving goroutine has its own, so it needs no lock. It contains all memory
// that a reply needs, so it does not allocate.
type handler struct {
	settings *settings
	count    *counters
	limiter  *limiter // nil for none
	snapshot *zone.Snapshot
	now      time.Time

	from             client
	limit            int // size of the largest reply, in bytes
	q                query
	reply            lookup.Reply
	verified         bool  // the client's cookie proves its address
	recursionAllowed bool  // the client may use the forwarder
	mustWait         bool  // the query must wait for the forwarder or for Peers
	rejected         uint8 // RCODE for a signed message that is not accepted; 0: none
	authentic        bool  // the whole reply is the forwarder's, and the forwarder says that it was validated
	cookie           [cookieSize]byte
	name             [dnsname.MaxWire + 1]byte
	forwards         forwards
}

// start reads the clock and the zones, once for a batch of messages.
func (h *handler) start() {
	h.now = time.Now()
	h.snapshot = h.settings.snapshot()
}

// done records that n messages of a batch were answered. It drops the reference to the zones: they may be replaced
// before the next query comes.
func (h *handler) done(n int) {
	h.count.observe(time.Since(h.now), n)
	h.snapshot, h.reply.Zone = nil, nil
}

// answer writes the reply to a message into out, which has room for the largest, and returns its length; 0 for no
// reply.
func (h *handler) answer(in, out []byte, from client) int {
	if len(in) < wire.HeaderSize {
		h.count.drop(dropShort)
		return 0
	}
	if in[2]&(wire.FlagQR>>8) != 0 {
		h.count.drop(dropResponse) // two servers must not reply to each other's replies
		return 0
	}
	h.from = from
	whole := h.read(in)
	h.begin(out)
	ede := h.decide(whole)
	h.count.query(&h.q)
	if h.limiter != nil && !h.verified && !h.rateLimit() {
		return 0
	}
	if h.mustWait {
		h.mustWait = false
		return replyLater
	}
	return h.finish(ede)
}

// read parses the message as far as possible, and reports whether it is valid.
func (h *handler) read(in []byte) bool {
	q := &h.q
	q.readHeader(in)
	h.verified, h.rejected = false, 0
	whole := q.questions() == 0 || q.questions() == 1 && q.readQuestion(&h.name)
	whole = whole && q.readRecords()
	if !whole {
		q.edns.present = false // do not answer options of a message that was not understood
		return false
	}
	if q.edns.present && q.edns.cookie != nil {
		h.verified = h.settings.secret.check(q.edns.cookie, h.from.addr, uint32(h.now.Unix()), &h.cookie)
	}
	return true
}

// begin starts the reply with room for the header, and with the question unchanged, for clients that check its letter
// case.
func (h *handler) begin(out []byte) {
	q := &h.q
	switch {
	case h.from.tcp:
		h.limit = wire.MaxSize
	case q.edns.present:
		h.limit = min(q.edns.size, h.settings.udpSize)
	default:
		h.limit = minUDPSize
	}
	if h.settings.pending != nil {
		h.recursionAllowed = h.settings.pending.forwarder.Allowed(h.from.addr)
		h.mustWait, h.authentic = false, false
	}
	n := copy(out[:q.end], q.wire)
	h.reply.Limit, h.reply.Kind = h.limit-h.reserve(), kindNone
	h.clearReply(out[:n])
}

// clearReply makes the reply one without records. It sets single fields, because a Reply contains scratch memory that
// need not be cleared for each query.
func (h *handler) clearReply(msg []byte) {
	r := &h.reply
	r.Msg, r.Rcode, r.Zone = msg, 0, nil
	r.Authoritative, r.Truncated, r.Synthesized = false, false, false
	r.Answers, r.Authorities, r.Additionals = 0, 0, 0
}

// decide fills the reply, and returns the extended error that belongs to it.
func (h *handler) decide(whole bool) (ede int) {
	q := &h.q
	switch {
	case q.flags&wire.OpcodeMask != opcodeQuery<<11:
		return h.otherOpcode(whole)
	case !whole:
		return h.reject(wire.RcodeFormErr)
	case q.edns.present && q.edns.version != 0:
		return h.reject(wire.RcodeBadVers)
	case q.edns.present && q.edns.malformed:
		// With our OPT: a reply without one would mean that we do not know EDNS (RFC 6891 §7).
		return h.reject(wire.RcodeFormErr)
	case q.signed:
		return h.signed()
	case !q.hasQuestion:
		return h.cookieOnly()
	case q.qclass == wire.ClassCH:
		return h.chaos()
	case q.qclass != wire.ClassIN && q.qclass != wire.ClassANY:
		return h.refuse(wire.EDENotAuthoritative)
	case q.qtype == rr.TypeAXFR || q.qtype == rr.TypeIXFR:
		return h.transfer()
	case q.qtype == rr.TypeMAILA || q.qtype == rr.TypeMAILB:
		return h.fail(wire.RcodeNotImp) // obsolete since RFC 1035; BIND's answer
	case !q.qtype.IsData() && q.qtype != rr.TypeANY && q.qtype != 0:
		return h.fail(wire.RcodeFormErr) // OPT, TSIG, NXNAME and similar types cannot be queried (RFC 9824 §3.5)
	}
	return h.lookup()
}

// fail sets the RCODE of a reply without records.
func (h *handler) fail(rcode uint8) int {
	h.reply.Rcode = rcode
	return wire.EDENone
}

// cookieOnly answers a message without a question: it is valid when it asks for a cookie (RFC 7873 §5.4).
func (h *handler) cookieOnly() int {
	if h.q.edns.present && h.q.edns.cookie != nil {
		return wire.EDENone
	}
	return h.fail(wire.RcodeFormErr)
}

func (h *handler) refuse(ede int) int {
	h.reply.Kind, h.reply.Rcode = lookup.Refused, wire.RcodeRefused
	return ede
}

// otherOpcode answers a message that is not a QUERY.
func (h *handler) otherOpcode(whole bool) int {
	opcode := h.q.flags & wire.OpcodeMask >> 11
	switch {
	case h.settings.peers == nil || opcode != opcodeNotify && opcode != opcodeUpdate:
		return h.fail(wire.RcodeNotImp)
	case !whole || !h.q.hasQuestion || h.q.edns.present && h.q.edns.malformed:
		return h.reject(wire.RcodeFormErr) // RFC 2136 §3.1.1: exactly one zone
	case h.q.edns.present && h.q.edns.version != 0:
		return h.reject(wire.RcodeBadVers)
	}
	return h.deferToPeers()
}

// signed answers a query with a TSIG. Without Peers no key is known (RFC 8945 §5.2.1). A message without a question
// has nothing to sign.
func (h *handler) signed() int {
	if h.forPeers() {
		return h.deferToPeers()
	}
	return h.fail(wire.RcodeNotAuth)
}

// transfer answers AXFR and IXFR, on either transport.
func (h *handler) transfer() int {
	if h.forPeers() {
		return h.deferToPeers()
	}
	return h.refuse(wire.EDENotSupported)
}

// lookup answers from the zones.
func (h *handler) lookup() int {
	r := &h.reply
	if h.snapshot == nil {
		r.Kind, r.Rcode = lookup.ServFail, wire.RcodeServFail
		return wire.EDENotReady
	}
	r.Rotation++
	lookup.Answer(h.snapshot, lookup.Question{Name: h.q.name, Type: h.q.qtype}, r)
	if h.q.qclass == wire.ClassANY {
		r.Authoritative = false // RFC 1035 §6.2: no server is authoritative for all classes
	}
	if h.settings.pending != nil && h.wantsForwarding() && h.findMissing() {
		return h.forward()
	}
	switch r.Kind {
	case lookup.Refused:
		return wire.EDENotAuthoritative
	case lookup.ServFail:
		return wire.EDENotReady
	case lookup.Positive:
		if h.settings.stale != nil && h.q.edns.present && h.settings.stale(h.q.name, r.Encloser, h.q.qtype) {
			return wire.EDEStale
		}
	}
	return wire.EDENone
}

// rateLimit reports whether the reply may be sent. It may reduce the reply to an empty one with TC, so that the
// client retries over TCP.
func (h *handler) rateLimit() bool {
	switch h.limiter.check(h.now.UnixNano(), h.from.addr, h.q.name, &h.reply) {
	case limitDrop:
		h.count.limited[limitDrop].Add(1)
		h.mustWait = false
		return false
	case limitSlip:
		h.count.limited[limitSlip].Add(1)
		h.clearReply(h.reply.Msg[:h.q.end])
		h.reply.Truncated = true
		h.mustWait, h.authentic = false, false
	}
	return true
}

// finish writes the header and our OPT record, and returns the length of the reply.
func (h *handler) finish(ede int) int {
	q, r := &h.q, &h.reply
	msg, additionals := r.Msg, r.Additionals
	if q.edns.present {
		msg = h.appendOPT(msg, int(r.Rcode), ede)
		additionals++
	}
	flags := wire.FlagQR | uint16(r.Rcode&0xF)
	flags |= q.flags & (wire.OpcodeMask | wire.FlagRD | wire.FlagCD) // RFC 4035 §3.1.6: CD is copied
	if r.Authoritative {
		flags |= wire.FlagAA
	}
	if h.recursionAllowed {
		flags |= wire.FlagRA
	}
	if h.authentic {
		flags |= wire.FlagAD
	}
	if r.Truncated {
		flags |= wire.FlagTC
		h.count.truncated.Add(1)
	}
	questions := uint16(0)
	if q.hasQuestion {
		questions = 1
	}
	binary.BigEndian.PutUint16(msg[2:], flags)
	binary.BigEndian.PutUint16(msg[4:], questions)
	binary.BigEndian.PutUint16(msg[6:], uint16(r.Answers))
	binary.BigEndian.PutUint16(msg[8:], uint16(r.Authorities))
	binary.BigEndian.PutUint16(msg[10:], uint16(additionals))
	h.count.response(r.Rcode, r.Kind)
	return len(msg)
}
