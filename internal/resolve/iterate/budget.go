package iterate

import (
	"errors"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/resolve"
)

// admit blocks until a query may be sent to a server. A server is given up only before the first query of a question.
// So the exchanges of a question do not depend on other questions sent at the same time.
func (r *run) admit(server netip.Addr, first bool) error {
	if first && r.unresponsive(server) {
		return errUnresponsive
	}
	switch err := r.opts.Budget.Acquire(r.ctx, server); {
	case err == nil:
		return nil
	case errors.Is(err, resolve.ErrBudget):
		r.reached(r.opts.Budget.String())
		return err
	}
	return r.timeUp()
}

// reached records a limit that kept the walk from being complete.
func (r *run) reached(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[limit] = true
}

// timeUp records that the walk ran out of time, and returns the error for it.
func (r *run) timeUp() error {
	r.reached(r.opts.MaxTime.String())
	return resolve.ErrBudget
}

// countWait adds up the time without a reply from a server. Any reply resets it.
func (r *run) countWait(server netip.Addr, c Class, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Transport() {
		r.waited[server] += d
		return
	}
	delete(r.waited, server)
}

// unresponsive reports whether the time without any reply is as long as all tries of a question together.
func (r *run) unresponsive(server netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := time.Duration(0)
	for _, d := range r.opts.Timeouts {
		all += d
	}
	return r.waited[server] >= all
}
