package forward

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

const (
	// probeTime is the timeout of a probe. A resolver has the name servers of the root in its cache.
	probeTime = time.Second
	// probeEvery is the time between probes of an upstream that does not reply.
	probeEvery = time.Second
	// downAfter is how many probes in a row must fail: a single one may have been lost.
	downAfter = 2
)

// upstream is a server and its health. Only probes decide about its health. A question without a reply may be the fault
// of the servers that the upstream queries, and clients can send such questions on purpose.
type upstream struct {
	server resolve.Server
	down   atomic.Bool
	ctx    context.Context // context of its probes
	stop   context.CancelFunc

	mu      sync.Mutex // guards the following
	probing bool
	alive   time.Time // time of the last reply to a probe
}

func newUpstream(ctx context.Context, server resolve.Server) *upstream {
	u := &upstream{server: server}
	u.ctx, u.stop = context.WithCancel(ctx)
	return u
}

// order returns the upstreams that are up, in their order.
func (s *state) order() []*upstream {
	return slices.DeleteFunc(slices.Clone(s.upstreams), func(u *upstream) bool { return u.down.Load() })
}

// suspect starts probes of an upstream that did not reply properly, until it replies. It does nothing if a probe got a
// reply within probeEvery, so that slow names do not each cause a probe.
func (f *Forwarder) suspect(u *upstream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.probing || u.ctx.Err() != nil || !u.alive.IsZero() && time.Since(u.alive) < probeEvery {
		return
	}
	u.probing = true
	go f.probe(u)
}

// probe sends probes until there is a reply. Any reply counts, because only reachability is in doubt.
func (f *Forwarder) probe(u *upstream) {
	pause := time.NewTicker(probeEvery)
	defer pause.Stop()
	for fails := 0; !f.isAlive(u); {
		if fails++; fails == downAfter && u.ctx.Err() == nil {
			u.down.Store(true)
			f.state.Load().cfg.Log.Warn("upstream is down", "upstream", u.server.String())
		}
		select {
		case <-pause.C:
		case <-u.ctx.Done():
			return
		}
	}
	u.mu.Lock()
	u.probing, u.alive = false, time.Now()
	u.mu.Unlock()
	if u.down.CompareAndSwap(true, false) {
		f.state.Load().cfg.Log.Info("upstream is up again", "upstream", u.server.String())
	}
}

// isAlive sends a probe with the current configuration: the earlier configuration may have been wrong.
func (f *Forwarder) isAlive(u *upstream) bool {
	ctx, cancel := context.WithTimeout(u.ctx, probeTime)
	defer cancel()
	_, err := f.state.Load().exchanger.Exchange(ctx, u.server, new(dns.Msg).SetQuestion(".", dns.TypeNS))
	return err == nil
}
