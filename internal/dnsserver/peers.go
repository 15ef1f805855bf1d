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

// PeerMessage is a message for Peers. Its header and question are well formed. It has as many records as its header
// says, and a TSIG is the last of them.
type PeerMessage struct {
	Wire  []byte
	From  netip.Addr
	TCP   bool
	Limit int // size of the largest reply, in bytes

	// Send sends a reply: any number of them over TCP, one over UDP. It does not keep the slice.
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
	from, limit, count := h.from, h.limit, h.count
	message := bytes.Clone(h.q.wire)
	p.running.Go(func() {
		defer to.release()
		defer p.free(from.addr, weight(message))
		sent := false
		err := p.server.Serve(p.ctx, PeerMessage{Wire: message, From: from.addr, TCP: from.tcp, Limit: limit,
			Answer: func(query []byte, reserve int) []byte { return p.answer(query, from, reserve) },
			Send: func(reply []byte) error {
				if !sent {
					sent = true
					count.response(reply[3]&0xF, kindForwarded)
				}
				err := to.send(reply)
				if err != nil {
					count.drop(dropSend)
				}
				return err
			}})
		if err != nil {
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
