package dnsserver

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// replaceLocalTail searches the forwarder's answers for a CNAME into our zones, and replaces the records after it by
// those of our zones. Upstreams do not speak for our zones: they may not know them, or may have other data than our
// clients must see. The answers begin at offset at, after the given number of our own. It reports whether it replaced
// any.
func (h *handler) replaceLocalTail(at, answers int) bool {
	r, f := &h.reply, &h.forwards
	if r.Truncated || h.q.qtype == rr.TypeCNAME {
		return false
	}
	for answers < r.Answers {
		record, _ := wire.ReadRecord(r.Msg, at) // we wrote it, so it can be read
		at = record.Next
		answers++
		if record.Type != rr.TypeCNAME {
			continue
		}
		target, ok := wire.AppendName(f.localTarget[:0], r.Msg, record.Data)
		if !ok || h.isExternal(dnsname.AppendLower(target[:0], target)) {
			continue
		}
		for answers < r.Answers { // keep the signatures of the CNAME
			signature, _ := wire.ReadRecord(r.Msg, at)
			if signature.Type != rr.TypeRRSIG {
				break
			}
			at = signature.Next
			answers++
		}
		return h.answerLocally(target, record.Data, at, answers)
	}
	return false
}

// answerLocally answers a name of our zones that is the target of an external CNAME. The name is at offset at of the
// reply. The first end bytes of the reply, with the given number of answers, are kept. If our zones lead to an external
// name again, they have no answer, and the forwarder's answer is kept.
func (h *handler) answerLocally(name []byte, at, end, answers int) bool {
	r, f, p := &h.reply, &h.forwards, &h.forwards.probe
	if f.buffer == nil {
		f.buffer = make([]byte, initialReplySize)
	}
	h.probeZones(name, f.buffer)
	if p.Truncated && r.Limit > initialReplySize {
		h.probeZones(name, make([]byte, r.Limit))
	}
	if p.Rcode != wire.RcodeNoError && p.Rcode != wire.RcodeNXDomain {
		return false
	}
	if p.Kind == lookup.Positive && !p.Truncated && lastAnswer(p, wire.HeaderSize+len(name)+4).Type == rr.TypeCNAME {
		return false
	}
	r.Msg, r.Answers, r.Authorities, r.Rcode = r.Msg[:end], answers, 0, p.Rcode
	f.copier.from, f.copier.name, f.copier.at = p.Msg, name, at
	f.copier.copySections(r, p.Answers, p.Authorities)
	r.Truncated = r.Truncated || p.Truncated
	return true
}
