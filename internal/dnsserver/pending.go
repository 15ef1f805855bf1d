package dnsserver

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/forward"
)

// pendingQueries limits the queries that wait for the forwarder or for Peers, and runs a goroutine for each.
//
// A goroutine is cheap while it waits: the memory for the reply is allocated only when there is one.
type pendingQueries struct {
	*capacity
	forwarder Forwarder
	handlers  sync.Pool // *handler
	ctx       context.Context
	cancel    context.CancelFunc // ends all waiting
	running   sync.WaitGroup
}

// pendingQuery is a query that waits.
type pendingQuery struct {
	in       []byte
	from     client
	question forward.Question
	limit    int // bytes that the reply may have without OPT
	count    *counters
	arrived  time.Time
	to       replier
}

// replier sends one reply to a client.
type replier interface {
	// reply sends the message that compose writes into the given memory and whose length compose returns. The memory is
	// taken only when the message can be sent. A slow client therefore does not hold more memory when it sends more
	// queries.
	reply(compose func(out []byte) int) error
	// release is called once the query no longer waits.
	release()
}

func newPendingQueries(by Forwarder, maxQueries int, s *settings) *pendingQueries {
	w := &pendingQueries{forwarder: by, capacity: newCapacity(maxQueries)}
	w.handlers.New = func() any { return &handler{settings: s} }
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// endAfter cancels all waiting queries after d.
func (w *pendingQueries) endAfter(d time.Duration) {
	if w != nil {
		time.AfterFunc(d, w.cancel)
	}
}

// finish blocks until no query waits. No query may be started after that.
func (w *pendingQueries) finish() {
	if w != nil {
		w.running.Wait()
		w.cancel()
	}
}

// start makes the query that h has read wait. The caller has called tryReserve. The query is copied, because the next
// query overwrites its memory.
func (w *pendingQueries) start(h *handler, to replier) {
	h.count.forwards[forwardAsked].Add(1)
	q := h.forwards.missing
	q.Name = bytes.Clone(q.Name)
	p := &pendingQuery{bytes.Clone(h.q.wire), h.from, q, h.reply.Limit, h.count, h.now, to}
	w.running.Go(func() { w.wait(p) })
}

// wait asks the forwarder and sends the reply.
func (w *pendingQueries) wait(p *pendingQuery) {
	defer p.to.release()
	defer w.free(p.from.addr, weight(p.in))
	answer := w.ask(p)
	err := p.to.reply(func(out []byte) int {
		h := w.handlers.Get().(*handler)
		defer w.handlers.Put(h)
		return h.resume(p, &answer, out)
	})
	if err != nil {
		p.count.drop(dropSend)
	}
	p.count.observe(time.Since(p.arrived), 1)
}

// maxWait is how long a query waits at most. Together with the time to write the reply it stays below the 2.5 s that
// clients are promised. The forwarder ends sooner by itself, and can then give stale answers.
const maxWait = forward.Timeout + 450*time.Millisecond

// ask queries the forwarder with a small buffer, and again with a large one when the reply does not fit. Few replies
// are large, and all waiting queries would hold the memory. A reply that the forwarder did not cache must be found
// again; the deadline covers both attempts.
func (w *pendingQueries) ask(p *pendingQuery) forward.Reply {
	ctx, cancel := context.WithDeadline(w.ctx, p.arrived.Add(maxWait))
	defer cancel()
	exchange := func(room int) forward.Reply {
		return w.forwarder.Exchange(ctx, p.question, appendQuestion(make([]byte, 0, room), p.question.Name))
	}
	answer := exchange(min(p.limit, initialReplySize))
	if answer.Truncated && p.limit > initialReplySize {
		answer = exchange(p.limit)
	}
	return answer
}
