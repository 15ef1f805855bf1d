package dnsserver

import (
	"bytes"
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/forward"
)

// waiting are the queries that wait for the forwarder: how many there may be, and the goroutines they wait in.
//
// One goroutine for each, because that is what a wait costs: the memory for the reply is taken only when there is one.
type waiting struct {
	forwarder Forwarder
	most      int       // queries at a time
	perClient int       // of one IPv4 address or IPv6 /64
	handlers  sync.Pool // of *handler
	ctx       context.Context
	cancel    context.CancelFunc // ends all waiting
	running   sync.WaitGroup

	mu      sync.Mutex // guards all below
	queries int
	clients map[netip.Addr]int
}

// pending is a query that waits.
type pending struct {
	in       []byte
	from     client
	question forward.Question
	limit    int // octets that the reply may have without OPT
	count    *counters
	arrived  time.Time
	to       replier
}

// replier is the way back to a client.
type replier interface {
	// reply sends the message that compose writes into the memory it is given, and whose length it returns. The memory is
	// taken only when the message can be sent, so that slow clients do not hold more of it the more they ask.
	reply(compose func(out []byte) int) error
	// release is called once the query waits no longer.
	release()
}

func newWaiting(by Forwarder, most int, s *settings) *waiting {
	w := &waiting{forwarder: by, most: most, perClient: most / 4, clients: map[netip.Addr]int{}}
	w.handlers.New = func() any { return &handler{settings: s} }
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// endAfter has everybody wait no longer than d.
func (w *waiting) endAfter(d time.Duration) {
	if w != nil {
		time.AfterFunc(d, w.cancel)
	}
}

// finish returns when nobody waits any more. Nothing may be started from then on.
func (w *waiting) finish() {
	if w != nil {
		w.running.Wait()
		w.cancel()
	}
}

// weight is how many queries one counts for: one, unless it is larger than any that comes over UDP. So the bound of their
// number is one of the memory that they hold.
func weight(in []byte) int { return 1 + len(in)/readSize }

// take reserves room for a query; false when the client, or all clients together, have too many waiting.
func (w *waiting) take(addr netip.Addr, n int) bool {
	who := clientOf(addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queries+n > w.most || w.clients[who]+n > w.perClient {
		return false
	}
	w.queries += n
	w.clients[who] += n
	return true
}

// give frees the room again.
func (w *waiting) give(addr netip.Addr, n int) {
	who := clientOf(addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queries -= n
	if w.clients[who] -= n; w.clients[who] == 0 {
		delete(w.clients, who)
	}
}

func (w *waiting) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queries
}

// start lets the query that h has read wait; take has made room for it. It is copied, because the memory it is in is for
// the next one.
func (w *waiting) start(h *handler, to replier) {
	h.count.forwards[forwardAsked].Add(1)
	q := h.forwards.rest
	q.Name = bytes.Clone(q.Name)
	p := &pending{bytes.Clone(h.q.wire), h.from, q, h.reply.Limit, h.count, h.now, to}
	w.running.Go(func() { w.wait(p) })
}

// wait asks the forwarder and replies.
func (w *waiting) wait(p *pending) {
	defer p.to.release()
	defer w.give(p.from.addr, weight(p.in))
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

// mostWait is how long a query waits at most: with what a reply takes besides, below the 2.5s that clients are promised.
// The forwarder ends sooner by itself, and has stale answers to give then.
const mostWait = forward.Timeout + 450*time.Millisecond

// ask gives large replies the room they want only when they are there: few are, and the others would all hold it while
// they wait. One that was not kept has to be found again, but not in more time than there is for all.
func (w *waiting) ask(p *pending) forward.Reply {
	ctx, cancel := context.WithDeadline(w.ctx, p.arrived.Add(mostWait))
	defer cancel()
	exchange := func(room int) forward.Reply {
		return w.forwarder.Exchange(ctx, p.question, appendQuestion(make([]byte, 0, room), p.question.Name))
	}
	answer := exchange(min(p.limit, usualReply))
	if answer.Truncated && p.limit > usualReply {
		answer = exchange(p.limit)
	}
	return answer
}
