package forward

import (
	"context"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

const (
	// failureLife is how long a failure is cached. RFC 9520 §3.2 requires at least a second; more would keep clients from
	// an upstream that is up again.
	failureLife = time.Second
	// recheckAfter is how long stale answers are used at once, without new queries (RFC 8767 §5).
	recheckAfter = 30 * time.Second
)

// flight is a question for which upstreams are being queried. All clients with the same question wait for it.
type flight struct {
	done  chan struct{} // closed when entry is set
	entry *entry
	stale bool // entry has expired
}

// Cached appends an answer from the cache or a local answer to msg. msg ends with the question, and its capacity limits
// the reply. Cached returns false if upstreams must be queried; msg is then unchanged. It does not block or allocate.
func (f *Forwarder) Cached(q Question, now time.Time, msg []byte) (Reply, bool) {
	s := f.state.Load()
	if r, ok := s.answerLocally(&q, msg); ok {
		f.metrics.local.Add(1)
		return r, true
	}
	var buf [maxKey]byte
	e, stale := f.cache.find(q.appendKey(buf[:0]), now, s.cfg.MaxStale)
	switch {
	case e == nil:
		return Reply{}, false
	case stale:
		return e.appendStale(msg), true
	}
	return e.appendTo(msg, now), true
}

// Exchange does what Cached does, and queries upstreams if necessary. It returns when there is a reply or ctx is done,
// and always within Timeout. A failure is a Reply of SERVFAIL with an extended error.
func (f *Forwarder) Exchange(ctx context.Context, q Question, msg []byte) Reply {
	if r, ok := f.Cached(q, time.Now(), msg); ok {
		return r
	}
	fl := f.join(q)
	if fl == nil {
		f.metrics.rejected.Add(1)
		return f.rejectedReply(q, msg)
	}
	select {
	case <-fl.done:
	case <-ctx.Done():
		return failure(wire.EDENoReachable).appendTo(msg, time.Now())
	}
	if fl.stale {
		return fl.entry.appendStale(msg)
	}
	return fl.entry.appendTo(msg, time.Now())
}

// rejectedReply answers a question when too many are in flight. A stale answer is better than none: a client that
// floods us with questions must not deprive others of cached answers.
func (f *Forwarder) rejectedReply(q Question, msg []byte) Reply {
	var buf [maxKey]byte
	now := time.Now()
	if e := f.cache.extendStale(string(q.appendKey(buf[:0])), now, f.state.Load().cfg.MaxStale); e != nil {
		return e.appendStale(msg)
	}
	return failure(wire.EDENetworkError).appendTo(msg, now)
}

// answerLocally answers questions for which upstreams must not be queried.
func (s *state) answerLocally(q *Question, msg []byte) (Reply, bool) {
	if len(q.Name) == 0 || len(q.Name) > dnsname.MaxWire || !q.Type.IsData() {
		// This includes transfers and ANY. An answer to ANY is large and useless, and RFC 8482 §4 permits refusing it.
		return Reply{Msg: msg, Rcode: wire.RcodeRefused, EDE: wire.EDENotSupported}, true
	}
	return s.local.answer(q, msg)
}

// join returns the flight for a question; nil if too many are in flight.
func (f *Forwarder) join(q Question) *flight {
	s := f.state.Load()
	var buf [maxKey]byte
	key := q.appendKey(buf[:0])
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.flights[string(key)]; fl != nil {
		f.metrics.joined.Add(1)
		return fl
	}
	if f.closed || len(f.flights) >= maxInFlight {
		return nil
	}
	fl := &flight{done: make(chan struct{})}
	k := string(key)
	f.flights[k] = fl
	q.Name = []byte(k[:len(q.Name)]) // the caller may reuse its buffer
	f.work.Go(func() { f.runFlight(fl, s, k, q) })
	return fl
}

// runFlight queries upstreams, stores the result in the cache, and wakes the waiting clients. It does not end when one
// of the clients gives up.
func (f *Forwarder) runFlight(fl *flight, s *state, key string, q Question) {
	ctx, cancel := context.WithTimeout(f.ctx, Timeout)
	defer cancel()
	e := f.ask(ctx, s, &q)
	e.key, e.stored = key, time.Now()
	fl.entry = e
	if !e.isAnswer() {
		e.life = failureLife
		if old := f.cache.extendStale(key, e.stored, s.cfg.MaxStale); old != nil && !isDNSSECError(e.ede) {
			fl.entry, fl.stale = old, true
		}
	}
	if !fl.stale {
		f.cache.put(e)
	}
	f.mu.Lock()
	delete(f.flights, key)
	f.mu.Unlock()
	close(fl.done)
}

// isDNSSECError reports whether an upstream found that the data fail validation. Stale data are no better then.
func isDNSSECError(ede int) bool {
	return ede == 1 || ede == 2 || 5 <= ede && ede <= 12
}
