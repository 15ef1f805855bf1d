package registry

import (
	"context"
	"errors"
	"sync"
	"time"
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
	mu   sync.Mutex           // guards the following
	next map[string]time.Time // when the bucket of a host would be full again (the GCRA form of a token bucket)
	shut map[string]time.Time // until when a host asked to be left alone
}

// wait returns when host may be asked; at once with errWait if that is not before the context ends.
func (l *limiter) wait(ctx context.Context, host string) error {
	now := time.Now()
	end, ok := ctx.Deadline()
	if !ok {
		end = now.Add(time.Hour)
	}
	at, ok := l.take(host, now, end)
	if !ok {
		return errWait
	}
	if !at.After(now) {
		return ctx.Err()
	}
	t := time.NewTimer(at.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take reserves a place before end and tells when it is.
func (l *limiter) take(host string, now, end time.Time) (at time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil || len(l.next) > maxHosts {
		l.next = map[string]time.Time{}
	}
	full := l.next[host]
	if full.Before(now) {
		full = now
	}
	at = full.Add(-(burst - 1) * interval)
	if shut := l.shut[host]; shut.After(at) {
		at = shut
	}
	if at.After(end) {
		return at, false
	}
	l.next[host] = full.Add(interval)
	return at, true
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
