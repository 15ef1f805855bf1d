package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/controller/agent"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
)

// asker queries agents about addresses of names. An agent that does not answer is not queried again: it would use the
// time that others need.
type asker struct {
	agents []string
	limit  time.Duration // timeout of one query
	ask    func(ctx context.Context, endpoint, pattern string, addr netip.Addr) (hold.Explanation, error)

	mu   sync.Mutex        // guards gone
	gone map[string]string // agents that did not answer, with the error
}

// all queries all agents at once.
func (a *asker) all(ctx context.Context, p enforce.Pattern, addr netip.Addr) []agent.NodeState {
	out := make([]agent.NodeState, len(a.agents))
	var wg sync.WaitGroup
	for i, endpoint := range a.agents {
		wg.Go(func() { out[i] = a.one(ctx, endpoint, p, addr) })
	}
	wg.Wait()
	return out
}

// one queries one agent. Queries about several addresses may run at the same time, so two of them can wait for the
// same silent agent; each waits at most for limit.
func (a *asker) one(ctx context.Context, endpoint string, p enforce.Pattern, addr netip.Addr) agent.NodeState {
	out := agent.NodeState{Agent: endpoint}
	a.mu.Lock()
	out.Error = a.gone[endpoint]
	a.mu.Unlock()
	if out.Error != "" {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	e, err := a.ask(ctx, endpoint, p.String(), addr)
	if err != nil {
		// The error of a connection that the timeout has closed names a network operation. The timeout is the real
		// reason.
		if out.Error = err.Error(); ctx.Err() != nil {
			out.Error = fmt.Sprintf("no answer within %v", a.limit)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.gone[endpoint] = out.Error
		return out
	}
	out.Node, out.Programmed, out.Age, out.Lease = e.Node, e.Programmed, e.Age, e.Lease
	return out
}
