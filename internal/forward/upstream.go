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
	// probeTime is how long a probe may take. A resolver has the servers of the root at hand.
	probeTime = time.Second
	// probeEvery is the pause between probes of an upstream that does not reply.
	probeEvery = time.Second
	// downAfter is how many probes in a row must fail: one alone may have been lost on the way.
	downAfter = 2
)

// upstream is a server to ask, and what is known of its health. Only probes decide on that: a question without a reply may
// be the fault of the servers that the upstream asks itself, and clients can ask such questions on purpose.
type upstream struct {
	server resolve.Server
	down   atomic.Bool
	ctx    context.Context // of its probes
	stop   context.CancelFunc

	mu      sync.Mutex // guards the following
	probing bool
	alive   time.Time // when a probe last got a reply
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

// suspect has an upstream probed that did not reply as it should, until it does; but not for every slow name anew.
func (f *Forwarder) suspect(u *upstream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.probing || u.ctx.Err() != nil || !u.alive.IsZero() && time.Since(u.alive) < probeEvery {
		return
	}
	u.probing = true
	go f.probe(u)
}

// probe asks until there is a reply. Any will do: it is the path that is in doubt.
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

// isAlive sends a probe, by the configuration of the moment: it may be that which was wrong.
func (f *Forwarder) isAlive(u *upstream) bool {
	ctx, cancel := context.WithTimeout(u.ctx, probeTime)
	defer cancel()
	_, err := f.state.Load().exchanger.Exchange(ctx, u.server, new(dns.Msg).SetQuestion(".", dns.TypeNS))
	return err == nil
}
