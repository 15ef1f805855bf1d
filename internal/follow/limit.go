package follow

import (
	"context"
	"sync"
	"time"
)

// limiter allows at most len(sent) queries in any second. It keeps the times of the last queries instead of a token
// bucket (golang.org/x/time/rate). A full bucket of the size of the rate allows twice the rate in the first second. A
// small bucket delays the queries of one lookup. With a bucket of two and 100 queries per second, A and AAAA after one
// CNAME came 20 ms later. And with a limit of 40, still 41 queries were sent in one second.
type limiter struct {
	mu   sync.Mutex  // guards the following
	sent []time.Time // ring buffer of the send times of the last queries
	next int         // index of the oldest
}

func newLimiter(perSecond int) *limiter { return &limiter{sent: make([]time.Time, perSecond)} }

// reserve returns the time at which one more query may be sent, and counts that query.
func (l *limiter) reserve(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now
	if free := l.sent[l.next].Add(time.Second); free.After(now) {
		at = free
	}
	l.sent[l.next] = at
	l.next = (l.next + 1) % len(l.sent)
	return at
}

// wait blocks until one more query may be sent, and reports whether it had to wait. A caller that gives up has used its
// slot.
func (l *limiter) wait(ctx context.Context) (bool, error) {
	now := time.Now()
	d := l.reserve(now).Sub(now)
	if d <= 0 {
		return false, ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}
