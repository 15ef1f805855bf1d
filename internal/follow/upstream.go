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
	// downAfter is how many names must fail at a resolver, with no answer between them, before it is taken to be down.
	// Names, not queries: a resolver that cannot reach the servers of one name is silent on that name again and again.
	downAfter = 3

	// A resolver that is down is left alone for firstRest, and twice as long each time it fails again, up to lastRest.
	firstRest = time.Second
	lastRest  = 30 * time.Second
)

// upstream is a resolver, and how it fares.
type upstream struct {
	server resolve.Server
	label  string        // of the server, in metrics and errors
	slots  chan struct{} // holds one element for each name that is asked here now

	mu      sync.Mutex     // guards the following
	failed  []dnsname.Name // the names that failed since the last answer, up to downAfter
	last    *Error         // of the last of them
	rests   int            // times it was left alone since the last answer
	until   time.Time      // when it may be tried again
	probing bool           // it is being tried
}

func newUpstream(s resolve.Server, parallel int) *upstream {
	return &upstream{server: s, label: s.String(), slots: make(chan struct{}, parallel)}
}

// claim reports whether the resolver may be asked: as long as it is up, or, after a rest, by one caller who finds out. Each
// claim is followed by a report or a release.
func (u *upstream) claim(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.failed) < downAfter {
		return true
	}
	if u.probing || now.Before(u.until) {
		return false
	}
	u.probing = true
	return true
}

// unclaim takes back a claim that came to nothing.
func (u *upstream) unclaim() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.probing = false
}

// report tells how asking for a name went, and reports whether the resolver is up again by that. Only what is the
// resolver's own doing counts against it.
func (u *upstream) report(name dnsname.Name, err *Error, now time.Time) (back bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.probing = false
	if err == nil || !blamesResolver(err.Cause) {
		back = len(u.failed) == downAfter
		u.failed, u.last, u.rests = u.failed[:0], nil, 0
		return back
	}
	u.last = err
	if len(u.failed) < downAfter && !slices.Contains(u.failed, name) {
		u.failed = append(u.failed, name)
	}
	if len(u.failed) == downAfter && !now.Before(u.until) {
		u.until = now.Add(min(firstRest<<min(u.rests, 10), lastRest))
		u.rests++
	}
	return false
}

// blamesResolver reports whether a failure says something about the resolver. SERVFAIL and the like say that the resolver
// works and the name does not.
func blamesResolver(c Cause) bool {
	switch c {
	case Timeout, Network, Refused, Lame, Malformed, Bogus, FormErr:
		return true
	}
	return false
}

// up reports whether the resolver is in use, and lastErr why not.
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

// upstreams are the resolvers in order of preference.
type upstreams []*upstream

// take chooses a resolver that was not tried and takes one of its slots: the first that has one free, or else the first that
// gets one. When all are down it is the first of them nevertheless: silence on some names, which their owners can arrange,
// must not keep others from being asked for. It returns nil when there is none left to try, or ctx has ended.
func (us upstreams) take(ctx context.Context, tried []*upstream) *upstream {
	for _, u := range us {
		if len(u.slots) == cap(u.slots) || slices.Contains(tried, u) || !u.claim(time.Now()) {
			continue
		}
		select {
		case u.slots <- struct{}{}:
			return u
		default:
			u.unclaim()
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
					u.unclaim()
				}
				return nil
			}
		}
	}
	return nil
}

func (u *upstream) release() { <-u.slots }

// slots is how many names can be asked at once.
func (us upstreams) slots() int {
	n := 0
	for _, u := range us {
		n += cap(u.slots)
	}
	return n
}
