package forward

import (
	"context"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

const (
	// failureLife is how long a failure is remembered. RFC 9520 §3.2 wants a second at least; more would keep clients
	// from an upstream that is back.
	failureLife = time.Second
	// recheckAfter is how long stale answers are given at once, without asking again (RFC 8767 §5).
	recheckAfter = 30 * time.Second
)

// flight is a question that upstreams are being asked. All who ask the same wait for it.
type flight struct {
	done  chan struct{} // closed when entry is there
	entry *entry
	stale bool // entry's time has passed
}

// Cached puts what is known of q at once behind msg, which ends with the question and whose capacity is the room for the
// reply. It reports false when upstreams must be asked; msg is then as it was. It does not block or allocate.
func (f *Forwarder) Cached(q Question, now time.Time, msg []byte) (Reply, bool) {
	s := f.state.Load()
	if r, ok := s.answerHere(&q, msg); ok {
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

// Exchange is Cached, and asks upstreams if it must. It returns when there is a reply or ctx ends, and in any case within
// Timeout: a failure is a Reply of SERVFAIL with an extended error.
func (f *Forwarder) Exchange(ctx context.Context, q Question, msg []byte) Reply {
	if r, ok := f.Cached(q, time.Now(), msg); ok {
		return r
	}
	fl := f.join(q)
	if fl == nil {
		f.metrics.rejected.Add(1)
		return f.rejected(q, msg)
	}
	select {
	case <-fl.done:
	case <-ctx.Done():
		return failure(wire.RcodeServFail, wire.EDENoReachable).appendTo(msg, time.Now())
	}
	if fl.stale {
		return fl.entry.appendStale(msg)
	}
	return fl.entry.appendTo(msg, time.Now())
}

// rejected answers a question for which there is no room in flight. An answer whose time has passed is better than none: who
// fills the room with questions must not take from others what is known.
func (f *Forwarder) rejected(q Question, msg []byte) Reply {
	var buf [maxKey]byte
	now := time.Now()
	if e := f.cache.postpone(string(q.appendKey(buf[:0])), now, f.state.Load().cfg.MaxStale); e != nil {
		return e.appendStale(msg)
	}
	return failure(wire.RcodeServFail, wire.EDENetworkError).appendTo(msg, now)
}

// answerHere answers what upstreams must not be asked.
func (s *state) answerHere(q *Question, msg []byte) (Reply, bool) {
	if len(q.Name) == 0 || len(q.Name) > dnsname.MaxWire || !q.Type.IsData() {
		// Transfers and ANY among them: an answer to ANY is large, of no use, and RFC 8482 §4 lets us not give it.
		return Reply{Msg: msg, Rcode: wire.RcodeRefused, EDE: wire.EDENotSupported}, true
	}
	return s.local.answer(q, msg)
}

// join is the flight for a question; nil when there is no room for another.
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
	q.Name = []byte(k[:len(q.Name)]) // the caller's will be another by then
	f.work.Go(func() { f.fly(fl, s, k, q) })
	return fl
}

// fly asks, remembers, and tells those who wait. It is nobody's in particular: one of them may go without the others.
func (f *Forwarder) fly(fl *flight, s *state, key string, q Question) {
	ctx, cancel := context.WithTimeout(f.ctx, Timeout)
	defer cancel()
	e := f.ask(ctx, s, &q)
	e.key, e.stored = key, time.Now()
	fl.entry = e
	if !e.isAnswer() {
		e.life = failureLife
		if old := f.cache.postpone(key, e.stored, s.cfg.MaxStale); old != nil && !isDNSSECError(e.ede) {
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

// isDNSSECError reports whether an upstream has found that the data are not to be believed. Older ones are no better then.
func isDNSSECError(ede int) bool {
	return ede == 1 || ede == 2 || 5 <= ede && ede <= 12
}
