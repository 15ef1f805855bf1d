package forward

import (
	"context"
	"errors"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

const (
	// hedgeAfter is how long an upstream may take before another is queried too. It is longer than a resolver takes for
	// most names, and short enough for four more attempts within the timeout.
	hedgeAfter = 450 * time.Millisecond
	// maxAttempts limits the messages sent for one question.
	maxAttempts = 6
	// rounds is how often one upstream is queried over UDP, where a message may be lost.
	rounds = 3
)

// query returns the message for upstreams. It has only the question, DO and CD of the client's message: the client's
// cookie is not valid there, and its network is private. AD asks upstreams to report whether they have validated (RFC
// 6840 §5.7).
func (q *Question) query() (*dns.Msg, error) {
	name, _, err := dns.UnpackDomainName(q.Name, 0)
	if err != nil {
		return nil, err
	}
	m := new(dns.Msg).SetQuestion(name, uint16(q.Type))
	m.CheckingDisabled, m.AuthenticatedData = q.CD, true
	m.SetEdns0(wire.UDPSize, q.DO)
	return m, nil
}

// outcome is the result of a query to one upstream.
type outcome struct {
	from  *upstream
	entry *entry // the answer, if there is one
	ede   int    // extended error, if there is no answer
}

// ask queries the upstreams and returns an answer or a failure.
func (f *Forwarder) ask(ctx context.Context, s *state, q *Question) *entry {
	m, err := q.query()
	if err != nil {
		return failure(wire.EDENotSupported)
	}
	f.metrics.asked.Add(1)
	a := &lookup{f: f, state: s, question: q, query: m, ede: wire.EDENoReachable,
		outcomes: make(chan outcome, maxAttempts)}
	a.planAttempts(s.order())
	return a.run(ctx)
}

// lookup is the work on one question.
type lookup struct {
	f        *Forwarder
	state    *state
	question *Question
	query    *dns.Msg
	todo     []*upstream // upstreams still to be queried, in this order
	waiting  []*upstream
	ede      int
	outcomes chan outcome
}

// planAttempts lists the upstreams to query: each once, then again those over UDP, where messages get lost.
func (a *lookup) planAttempts(order []*upstream) {
	for round := range rounds {
		for _, u := range order {
			if round == 0 || u.server.Transport == resolve.UDP {
				a.todo = append(a.todo, u)
			}
		}
	}
	a.todo = a.todo[:min(len(a.todo), maxAttempts)]
}

// run queries one upstream after the other: the next when one fails, and when one is slow. It returns the first answer.
func (a *lookup) run(ctx context.Context) *entry {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hedge := time.NewTicker(hedgeAfter)
	defer hedge.Stop()
	a.next(ctx)
	for len(a.waiting) > 0 {
		select {
		case o := <-a.outcomes:
			if o.entry != nil {
				return o.entry
			}
			a.failed(o)
			a.next(ctx)
			hedge.Reset(hedgeAfter)
		case <-hedge.C:
			for _, u := range a.waiting {
				a.f.suspect(u)
			}
			a.next(ctx)
		case <-ctx.Done():
			return failure(a.ede)
		}
	}
	return failure(a.ede)
}

// next queries the next upstream, if there is one.
func (a *lookup) next(ctx context.Context) {
	if len(a.todo) == 0 {
		return
	}
	u := a.todo[0]
	a.todo = a.todo[1:]
	a.waiting = append(a.waiting, u)
	go func() { a.outcomes <- a.f.try(ctx, a, u) }()
}

// failed records that an upstream has no answer. It is not queried again: it would repeat its reply.
func (a *lookup) failed(o outcome) {
	a.todo = remove(a.todo, o.from, len(a.todo))
	a.waiting = remove(a.waiting, o.from, 1)
	// The upstream's own extended error is more specific than ours.
	if a.ede == wire.EDENoReachable && o.ede != wire.EDENone || isDNSSECError(o.ede) {
		a.ede = o.ede
	}
}

// remove returns the list without the first n elements that are u.
func remove(list []*upstream, u *upstream, n int) []*upstream {
	out := list[:0:0]
	for _, other := range list {
		if other == u && n > 0 {
			n--
			continue
		}
		out = append(out, other)
	}
	return out
}

// try queries one upstream.
func (f *Forwarder) try(ctx context.Context, a *lookup, u *upstream) outcome {
	start := time.Now()
	reply, err := a.state.exchanger.Exchange(ctx, u.server, a.query)
	if errors.Is(err, context.Canceled) {
		return outcome{from: u, ede: wire.EDENoReachable} // another upstream was faster
	}
	f.metrics.observe(u.server, reply, time.Since(start))
	if err != nil {
		f.suspect(u)
		if errors.Is(err, context.DeadlineExceeded) {
			return outcome{from: u, ede: wire.EDENoReachable}
		}
		return outcome{from: u, ede: wire.EDENetworkError}
	}
	e, ede := newEntry(a.question, reply)
	return outcome{from: u, entry: e, ede: ede}
}
