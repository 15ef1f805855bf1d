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

// strayTime is long enough for somebody on the way, who is near.
const strayTime = time.Second

// stray asks an address at which there is no server, while other things are done.
func (r *run) stray() {
	a := r.opts.Unused
	if !a.IsValid() || !r.family(a) {
		return
	}
	by := r.Stray
	if by == nil {
		by = r.Exchanger
	}
	r.working.Go(func() {
		if r.budget.Acquire(r.ctx, a) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, strayTime)
		defer cancel()
		e := iterate.Ask(ctx, by, r.facts.At, to(dnsname.Root, a, dnsname.Root, rr.TypeNS))
		r.budget.Release()
		e.Try = 1
		if e.Class.Transport() && r.ctx.Err() != nil {
			e.Class = iterate.Unknown
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.strayed = &e
	})
}

// intercepted is whether there was a reply from where there is no server. It is called when nothing is being asked any more.
func (r *run) intercepted() {
	if r.strayed == nil {
		return
	}
	probe := explain.Probe{Fact: explain.No, Evidence: []int{r.record(*r.strayed)}}
	switch _, err := r.strayed.View(); {
	case err == nil:
		probe.Fact, probe.Detail = explain.Yes, fmt.Sprintf("a reply came from %s, where there is no server", r.strayed.Server)
	case r.strayed.Class == iterate.Unknown:
		probe.Fact = explain.Unknown
	}
	r.facts.Vantage.Intercepted = probe
}
