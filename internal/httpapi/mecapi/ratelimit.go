package mecapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of an application's changes. Applications rarely change rules. One that changes them all the time would use
// the disk and the event feed at the expense of all others.
const (
	changeBurst    = 200 // changes at once
	changeInterval = 50 * time.Millisecond
)

// changeLimits bounds how fast each application changes its rules.
type changeLimits struct {
	// mu guards apps. It is also held from a reservation to its cancellation: rate.Limiter does not return the tokens of a
	// reservation that is cancelled after a later one was made.
	mu   sync.Mutex
	apps map[string]*rate.Limiter
}

// take reports whether an application may make a change now, and otherwise how long it must wait.
func (p *changeLimits) take(app string, now time.Time) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.limiterLocked(app, now).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}

// limiterLocked returns the limiter of an application. When there are many, it deletes the limiters that have their
// whole burst again.
func (p *changeLimits) limiterLocked(app string, now time.Time) *rate.Limiter {
	if l := p.apps[app]; l != nil {
		return l
	}
	if len(p.apps) >= maxLimiters {
		for a, l := range p.apps {
			if l.TokensAt(now) >= changeBurst {
				delete(p.apps, a)
			}
		}
	}
	if p.apps == nil {
		p.apps = map[string]*rate.Limiter{}
	}
	l := rate.NewLimiter(rate.Every(changeInterval), changeBurst)
	p.apps[app] = l
	return l
}

// maxLimiters is the number of limiters above which unused ones are deleted.
const maxLimiters = 1000
