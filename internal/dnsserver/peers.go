package dnsserver

import (
	"bytes"
	"context"
	"net/netip"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Peers answers the messages of other name servers and of DNS administrators: transfers, NOTIFY, UPDATE, and all
// messages with a TSIG. *dnspeer.Server implements it. Serve is called by any number of goroutines.
type Peers interface {
	// Serve answers one message, and returns when it is answered. It returns soon after ctx ends. When it returns an
	// error, the server closes the connection, because the answer is incomplete.
	Serve(ctx context.Context, m PeerMessage) error
}

// maxMessages is the largest number of messages in Peers. Most wait until they may begin a transfer, which costs
// little. Messages beyond the limit get SERVFAIL.
const maxMessages = 1024

// PeerMessage is a message for Peers. Unless it is rejected, its header and question are well formed, it has as many
// records as its header says, and a TSIG is the last of them.
type PeerMessage struct {
	Wire  []byte
	From  netip.Addr
	TCP   bool // the transport carries any number of replies to one query
	EDNS  bool // the message has an OPT record, so its replies must have one
	Limit int  // size of the largest reply, in bytes

	// Rejected is the RCODE for a message that the server does not accept, such as FORMERR; 0 for all others. Peers gets
	// such a message only if it is signed, to sign the reply: clients discard an unsigned one (RFC 8945 §5.4).
	Rejected int

	Encryption *Encryption // nil for UDP and TCP
	Padded     bool        // replies with an OPT record must have padding

	// Send sends a reply: any number of them over TCP, TLS and QUIC, one over UDP and HTTPS. It does not keep the slice.
	Send func(reply []byte) error
	// Answer returns the reply to an ordinary query, such as the message without its TSIG. It leaves reserve bytes free
	// for a TSIG. The caller owns the reply. A query that only the forwarder could answer is refused.
	Answer func(query []byte, reserve int) []byte
}

// sender sends any number of messages to a client.
type sender interface {
	replier
	send(message []byte) error
	// abort ends an answer that cannot be completed.
	abort()
}

// peering runs the messages that Peers serves.
type peering struct {
	server Peers
	plain  *settings // settings for ordinary queries that were signed
	*pendingQueries
}

func newPeering(by Peers, s *settings) *peering {
	plain := *s
	plain.pending, plain.peers = nil, nil
	return &peering{by, &plain, newPendingQueries(nil, maxMessages, &plain)}
}

// Opcodes of messages between servers (RFC 1996 §4.5, RFC 2136 §1.3).
const (
	opcodeNotify = 4
	opcodeUpdate = 5
)

// forPeers reports whether Peers serves the query that h has read.
func (h *handler) forPeers() bool {
	if h.settings.peers == nil {
		return false
	}
	if h.rejected != 0 {
		return true
	}
	q := &h.q
	switch q.flags & wire.OpcodeMask >> 11 {
	case opcodeNotify, opcodeUpdate:
		return q.hasQuestion
	case opcodeQuery:
		return q.hasQuestion && (q.signed || q.qclass == wire.ClassIN && (q.qtype == rr.TypeAXFR || q.qtype == rr.TypeIXFR))
	}
	return false
}

// deferToPeers leaves the query to Peers. The rate limit counts its replies as answers to the name, not as errors: a
// secondary that asks for all its zones makes no errors.
func (h *handler) deferToPeers() int {
	h.reply.Kind = kindForwarded
	h.mustWait = true
	return wire.EDENone
}

// reject answers a message with an error. If the message is signed, it leaves the answer to Peers.
func (h *handler) reject(rcode uint8) int {
	if h.settings.peers == nil || !wire.IsSigned(h.q.wire) {
		return h.fail(rcode)
	}
	h.rejected, h.mustWait = rcode, true
	return wire.EDENone
}

// queue returns the pendingQueries of the query that h has read.
func (h *handler) queue() *pendingQueries {
	if h.forPeers() {
		return h.settings.peers.pendingQueries
	}
	return h.settings.pending
}

// startPending makes the query that h has read wait. The caller has called tryAdmit.
func (h *handler) startPending(to sender) {
	if h.forPeers() {
		h.settings.peers.start(h, to)
		return
	}
	h.settings.pending.start(h, to)
}

// start makes Peers answer the query that h has read.
func (p *peering) start(h *handler, to sender) {
	from, count := h.from, h.count
	message := bytes.Clone(h.q.wire)
	m := PeerMessage{Wire: message, From: from.addr, TCP: from.tcp && !from.single,
		EDNS: h.q.edns.present, Limit: h.limit, Rejected: int(h.rejected), Encryption: from.encrypted,
		Padded: h.q.edns.present && h.pads()}
	p.running.Go(func() {
		defer to.release()
		defer p.free(from.addr, weight(message))
		m.Answer = func(query []byte, reserve int) []byte { return p.answer(query, from, reserve) }
		sent := false
		m.Send = func(reply []byte) error {
			if !sent {
				sent = true
				count.response(reply[3]&0xF, kindForwarded)
			}
			err := to.send(reply)
			if err != nil {
				count.drop(dropSend)
			}
			return err
		}
		if p.server.Serve(p.ctx, m) != nil {
			to.abort()
		}
	})
}

// answer implements PeerMessage.Answer.
func (p *peering) answer(query []byte, from client, reserve int) []byte {
	h := p.handlers.Get().(*handler)
	defer p.handlers.Put(h)
	if h.count == nil {
		h.count = new(counters) // not exported: the message was counted on arrival, and its reply is counted when it is sent
	}
	h.start()
	h.from = from
	out := make([]byte, wire.MaxSize)
	whole := h.read(query)
	h.begin(out)
	n := h.finish(h.decide(whole))
	if n+reserve > h.limit {
		h.clearReply(h.reply.Msg[:h.q.end])
		h.reply.Truncated = true
		n = h.finish(wire.EDENone)
	}
	h.snapshot, h.reply.Zone = nil, nil
	return out[:n:n]
}
