package dnsserver

import (
	"bytes"
	"context"
	"net/netip"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Peers answers what name servers, and those who keep them, say to each other: transfers, NOTIFY, UPDATE, and everything that
// is signed with a TSIG. *dnspeer.Server is one. Serve is called by any number of goroutines.
type Peers interface {
	// Serve answers one message, and returns when that is done. It ends soon after ctx does. An error cuts the client off:
	// what it has got by then is not whole.
	Serve(ctx context.Context, m PeerMessage) error
}

// maxMessages is how many messages Peers may have on its hands: most wait for their turn to transfer, which costs little.
// Beyond that they get SERVFAIL.
const maxMessages = 1024

// PeerMessage is a message for Peers. Its header and question are well formed, it has as many records as it says, and a TSIG
// is the last of them.
type PeerMessage struct {
	Wire  []byte
	From  netip.Addr
	TCP   bool
	Limit int // octets of the largest reply

	// Send sends a reply: over TCP any number of them, over UDP one. The memory is the caller's again when it returns.
	Send func(reply []byte) error
	// Answer is the reply to an ordinary query, such as the message would be without its TSIG, and leaves reserve octets for
	// that. The reply is the caller's. What only the forwarder could answer is refused.
	Answer func(query []byte, reserve int) []byte
}

// sender is the way back to a client, for any number of messages.
type sender interface {
	replier
	send(message []byte) error
	// cut ends what cannot be answered to its end.
	cut()
}

// peering is the messages that Peers has on its hands.
type peering struct {
	by    Peers
	plain *settings // for ordinary queries that were signed
	*waiting
}

func newPeering(by Peers, s *settings) *peering {
	plain := *s
	plain.waiting, plain.peers = nil, nil
	return &peering{by, &plain, newWaiting(nil, maxMessages, &plain)}
}

// Opcodes that servers use among themselves (RFC 1996 §4.5, RFC 2136 §1.3).
const (
	opcodeNotify = 4
	opcodeUpdate = 5
)

// forPeers reports whether the query that h has read is a matter of Peers.
func (h *handler) forPeers() bool {
	if h.settings.peers == nil {
		return false
	}
	q := &h.q
	switch q.flags & wire.OpcodeMask >> 11 {
	case opcodeNotify, opcodeUpdate:
		return q.asked
	case opcodeQuery:
		return q.asked && (q.signed || q.qclass == wire.ClassIN && (q.qtype == rr.TypeAXFR || q.qtype == rr.TypeIXFR))
	}
	return false
}

// hand leaves the query to Peers. Its replies count as answers to the name, not as mistakes, when the rate of them is limited:
// a server that asks for all its zones makes none.
func (h *handler) hand() int {
	h.reply.Kind = kindForwarded
	h.asks = true
	return wire.EDENone
}

// room is where the query that h has read waits.
func (h *handler) room() *waiting {
	if h.forPeers() {
		return h.settings.peers.waiting
	}
	return h.settings.waiting
}

// await lets the query that h has read wait; there must be room for it.
func (h *handler) await(to sender) {
	if h.forPeers() {
		h.settings.peers.start(h, to)
		return
	}
	h.settings.waiting.start(h, to)
}

// start lets Peers answer the query that h has read.
func (p *peering) start(h *handler, to sender) {
	from, limit, count := h.from, h.limit, h.count
	message := bytes.Clone(h.q.wire)
	p.running.Go(func() {
		defer to.release()
		defer p.give(from.addr, weight(message))
		sent := false
		err := p.by.Serve(p.ctx, PeerMessage{Wire: message, From: from.addr, TCP: from.tcp, Limit: limit,
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
			to.cut()
		}
	})
}

// answer is PeerMessage.Answer.
func (p *peering) answer(query []byte, from client, reserve int) []byte {
	h := p.handlers.Get().(*handler)
	defer p.handlers.Put(h)
	if h.count == nil {
		h.count = new(counters) // what is seen there was counted when it came and is counted when it goes
	}
	h.start()
	h.from = from
	out := make([]byte, wire.MaxSize)
	whole := h.read(query)
	h.begin(out)
	n := h.finish(h.decide(whole))
	if n+reserve > h.limit {
		h.empty(h.reply.Msg[:h.q.end])
		h.reply.Truncated = true
		n = h.finish(wire.EDENone)
	}
	h.snapshot, h.reply.Zone = nil, nil
	return out[:n:n]
}
