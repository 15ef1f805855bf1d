package gather

import (
	"context"
	"fmt"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// unusedTimeout is long enough for an interceptor: it is close, in the local network or at the provider.
const unusedTimeout = time.Second

// askUnused queries an address at which there is no server, in the background. A reply from there proves that a device
// on the network path answers in the name of others. Replies of real servers would not show it: an interceptor may
// forward most of them unchanged.
func (r *run) askUnused() {
	a := r.opts.Unused
	if !a.IsValid() || !r.family(a) {
		return
	}
	by := r.UnusedExchanger
	if by == nil {
		by = r.Exchanger
	}
	budget := r.budget // steps that run meanwhile may replace it
	r.background.Go(func() {
		if budget.Acquire(r.ctx, a) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, unusedTimeout)
		defer cancel()
		e := iterate.Ask(ctx, by, r.facts.At, newQuery(dnsname.Root, a, dnsname.Root, rr.TypeNS))
		budget.Release()
		e.Try = 1
		// The run was stopped before the timeout: a reply could still have come.
		if e.Class.Transport() && r.ctx.Err() != nil {
			e.Class = iterate.Unknown
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unusedExchange = &e
	})
}

// intercepted records whether a reply came from the unused address. It is called after all queries have ended.
func (r *run) intercepted() {
	if r.unusedExchange == nil {
		return
	}
	probe := explain.Probe{Fact: explain.No, Evidence: []int{r.addExchange(*r.unusedExchange)}}
	switch _, err := r.unusedExchange.View(); {
	case err == nil:
		probe.Fact, probe.Detail = explain.Yes, fmt.Sprintf("a reply came from %s, where there is no server",
			r.unusedExchange.Server)
	case r.unusedExchange.Class == iterate.Unknown:
		probe.Fact = explain.Unknown
	}
	r.facts.Vantage.Intercepted = probe
}
