package follow

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

const (
	// downAfter is how many names must fail at a resolver, without an answer between them, before it counts as down. It
	// counts names and not queries: a resolver that cannot reach the servers of one name fails for that name again and
	// again.
	downAfter = 3

	// A resolver that is down is not queried for firstBackoff. The time doubles with each further failure, up to
	// lastBackoff.
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// upstream is a resolver and its health.
type upstream struct {
	server resolve.Server
	label  string        // name of the server in metrics and errors
	slots  chan struct{} // semaphore: one element for each name that is queried here now

	mu       sync.Mutex     // guards the following
	failed   []dnsname.Name // names that failed since the last answer, at most downAfter
	last     *Error         // error of the last of them
	backoffs int            // number of backoffs since the last answer
	retryAt  time.Time      // when the resolver may be probed again
	probing  bool           // a probe is in flight
}

func newUpstream(s resolve.Server, parallel int) *upstream {
	return &upstream{server: s, label: s.String(), slots: make(chan struct{}, parallel)}
}

// claim reports whether the resolver may be queried. If it is down, one caller may probe it after the backoff. Each
// claim is followed by report or cancelClaim.
func (u *upstream) claim(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.failed) < downAfter {
		return true
	}
	if u.probing || now.Before(u.retryAt) {
		return false
	}
	u.probing = true
	return true
}

// cancelClaim takes back a claim without a result.
func (u *upstream) cancelClaim() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.probing = false
}

// report records the result of a query for a name, and reports whether the resolver is up again because of it. Only
// failures of the resolver itself count against it.
func (u *upstream) report(name dnsname.Name, err *Error, now time.Time) (back bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.probing = false
	if err == nil || !blamesResolver(err.Cause) {
		back = len(u.failed) == downAfter
		u.failed, u.last, u.backoffs = u.failed[:0], nil, 0
		return back
	}
	u.last = err
	if len(u.failed) < downAfter && !slices.Contains(u.failed, name) {
		u.failed = append(u.failed, name)
	}
	if len(u.failed) == downAfter && !now.Before(u.retryAt) {
		u.retryAt = now.Add(min(firstBackoff<<min(u.backoffs, 10), lastBackoff))
		u.backoffs++
	}
	return false
}

// blamesResolver reports whether a failure is the resolver's own. SERVFAIL and similar causes mean that the resolver
// works and the name does not.
func blamesResolver(c Cause) bool {
	switch c {
	case Timeout, Network, Refused, Lame, Malformed, Bogus, FormErr:
		return true
	}
	return false
}

// up reports whether the resolver is in use; lastErr returns why not.
func (u *upstream) up() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.failed) < downAfter
}

func (u *upstream) lastErr() *Error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// upstreams is the list of resolvers in order of preference.
type upstreams []*upstream

// acquire chooses a resolver that was not tried and takes one of its slots: the first with a free slot, or else the
// first that gets one. When all are down, acquire uses the first of them nevertheless. Otherwise the owners of some
// names, whose servers do not reply, could stop all lookups. acquire returns nil if no resolver is left to try, or ctx
// is done.
func (us upstreams) acquire(ctx context.Context, tried []*upstream) *upstream {
	for _, u := range us {
		if len(u.slots) == cap(u.slots) || slices.Contains(tried, u) || !u.claim(time.Now()) {
			continue
		}
		select {
		case u.slots <- struct{}{}:
			return u
		default:
			u.cancelClaim()
		}
	}
	for _, down := range []bool{false, true} {
		for _, u := range us {
			if slices.Contains(tried, u) || !down && !u.claim(time.Now()) {
				continue
			}
			select {
			case u.slots <- struct{}{}:
				return u
			case <-ctx.Done():
				if !down {
					u.cancelClaim()
				}
				return nil
			}
		}
	}
	return nil
}

func (u *upstream) release() { <-u.slots }

// slots returns how many names can be queried at once.
func (us upstreams) slots() int {
	n := 0
	for _, u := range us {
		n += cap(u.slots)
	}
	return n
}
