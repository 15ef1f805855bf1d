package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// errTooSoon reports that the rate limit of a server allows no query before the deadline.
var errTooSoon = errors.New("the server must not be asked again so soon")

const (
	// interval and burst are far below the limits of registries (Verisign and DENIC allow several queries per second).
	// They are above the needs of one scan: the domain and those of its name servers and aliases, rarely more than four
	// at one registry.
	interval = 500 * time.Millisecond
	burst    = 5
	// maxHosts limits the number of servers that are remembered.
	maxHosts = 1000
)

// limiter limits the query rate to each server. It does not query servers before the time that they requested.
type limiter struct {
	mu      sync.Mutex // guards the following
	hosts   map[string]*rate.Limiter
	blocked map[string]time.Time // the time until which a host must not be queried
}

// wait blocks until host may be queried. It returns errTooSoon at once if that is after the deadline of the context.
func (l *limiter) wait(ctx context.Context, host string) error {
	wait, ok := l.reserve(ctx, host)
	if !ok {
		return errTooSoon
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// reserve reserves a query to host and returns how long to wait. It returns false and reserves nothing if that is
// after the deadline of the context. It holds the mutex over both steps: canceling a reservation after a later one
// was made does not return it.
func (l *limiter) reserve(ctx context.Context, host string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts == nil || len(l.hosts) > maxHosts {
		l.hosts = map[string]*rate.Limiter{}
	}
	if l.hosts[host] == nil {
		l.hosts[host] = rate.NewLimiter(rate.Every(interval), burst)
	}
	now := time.Now()
	reservation := l.hosts[host].ReserveN(now, 1)
	wait = max(reservation.DelayFrom(now), l.blocked[host].Sub(now))
	if end, ok := ctx.Deadline(); ok && now.Add(wait).After(end) {
		reservation.CancelAt(now)
		return 0, false
	}
	return wait, true
}

// block prevents queries to host until a time.
func (l *limiter) block(host string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocked == nil || len(l.blocked) > maxHosts {
		l.blocked = map[string]time.Time{}
	}
	l.blocked[host] = until
}
