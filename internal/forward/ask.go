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
	// patience is how long an upstream is waited for before another is asked as well: longer than a resolver takes for most
	// names, and short enough for four more attempts within the timeout.
	patience = 450 * time.Millisecond
	// maxAttempts bounds the messages sent for one question.
	maxAttempts = 6
	// rounds is how often one upstream is asked over UDP, where a message may be lost.
	rounds = 3
)

// query is the message for upstreams. Nothing of the client's message is in it but the question, DO and CD: its cookie is
// not theirs, and its network is not their business. AD asks them to tell whether they have validated (RFC 6840 §5.7).
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

// outcome is what came of asking one upstream.
type outcome struct {
	from  *upstream
	entry *entry // an answer
	ede   int    // or why there is none
}

// ask finds the answer, or a failure.
func (f *Forwarder) ask(ctx context.Context, s *state, q *Question) *entry {
	m, err := q.query()
	if err != nil {
		return failure(wire.RcodeServFail, wire.EDENotSupported)
	}
	f.metrics.asked.Add(1)
	a := &asking{f: f, state: s, question: q, query: m, ede: wire.EDENoReachable, outcomes: make(chan outcome, maxAttempts)}
	a.plan(s.order())
	return a.run(ctx)
}

// asking is the work on one question.
type asking struct {
	f        *Forwarder
	state    *state
	question *Question
	query    *dns.Msg
	todo     []*upstream // still to be asked, in this order
	waiting  []*upstream
	ede      int
	outcomes chan outcome
}

// plan lists whom to ask: everybody once, then those again where messages get lost.
func (a *asking) plan(order []*upstream) {
	for round := range rounds {
		for _, u := range order {
			if round == 0 || u.server.Transport == resolve.UDP {
				a.todo = append(a.todo, u)
			}
		}
	}
	a.todo = a.todo[:min(len(a.todo), maxAttempts)]
}

// run asks one after the other: the next when one fails, and when one takes long. The first answer counts.
func (a *asking) run(ctx context.Context) *entry {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hedge := time.NewTicker(patience)
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
			hedge.Reset(patience)
		case <-hedge.C:
			for _, u := range a.waiting {
				a.f.suspect(u)
			}
			a.next(ctx)
		case <-ctx.Done():
			return failure(wire.RcodeServFail, a.ede)
		}
	}
	return failure(wire.RcodeServFail, a.ede)
}

// next asks the next upstream, if there is one.
func (a *asking) next(ctx context.Context) {
	if len(a.todo) == 0 {
		return
	}
	u := a.todo[0]
	a.todo = a.todo[1:]
	a.waiting = append(a.waiting, u)
	go func() { a.outcomes <- a.f.try(ctx, a, u) }()
}

// failed notes that an upstream has no answer. It is not asked again: it would say the same.
func (a *asking) failed(o outcome) {
	a.todo = without(a.todo, o.from, len(a.todo))
	a.waiting = without(a.waiting, o.from, 1)
	// What an upstream says of its failure is worth more than what we know of ours.
	if a.ede == wire.EDENoReachable && o.ede != wire.EDENone || isDNSSECError(o.ede) {
		a.ede = o.ede
	}
}

// without removes up to n of u.
func without(list []*upstream, u *upstream, n int) []*upstream {
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

// try asks one upstream.
func (f *Forwarder) try(ctx context.Context, a *asking, u *upstream) outcome {
	start := time.Now()
	reply, err := a.state.exchanger.Exchange(ctx, u.server, a.query)
	if errors.Is(err, context.Canceled) {
		return outcome{from: u, ede: wire.EDENoReachable} // another was faster
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
