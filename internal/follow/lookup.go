package follow

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// lookup finds the addresses of a name. It queries one resolver after the other until one answers.
func (t *Tracker) lookup(ctx context.Context, name dnsname.Name, f Family) outcome {
	var tried []*upstream
	var failed []*Error
	for {
		u := t.upstreams.acquire(ctx, tried)
		if u == nil {
			return outcome{err: t.combineErrors(failed)}
		}
		o := t.walk(ctx, u, name, f)
		u.release()
		if ctx.Err() != nil {
			u.cancelClaim()
			return outcome{err: o.err}
		}
		if u.report(name, o.err, time.Now()) {
			t.retryFailed()
		}
		if o.err == nil || isFinal(o.err.Cause) {
			return o
		}
		tried, failed = append(tried, u), append(failed, o.err)
	}
}

// retryFailed reschedules the names that failed because no resolver worked, now that one works again. Otherwise each
// would wait for up to lastRetry. The new times are random, so that the names are not all queried in the same moment.
func (t *Tracker) retryFailed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for e := range t.entriesLocked {
		if e.followers == 0 || e.inFlight || e.state.Err == nil || !blamesResolver(e.state.Err.Cause) {
			continue
		}
		if due := now.Add(t.timing.randomPart(lastBackoff)); due.Before(e.due) {
			t.queueOf(e).reschedule(e, due)
		}
	}
	t.nudge()
}

// isFinal reports whether the failure comes from the name itself, so that another resolver would only repeat it.
func isFinal(c Cause) bool { return c == Loop || c == ChainTooLong }

// combineErrors returns the error of a lookup for which all resolvers failed, or were skipped because they are down.
func (t *Tracker) combineErrors(failed []*Error) *Error {
	if len(failed) == 0 {
		return t.errNoneUp()
	}
	last := failed[len(failed)-1]
	if len(failed) == 1 {
		return last
	}
	var all []string
	for _, e := range failed {
		all = append(all, e.Server+": "+strings.TrimSuffix(string(e.Cause)+": "+e.Detail, ": "))
	}
	return &Error{Cause: last.Cause, Server: last.Server, Detail: strings.Join(all, "; "), Chain: last.Chain}
}

func (t *Tracker) errNoneUp() *Error {
	for _, u := range t.upstreams {
		if e := u.lastErr(); e != nil {
			return &Error{Cause: e.Cause, Server: e.Server, Detail: "no resolver is up"}
		}
	}
	return &Error{Cause: Network, Detail: "no resolver is configured"}
}

// walk queries one resolver for a name, and again for the target where a reply ends in a CNAME. Each reply adds to the
// chain or ends the walk, so there are at most wire.MaxChain+1 queries for addresses. There are at most as many CNAME
// queries for names for which the resolver returns SERVFAIL.
func (t *Tracker) walk(ctx context.Context, u *upstream, name dnsname.Name, f Family) outcome {
	w := chainWalk{next: name, family: f}
	for {
		reply, err := t.ask(ctx, u, w.next, rrType(f))
		if err == nil {
			var o outcome
			var done bool
			if o, done, err = w.read(reply); done {
				return o
			}
		}
		if err != nil && err.Cause == ServFail {
			err = t.skipServFail(ctx, u, &w, err)
		}
		if err != nil {
			err.Server, err.Chain = u.label, w.chain
			return outcome{err: err}
		}
	}
}

// chainWalk is the state of a walk from a name to its addresses.
type chainWalk struct {
	family Family
	next   dnsname.Name // name that the walk has reached
	chain  []Link
}

// follow adds one CNAME to the chain.
func (w *chainWalk) follow(target dnsname.Name, ttl time.Duration) *Error {
	w.chain = append(w.chain, Link{w.next, target, ttl})
	if slices.ContainsFunc(w.chain, func(l Link) bool { return l.Name == target }) {
		return &Error{Cause: Loop, Detail: "the CNAME chain leads back to " + target.String()}
	}
	if len(w.chain) > wire.MaxChain {
		return &Error{Cause: ChainTooLong, Detail: "more than 16 CNAMEs"}
	}
	w.next = target
	return nil
}

// ttl returns the least of d and the TTLs of the chain.
func (w *chainWalk) ttl(d time.Duration) time.Duration {
	for _, l := range w.chain {
		d = min(d, l.TTL)
	}
	return d
}
