package follow

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// look finds the addresses of a name, asking one resolver after the other until one answers.
func (t *Tracker) look(ctx context.Context, name dnsname.Name, f Family) outcome {
	var tried []*upstream
	var failed []*Error
	for {
		u := t.upstreams.take(ctx, tried)
		if u == nil {
			return outcome{err: t.sum(failed)}
		}
		o := t.walk(ctx, u, name, f)
		u.release()
		if ctx.Err() != nil {
			u.unclaim()
			return outcome{err: o.err}
		}
		if u.report(name, o.err, time.Now()) {
			t.resume()
		}
		if o.err == nil || final(o.err.Cause) {
			return o
		}
		tried, failed = append(tried, u), append(failed, o.err)
	}
}

// resume brings the attempts forward that failed because no resolver worked, now that one does. They would wait for up to
// lastRetry, each for what is over. It takes some time, so that they do not all come in the same moment.
func (t *Tracker) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for e := range t.entriesLocked {
		if e.followers == 0 || e.inFlight || e.state.Err == nil || !blamesResolver(e.state.Err.Cause) {
			continue
		}
		if due := now.Add(t.timing.some(lastRest)); due.Before(e.due) {
			t.lineOf(e).move(e, due)
		}
	}
	t.nudge()
}

// final reports whether a failure is the name's own, so that another resolver would only repeat it.
func final(c Cause) bool { return c == Loop || c == ChainTooLong }

// sum is the error of a look at which all resolvers failed, or were not asked because they are down.
func (t *Tracker) sum(failed []*Error) *Error {
	if len(failed) == 0 {
		return t.noneUp()
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

func (t *Tracker) noneUp() *Error {
	for _, u := range t.upstreams {
		if e := u.lastErr(); e != nil {
			return &Error{Cause: e.Cause, Server: e.Server, Detail: "no resolver is up"}
		}
	}
	return &Error{Cause: Network, Detail: "there is no resolver to ask"}
}

// walk asks one resolver for a name, and on for the target where its reply ends in a CNAME. Each reply adds to the chain
// or ends the walk, so there are at most wire.MaxChain+1; and as many for the CNAMEs of names that the resolver fails at.
func (t *Tracker) walk(ctx context.Context, u *upstream, name dnsname.Name, f Family) outcome {
	w := walked{next: name, family: f}
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
			err = t.around(ctx, u, &w, err)
		}
		if err != nil {
			err.Server, err.Chain = u.label, w.chain
			return outcome{err: err}
		}
	}
}

// walked is a way from a name towards its addresses.
type walked struct {
	family Family
	next   dnsname.Name // where it leads
	chain  []Link
}

// follow goes one CNAME further.
func (w *walked) follow(target dnsname.Name, ttl time.Duration) *Error {
	w.chain = append(w.chain, Link{w.next, target, ttl})
	if slices.ContainsFunc(w.chain, func(l Link) bool { return l.Name == target }) {
		return &Error{Cause: Loop, Detail: "the CNAMEs lead back to " + target.String()}
	}
	if len(w.chain) > wire.MaxChain {
		return &Error{Cause: ChainTooLong, Detail: "more than 16 CNAMEs"}
	}
	w.next = target
	return nil
}

// ttl is the least of the given one and those of the chain.
func (w *walked) ttl(d time.Duration) time.Duration {
	for _, l := range w.chain {
		d = min(d, l.TTL)
	}
	return d
}
