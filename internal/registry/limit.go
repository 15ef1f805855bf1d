package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// errWait is that a server may not be asked before our time is up.
var errWait = errors.New("the server must not be asked again so soon")

const (
	// interval and burst are far below what registries allow (Verisign and DENIC some per second), and above what one scan
	// needs: the domain, and those of its name servers and aliases, seldom more than four at one registry.
	interval = 500 * time.Millisecond
	burst    = 5
	// maxHosts bounds what is remembered of servers.
	maxHosts = 1000
)

// limiter spaces the questions to each server, and keeps away from those that said when to come back.
type limiter struct {
	mu    sync.Mutex // guards the following
	hosts map[string]*rate.Limiter
	shut  map[string]time.Time // until when a host asked to be left alone
}

// wait returns when host may be asked; at once with errWait if that is not before the context ends.
func (l *limiter) wait(ctx context.Context, host string) error {
	wait, ok := l.take(ctx, host)
	if !ok {
		return errWait
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// take reserves a question to host and returns in how long it may be asked. It reports false, and reserves nothing, if
// that is after the context ends. The mutex is held until then: a reservation that is cancelled after a later one was
// made is not given back.
func (l *limiter) take(ctx context.Context, host string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts == nil || len(l.hosts) > maxHosts {
		l.hosts = map[string]*rate.Limiter{}
	}
	if l.hosts[host] == nil {
		l.hosts[host] = rate.NewLimiter(rate.Every(interval), burst)
	}
	now := time.Now()
	turn := l.hosts[host].ReserveN(now, 1)
	wait = max(turn.DelayFrom(now), l.shut[host].Sub(now))
	if end, ok := ctx.Deadline(); ok && now.Add(wait).After(end) {
		turn.CancelAt(now)
		return 0, false
	}
	return wait, true
}

// leave keeps away from host until then.
func (l *limiter) leave(host string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut == nil || len(l.shut) > maxHosts {
		l.shut = map[string]time.Time{}
	}
	l.shut[host] = until
}
