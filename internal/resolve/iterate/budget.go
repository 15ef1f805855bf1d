package iterate

import (
	"errors"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/resolve"
)

// admit waits until a server may be asked. A server is given up between questions only, so that what a trace has of a question
// does not depend on others that were asked at the same time.
func (r *run) admit(server netip.Addr, first bool) error {
	if first && r.hopeless(server) {
		return errHopeless
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

// reached notes a limit that kept the walk from being complete.
func (r *run) reached(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[limit] = true
}

func (r *run) timeUp() error {
	r.reached(r.opts.MaxTime.String())
	return resolve.ErrBudget
}

// waste notes that a server was waited for in vain; a reply makes good for it.
func (r *run) waste(server netip.Addr, c Class, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Transport() {
		r.wasted[server] += d
		return
	}
	delete(r.wasted, server)
}

// hopeless reports whether a server was waited for as long as all tries of a question take, without any reply.
func (r *run) hopeless(server netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := time.Duration(0)
	for _, d := range r.opts.Timeouts {
		all += d
	}
	return r.wasted[server] >= all
}
