package follow

import (
	"context"
	"sync"
	"time"
)

// limiter lets at most len(sent) queries go in any second. It keeps the times of the last ones instead of a bucket of
// tokens (golang.org/x/time/rate). A full bucket of the size of the rate lets twice the rate go in the first second. A
// small bucket holds up the questions of one lookup: with a bucket of two and 100 queries per second, A and AAAA behind one
// CNAME came 20 ms later, and still 41 of 40 queries went in one second.
type limiter struct {
	mu   sync.Mutex  // guards the following
	sent []time.Time // a ring; when each of the last queries goes
	next int         // the oldest of them
}

func newLimiter(perSecond int) *limiter { return &limiter{sent: make([]time.Time, perSecond)} }

// reserve is the moment at which one more query may go.
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

// wait returns when one more query may go, and reports whether it was held up. A caller who gives up has used its turn.
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
