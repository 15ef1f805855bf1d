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

// Forwarder finds the answers to questions for names that are not ours; *forward.Forwarder is one. Its methods are called
// by any number of goroutines.
//
// A message that it is given ends with a question of the name that is to be found, at octet 12, and its capacity is the
// room there is for records.
type Forwarder interface {
	// Allowed reports whether a client of this address may have such names looked for.
	Allowed(client netip.Addr) bool
	// Cached puts what is known at once behind msg. It neither waits nor allocates.
	Cached(q forward.Question, now time.Time, msg []byte) (forward.Reply, bool)
	// Exchange asks others. It ends in a time of its own, or soon after ctx does, and has a reply in any case.
	Exchange(ctx context.Context, q forward.Question, msg []byte) forward.Reply
}

// maxForwarded is how many queries may wait for the Forwarder: 40,000 a second with upstreams that take 50 ms. Beyond that
// they get SERVFAIL, so that upstreams that hang take no memory from the zones.
const maxForwarded = 2048

// usualReply is the room for replies that are not written in place. Larger ones are asked for again, with more of it.
const usualReply = 4096

// forwards is what a handler knows of the names in a query that are not ours.
type forwards struct {
	rest  forward.Question // what the zones leave open
	above bool             // it is what the parent of a zone of ours says of it
	at    int              // where its name stands in the reply: in the question, or in a CNAME
	asked forward.Question // what the forwarder was asked,
	given *forward.Reply   // and what it said; nil when it was not

	target [dnsname.MaxWire]byte
	home   [dnsname.MaxWire]byte
	probe  lookup.Reply
	before [wire.HeaderSize + dnsname.MaxWire + 4]byte // the message of probe, when only its Kind counts
	moved  mover
	buffer []byte // for what the cache has of rest; made when there is a first chain
}

// wantsRest reports whether the client is to get more than the zones have. Who does not desire recursion gets none.
func (h *handler) wantsRest() bool {
	q := &h.q
	if q.flags&wire.FlagRD == 0 || q.qclass != wire.ClassIN || q.qtype == 0 {
		return false
	}
	if !h.recurses && h.reply.Kind == lookup.Refused {
		h.count.forwards[forwardDenied].Add(1)
	}
	return h.recurses
}

// leftOpen tells whether the zones have less than the whole answer, and notes what is missing: all of it, when the name is
// not ours or in a zone that we delegate, or the rest of a chain of CNAMEs that leaves our zones. What is there of such a
// chain stays in the reply, which is authoritative, because its first owner name is ours (RFC 1035 §4.1.1).
func (h *handler) leftOpen() bool {
	r, f := &h.reply, &h.forwards
	f.above = false
	switch r.Kind {
	case lookup.Refused, lookup.Referral:
		h.leaveAll()
	case lookup.NoData:
		if f.above = h.isDSOfApex(); !f.above {
			return false
		}
		h.leaveAll()
	case lookup.Positive:
		if r.Truncated || h.q.qtype == rr.TypeCNAME || h.q.qtype == rr.TypeANY || !h.chainLeaves() {
			return false
		}
	default:
		return false
	}
	f.rest.Type = h.q.qtype
	f.rest.DO, f.rest.CD = h.q.edns.present && h.q.edns.do, h.q.flags&wire.FlagCD != 0
	return true
}

// leaveAll makes the question as it came the rest.
func (h *handler) leaveAll() {
	f := &h.forwards
	f.rest.Delegated = h.reply.Kind == lookup.Referral
	h.empty(h.reply.Msg[:h.q.end])
	h.reply.Kind = kindForwarded
	f.rest.Name, f.at = h.q.name, wire.HeaderSize
}

// isDSOfApex reports whether the question is for the DS of a zone of ours whose parent is not. Those who validate need the
// parent's answer: ours has no proof in it that the zone is not signed, and they would believe nothing that is in the zone.
// RFC 4035 §3.1.4.1 leaves it to the zone only where there is no recursion.
func (h *handler) isDSOfApex() bool {
	r := &h.reply
	return h.q.qtype == rr.TypeDS && len(h.q.name) > 1 && r.Answers == 0 && string(h.q.name) == r.Zone.Apex().Wire()
}

// chainLeaves reports whether the last answer is a CNAME to a name that is not ours, and makes that the rest.
func (h *handler) chainLeaves() bool {
	r, f := &h.reply, &h.forwards
	last := lastAnswer(r, h.q.end)
	if last.Type != rr.TypeCNAME {
		return false
	}
	target, ok := wire.AppendName(f.target[:0], r.Msg, last.Data)
	if !ok || !h.isElsewhere(dnsname.AppendLower(target[:0], target)) {
		return false // the chain is a loop, or too long
	}
	r.Msg, r.Authorities, r.Additionals = r.Msg[:last.Next], 0, 0 // a delegation to which the chain has led
	f.rest.Name, f.at = target, last.Data
	f.rest.Delegated = f.probe.Kind == lookup.Referral
	return true
}

// lastAnswer returns the last record of the answer section of a reply that lookup or a mover wrote behind the question.
func lastAnswer(r *lookup.Reply, question int) wire.Record {
	last := wire.Record{Next: question}
	for range r.Answers {
		last, _ = wire.ReadRecord(r.Msg, last.Next)
	}
	return last
}

// isElsewhere reports whether a name is in none of our zones, or in one that they delegate.
func (h *handler) isElsewhere(name []byte) bool {
	f := &h.forwards
	h.lookAside(name, f.before[:wire.HeaderSize+len(name)+4]) // there is no room for records, so none are copied
	return f.probe.Kind == lookup.Refused || f.probe.Kind == lookup.Referral
}

// lookAside looks a name up in our zones, into room instead of the reply.
func (h *handler) lookAside(name, room []byte) {
	p := &h.forwards.probe
	p.Msg = appendQuestion(room[:0], name)
	p.Limit, p.Turn = len(room), h.reply.Turn
	lookup.Answer(h.snapshot, lookup.Question{Name: name, Type: h.q.qtype}, p)
	p.Zone = nil
}

// forward answers the rest with what the forwarder has said or remembers; else it notes that it must be asked.
func (h *handler) forward() int {
	r, f := &h.reply, &h.forwards
	if f.given != nil {
		if !bytes.Equal(f.rest.Name, f.asked.Name) {
			return h.failRest(wire.EDENetworkError) // the zones have changed meanwhile, and the client asks again
		}
		return h.putRest(f.given)
	}
	msg := r.Msg[:len(r.Msg):r.Limit]
	if f.at != wire.HeaderSize {
		if f.buffer == nil {
			f.buffer = make([]byte, usualReply)
		}
		msg = appendQuestion(f.buffer[:0], f.rest.Name)
	}
	reply, ok := h.settings.waiting.forwarder.Cached(f.rest, h.now, msg)
	if !ok || reply.Truncated && cap(msg) < r.Limit {
		h.asks = true
		return wire.EDENone
	}
	h.count.forwards[forwardCached].Add(1)
	return h.putRest(&reply)
}

// appendQuestion appends what a Forwarder is to see in front of the records: they point to the name in it.
func appendQuestion(msg, name []byte) []byte {
	msg = append(msg, make([]byte, wire.HeaderSize)...)
	msg = append(msg, name...)
	return append(msg, 0, 0, 0, 0)
}

// putRest puts what the forwarder said behind what is there.
func (h *handler) putRest(a *forward.Reply) int {
	q, r, f := &h.q, &h.reply, &h.forwards
	chain := f.at != wire.HeaderSize
	if f.above && a.Rcode == wire.RcodeNXDomain {
		// The parent does not know the zone, which is there all the same: no such name would deny all that is in it.
		lookup.Answer(h.snapshot, lookup.Question{Name: q.name, Type: q.qtype}, r)
		return wire.EDENone
	}
	if a.Rcode >= numRcodes || chain && a.Rcode != wire.RcodeNoError && a.Rcode != wire.RcodeNXDomain {
		return h.failRest(a.EDE) // without the chain: alone it would say that there is no such type
	}
	r.Rcode = a.Rcode
	begin, ours := len(r.Msg), r.Answers
	switch {
	case a.Truncated || !chain && len(a.Msg) > r.Limit:
		r.Truncated = true
	case chain:
		f.moved.from, f.moved.name, f.moved.at = a.Msg, f.rest.Name, f.at
		f.moved.move(r, a.Answers, a.Authorities)
	default:
		r.Msg = append(r.Msg[:q.end], a.Msg[q.end:]...) // from octet to octet, so that pointers are right
		r.Answers, r.Authorities = a.Answers, a.Authorities
	}
	home := h.comeHome(begin, ours)
	// RFC 6840 §5.7, §5.8: to those who have shown that they know the bit. Our part of a chain is not signed.
	h.authentic = a.AD && !chain && !home && !r.Truncated && (q.flags&wire.FlagAD != 0 || f.rest.DO)
	return a.EDE
}

// failRest answers that the rest could not be found.
func (h *handler) failRest(ede int) int {
	h.empty(h.reply.Msg[:h.q.end])
	h.reply.Kind, h.reply.Rcode = kindForwarded, wire.RcodeServFail
	return ede
}

// mayWait makes room for the query among those that wait, if there is any.
func (h *handler) mayWait() bool {
	return h.room().take(h.from.addr, weight(h.q.wire))
}

// overloaded answers that there is no room.
func (h *handler) overloaded() int {
	if h.forPeers() {
		h.empty(h.reply.Msg[:h.q.end])
		h.reply.Rcode = wire.RcodeServFail
		return h.finish(wire.EDENone)
	}
	h.count.forwards[forwardOverBound].Add(1)
	return h.finish(h.failRest(wire.EDENetworkError))
}

// resume writes the reply to a query that has waited. It answers it anew, because zones and clients may have changed.
func (h *handler) resume(p *pending, a *forward.Reply, out []byte) int {
	f := &h.forwards
	h.start()
	h.from, h.count = p.from, p.count
	f.asked, f.given = p.question, a
	whole := h.read(p.in)
	h.begin(out)
	ede := h.decide(whole)
	f.asked, f.given, f.moved.from = forward.Question{}, nil, nil
	h.snapshot, h.reply.Zone = nil, nil
	return h.finish(ede)
}
