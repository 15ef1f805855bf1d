package mec

import (
	"sync"
	"time"
)

// Pace of an application's changes. Switching rules is rare; who does it all day long would fill the disk's time and the feed of
// events for everybody else.
const (
	paceBurst = 200 // changes at once
	pacePause = 50 * time.Millisecond
)

// pace bounds how fast each application changes its rules. An application owes time for each change, and may be in debt for
// a burst of them.
type pace struct {
	mu   sync.Mutex // guards debt
	debt map[string]time.Time
}

// take reports whether an application may make a change now, and if not, in how long.
func (p *pace) take(app string, now time.Time) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	paid := p.debt[app]
	if paid.Before(now) {
		paid = now
	}
	if paid = paid.Add(pacePause); paid.Sub(now) > paceBurst*pacePause {
		return paid.Sub(now) - paceBurst*pacePause, false
	}
	if p.debt == nil {
		p.debt = map[string]time.Time{}
	}
	p.debt[app] = paid
	if len(p.debt) > maxPaced {
		for a, at := range p.debt {
			if at.Before(now) {
				delete(p.debt, a)
			}
		}
	}
	return 0, true
}

// maxPaced is how many applications are remembered before those that owe nothing are forgotten.
const maxPaced = 1000
