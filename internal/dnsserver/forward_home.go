package dnsserver

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// comeHome looks for a CNAME into our zones among the answers of others, which begin at an octet behind this many of ours,
// and replaces what follows it by what our zones say. Others do not speak for them: they may not know them, or not as our
// clients are to see them. It reports whether there was one.
func (h *handler) comeHome(at, answers int) bool {
	r, f := &h.reply, &h.forwards
	if r.Truncated || h.q.qtype == rr.TypeCNAME {
		return false
	}
	for answers < r.Answers {
		record, _ := wire.ReadRecord(r.Msg, at) // we wrote it
		at = record.Next
		answers++
		if record.Type != rr.TypeCNAME {
			continue
		}
		target, ok := wire.AppendName(f.home[:0], r.Msg, record.Data)
		if !ok || h.isElsewhere(dnsname.AppendLower(target[:0], target)) {
			continue
		}
		for answers < r.Answers { // with the signatures of the CNAME
			signature, _ := wire.ReadRecord(r.Msg, at)
			if signature.Type != rr.TypeRRSIG {
				break
			}
			at = signature.Next
			answers++
		}
		return h.answerHome(target, record.Data, at, answers)
	}
	return false
}

// answerHome answers a name of ours to which others have led. The name stands at an octet of the reply, of which this many
// octets and answers stay. When our zones lead away again, they have no answer, and that of the others is left as it is.
func (h *handler) answerHome(name []byte, at, end, answers int) bool {
	r, f, p := &h.reply, &h.forwards, &h.forwards.probe
	if f.buffer == nil {
		f.buffer = make([]byte, usualReply)
	}
	h.lookAside(name, f.buffer)
	if p.Truncated && r.Limit > usualReply {
		h.lookAside(name, make([]byte, r.Limit))
	}
	if p.Rcode != wire.RcodeNoError && p.Rcode != wire.RcodeNXDomain {
		return false
	}
	if p.Kind == lookup.Positive && !p.Truncated && lastAnswer(p, wire.HeaderSize+len(name)+4).Type == rr.TypeCNAME {
		return false
	}
	r.Msg, r.Answers, r.Authorities, r.Rcode = r.Msg[:end], answers, 0, p.Rcode
	f.moved.from, f.moved.name, f.moved.at = p.Msg, name, at
	f.moved.move(r, p.Answers, p.Authorities)
	r.Truncated = r.Truncated || p.Truncated
	return true
}
