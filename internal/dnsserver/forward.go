package dnsserver

import (
	"bytes"
	"context"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Forwarder answers questions for names outside our zones. *forward.Forwarder implements it. Its methods are called
// by any number of goroutines.
//
// A msg argument ends with a question for the name, which stands at offset 12. Its capacity limits the records that
// can be appended.
type Forwarder interface {
	// Allowed reports whether a client with this address may use the forwarder.
	Allowed(client netip.Addr) bool
	// Cached appends the cached answer to msg. It neither waits nor allocates.
	Cached(q forward.Question, now time.Time, msg []byte) (forward.Reply, bool)
	// Exchange asks upstream resolvers. It has its own timeout, returns soon after ctx ends, and always returns a reply.
	Exchange(ctx context.Context, q forward.Question, msg []byte) forward.Reply
}

// maxForwarded is how many queries may wait for the Forwarder: 40,000 per second with upstreams that take 50 ms.
// Queries beyond it get SERVFAIL, so that hanging upstreams do not take memory from the zones.
const maxForwarded = 2048

// initialReplySize is the size of the first buffer for answers of the forwarder that cannot be written directly into
// the reply. Larger answers are requested again with a larger buffer.
const initialReplySize = 4096

// forwards is the state of a handler for the part of a query that our zones do not answer.
type forwards struct {
	missing    forward.Question // the question that our zones leave open
	fromParent bool             // it must come from the parent of one of our zones
	nameAt     int              // offset of its name in the reply: in the question, or in a CNAME
	answered   forward.Question // the question that the forwarder answered,
	answer     *forward.Reply   // and its answer; nil before that

	target      [dnsname.MaxWire]byte
	localTarget [dnsname.MaxWire]byte
	probe       lookup.Reply
	probeMsg    [wire.HeaderSize + dnsname.MaxWire + 4]byte // message of probe, when only its Kind is needed
	copier      recordCopier
	buffer      []byte // for cached answers to the rest of a CNAME chain; allocated on first use
}

// wantsForwarding reports whether the client may get more than our zones have. A query without RD gets nothing else.
func (h *handler) wantsForwarding() bool {
	q := &h.q
	if q.flags&wire.FlagRD == 0 || q.qclass != wire.ClassIN || q.qtype == 0 {
		return false
	}
	if !h.recursionAllowed && h.reply.Kind == lookup.Refused {
		h.count.forwards[forwardDenied].Add(1)
	}
	return h.recursionAllowed
}

// findMissing reports whether our zones have less than the whole answer, and records the missing part. All of it is
// missing when the name is outside our zones or below a delegation. Of a CNAME chain that leaves our zones, the rest
// is missing. Our part of such a chain stays in the reply, which is authoritative because its first owner name is
// ours (RFC 1035 §4.1.1).
func (h *handler) findMissing() bool {
	r, f := &h.reply, &h.forwards
	f.fromParent = false
	switch r.Kind {
	case lookup.Refused, lookup.Referral:
		h.forwardAll()
	case lookup.NoData:
		if f.fromParent = h.isDSOfApex(); !f.fromParent {
			return false
		}
		h.forwardAll()
	case lookup.Positive:
		if r.Truncated || h.q.qtype == rr.TypeCNAME || h.q.qtype == rr.TypeANY || !h.chainLeavesZones() {
			return false
		}
	default:
		return false
	}
	f.missing.Type = h.q.qtype
	f.missing.DO, f.missing.CD = h.q.edns.present && h.q.edns.do, h.q.flags&wire.FlagCD != 0
	return true
}

// forwardAll records that the whole question is missing.
func (h *handler) forwardAll() {
	f := &h.forwards
	f.missing.Delegated = h.reply.Kind == lookup.Referral
	h.clearReply(h.reply.Msg[:h.q.end])
	h.reply.Kind = kindForwarded
	f.missing.Name, f.nameAt = h.q.name, wire.HeaderSize
}

// isDSOfApex reports whether the question is for the DS of one of our zones whose parent is not ours. Validating
// clients need the parent's answer. Ours contains no proof that the zone is unsigned, so they would reject everything
// in the zone. RFC 4035 §3.1.4.1 leaves the answer to the zone only without recursion.
func (h *handler) isDSOfApex() bool {
	r := &h.reply
	return h.q.qtype == rr.TypeDS && len(h.q.name) > 1 && r.Answers == 0 && string(h.q.name) == r.Zone.Apex().Wire()
}

// chainLeavesZones reports whether the last answer is a CNAME to a name outside our zones. It records that name as
// missing.
func (h *handler) chainLeavesZones() bool {
	r, f := &h.reply, &h.forwards
	last := lastAnswer(r, h.q.end)
	if last.Type != rr.TypeCNAME {
		return false
	}
	target, ok := wire.AppendName(f.target[:0], r.Msg, last.Data)
	if !ok || !h.isExternal(dnsname.AppendLower(target[:0], target)) {
		return false // the chain is a loop, or too long
	}
	r.Msg, r.Authorities, r.Additionals = r.Msg[:last.Next], 0, 0 // remove the referral to which the chain has led
	f.missing.Name, f.nameAt = target, last.Data
	f.missing.Delegated = f.probe.Kind == lookup.Referral
	return true
}

// lastAnswer returns the last record of the answer section, which lookup or a recordCopier wrote after the question.
func lastAnswer(r *lookup.Reply, question int) wire.Record {
	last := wire.Record{Next: question}
	for range r.Answers {
		last, _ = wire.ReadRecord(r.Msg, last.Next)
	}
	return last
}

// isExternal reports whether a name is in none of our zones, or below a delegation.
func (h *handler) isExternal(name []byte) bool {
	f := &h.forwards
	h.probeZones(name, f.probeMsg[:wire.HeaderSize+len(name)+4]) // without room for records, none are copied
	return f.probe.Kind == lookup.Refused || f.probe.Kind == lookup.Referral
}

// probeZones looks up a name in our zones. It writes to room instead of the reply.
func (h *handler) probeZones(name, room []byte) {
	p := &h.forwards.probe
	p.Msg = appendQuestion(room[:0], name)
	p.Limit, p.Rotation = len(room), h.reply.Rotation
	lookup.Answer(h.snapshot, lookup.Question{Name: name, Type: h.q.qtype}, p)
	p.Zone = nil
}

// forward answers the missing part from the forwarder's answer or cache. Otherwise it records that the query must
// wait.
func (h *handler) forward() int {
	r, f := &h.reply, &h.forwards
	if f.answer != nil {
		if !bytes.Equal(f.missing.Name, f.answered.Name) {
			return h.failForwarded(wire.EDENetworkError) // the zones have changed meanwhile; the client will retry
		}
		return h.appendForwarded(f.answer)
	}
	msg := r.Msg[:len(r.Msg):r.Limit]
	if f.nameAt != wire.HeaderSize {
		if f.buffer == nil {
			f.buffer = make([]byte, initialReplySize)
		}
		msg = appendQuestion(f.buffer[:0], f.missing.Name)
	}
	reply, ok := h.settings.pending.forwarder.Cached(f.missing, h.now, msg)
	if !ok || reply.Truncated && cap(msg) < r.Limit {
		h.mustWait = true
		return wire.EDENone
	}
	h.count.forwards[forwardCached].Add(1)
	return h.appendForwarded(&reply)
}

// appendQuestion appends the header and question that a Forwarder expects before the records: they point to the name
// in it.
func appendQuestion(msg, name []byte) []byte {
	msg = append(msg, make([]byte, wire.HeaderSize)...)
	msg = append(msg, name...)
	return append(msg, 0, 0, 0, 0)
}

// appendForwarded appends the forwarder's answer to the reply.
func (h *handler) appendForwarded(a *forward.Reply) int {
	q, r, f := &h.q, &h.reply, &h.forwards
	chain := f.nameAt != wire.HeaderSize
	if f.fromParent && a.Rcode == wire.RcodeNXDomain {
		// The parent does not know the zone, but we serve it. NXDOMAIN would deny all names in it.
		lookup.Answer(h.snapshot, lookup.Question{Name: q.name, Type: q.qtype}, r)
		return wire.EDENone
	}
	if a.Rcode >= numRcodes || chain && a.Rcode != wire.RcodeNoError && a.Rcode != wire.RcodeNXDomain {
		return h.failForwarded(a.EDE) // without our part of the chain: alone it would mean NODATA
	}
	r.Rcode = a.Rcode
	begin, ours := len(r.Msg), r.Answers
	switch {
	case a.Truncated || !chain && len(a.Msg) > r.Limit:
		r.Truncated = true
	case chain:
		f.copier.from, f.copier.name, f.copier.at = a.Msg, f.missing.Name, f.nameAt
		f.copier.copySections(r, a.Answers, a.Authorities)
	default:
		r.Msg = append(r.Msg[:q.end], a.Msg[q.end:]...) // same offsets, so pointers stay valid
		r.Answers, r.Authorities = a.Answers, a.Authorities
	}
	home := h.replaceLocalTail(begin, ours)
	// RFC 6840 §5.7, §5.8: only for clients that set AD or DO. Our part of a chain is not signed.
	h.authentic = a.AD && !chain && !home && !r.Truncated && (q.flags&wire.FlagAD != 0 || f.missing.DO)
	return a.EDE
}

// failForwarded answers SERVFAIL, because the missing part could not be resolved.
func (h *handler) failForwarded(ede int) int {
	h.clearReply(h.reply.Msg[:h.q.end])
	h.reply.Kind, h.reply.Rcode = kindForwarded, wire.RcodeServFail
	return ede
}

// tryAdmit reserves capacity for the query among those that wait. It returns false when there is none.
func (h *handler) tryAdmit() bool {
	return h.queue().tryReserve(h.from.addr, weight(h.q.wire))
}

// overloaded writes the reply to a query that tryAdmit refused.
func (h *handler) overloaded() int {
	if h.forPeers() {
		h.clearReply(h.reply.Msg[:h.q.end])
		h.reply.Rcode = wire.RcodeServFail
		return h.finish(wire.EDENone)
	}
	h.count.forwards[forwardOverBound].Add(1)
	return h.finish(h.failForwarded(wire.EDENetworkError))
}

// resume writes the reply to a query that has waited. It answers from the start, because zones and allowed clients
// may have changed.
func (h *handler) resume(p *pendingQuery, a *forward.Reply, out []byte) int {
	f := &h.forwards
	h.start()
	h.from, h.count = p.from, p.count
	f.answered, f.answer = p.question, a
	whole := h.read(p.in)
	h.begin(out)
	ede := h.decide(whole)
	f.answered, f.answer, f.copier.from = forward.Question{}, nil, nil
	h.snapshot, h.reply.Zone = nil, nil
	return h.finish(ede)
}
