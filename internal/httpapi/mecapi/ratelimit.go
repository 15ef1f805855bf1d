package mecapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of an application's changes. Switching rules is rare; an application that does it all day long would fill the
// disk's time and the feed of events for everybody else.
const (
	paceBurst = 200 // changes at once
	pacePause = 50 * time.Millisecond
)

// pace bounds how fast each application changes its rules.
type pace struct {
	// mu guards apps, and the time between a reservation and its end: one that is cancelled after a later one was made
	// is not given back.
	mu   sync.Mutex
	apps map[string]*rate.Limiter
}

// take reports whether an application may make a change now, and if not, in how long.
func (p *pace) take(app string, now time.Time) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.limiterLocked(app, now).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}

// limiterLocked returns the limiter of an application. Those that have their whole burst again are forgotten when there are
// many.
func (p *pace) limiterLocked(app string, now time.Time) *rate.Limiter {
	if l := p.apps[app]; l != nil {
		return l
	}
	if len(p.apps) >= maxPaced {
		for a, l := range p.apps {
			if l.TokensAt(now) >= paceBurst {
				delete(p.apps, a)
			}
		}
	}
	if p.apps == nil {
		p.apps = map[string]*rate.Limiter{}
	}
	l := rate.NewLimiter(rate.Every(pacePause), paceBurst)
	p.apps[app] = l
	return l
}

// maxPaced is how many applications are remembered before those that made no change lately are forgotten.
const maxPaced = 1000
