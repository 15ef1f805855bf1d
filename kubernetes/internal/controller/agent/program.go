package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// programTimeout is the maximum time until a plugin gets a reply. The plugin has given up long before.
const programTimeout = 5 * time.Second

// Program implements hold.Handler. It blocks until the switch has the addresses, and they stay for the lease. It skips
// addresses that the policy refuses, and the error names one of them.
func (e *engine) Program(ctx context.Context, l hold.Learned) error {
	p, err := enforce.ParsePattern(l.Pattern, enforce.PatternOptions{Deep: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	if !e.ready() {
		if err := e.nextPass(ctx); err != nil {
			return fmt.Errorf("the agent has just started: %w", err)
		}
	}
	addrs, refused := e.admit(p, l)
	if len(addrs) == 0 {
		return refused
	}
	if err := e.open(ctx, p, addrs, l.Lease); err != nil {
		return err
	}
	return refused
}

// open blocks until the switch has the addresses.
func (e *engine) open(ctx context.Context, p enforce.Pattern, addrs []netip.Addr, lease time.Duration) error {
	started := time.Now()
	missing, mark, err := e.lease(ctx, p, addrs, started.Add(lease))
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return e.db.Confirm(ctx, mark)
	}
	e.metrics.stage("lease", started)
	e.gate.enter()
	defer e.gate.leave()
	if mark, err = e.add(ctx, p, missing); err != nil {
		return err
	}
	at := time.Now()
	if err := e.db.Confirm(ctx, mark); err != nil {
		return err
	}
	e.metrics.stage("confirm", at)
	e.metrics.programmed.Observe(time.Since(started).Seconds())
	return nil
}

// lease adds the lease. It returns the addresses that are not in their sets, and the mark of the latest write that
// added the other ones.
func (e *engine) lease(ctx context.Context, p enforce.Pattern, addrs []netip.Addr,
	until time.Time) (missing []netip.Addr, mark ovn.Mark, err error) {
	for {
		missing, mark, removed := e.tryLease(p, addrs, until)
		if removed == nil {
			return missing, mark, nil
		}
		select {
		case <-removed:
		case <-ctx.Done():
			return nil, mark, ctx.Err()
		}
	}
}

// tryLease makes one attempt. If none of the addresses is being removed, it adds the lease before a removal can start.
// Otherwise it returns a channel to wait on.
func (e *engine) tryLease(p enforce.Pattern, addrs []netip.Addr, until time.Time) (missing []netip.Addr, mark ovn.Mark,
	removed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return e.removing[setMember{p, a}] }) {
		return nil, mark, e.removed
	}
	e.leaseTable.lease(p, addrs, until)
	if !e.used[p] {
		return nil, mark, nil // no programmed rule uses the name
	}
	for _, a := range addrs {
		if e.input.InCluster(a) || a.Is4() && !e.input.V4 || a.Is6() && !e.input.V6 {
			continue
		}
		was, ok := e.programmed[p][a]
		if !ok || !e.db.Current(was.mark) {
			missing = append(missing, a)
		} else if was.mark.Cfg > mark.Cfg {
			mark = was.mark
		}
	}
	return missing, mark, nil
}

func (e *engine) ready() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.done > 0
}

// add is the short path. If a set is missing, it waits for a pass, which has the lease by then.
func (e *engine) add(ctx context.Context, p enforce.Pattern, addrs []netip.Addr) (ovn.Mark, error) {
	sets := map[string][]string{}
	for _, a := range addrs {
		name := ovn.SetName(p, a)
		sets[name] = append(sets[name], a.String())
	}
	done := make(chan result, 1)
	select {
	case e.program <- request{sets, time.Now(), done}:
	case <-ctx.Done():
		return ovn.Mark{}, ctx.Err()
	}
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		return ovn.Mark{}, ctx.Err()
	}
	if errors.Is(r.err, ovn.ErrNoSet) {
		// Only a pass creates sets, together with the ACLs that refer to them.
		e.gate.leave() // let the pass run
		r.err = e.nextPass(ctx)
		e.gate.enter()
		if r.mark = e.last(); r.mark == (ovn.Mark{}) && r.err == nil {
			r.err = errUnsure
		}
	}
	if r.err != nil {
		return ovn.Mark{}, r.err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.used[p] {
		return r.mark, nil // the rule and its set were removed meanwhile
	}
	programmed := e.programmed[p]
	if programmed == nil {
		programmed = map[netip.Addr]presence{}
		e.programmed[p] = programmed
	}
	for _, a := range addrs {
		was, ok := programmed[a]
		if !ok || !e.db.Current(was.mark) {
			// The age is for people: explain shows since when the switch has the address.
			was.since = time.Now()
		}
		// A pass may have seen the address in the database before this write returned, and stored an earlier mark.
		if was.mark.Epoch != r.mark.Epoch || was.mark.Cfg < r.mark.Cfg {
			was.mark = r.mark
		}
		programmed[a] = was
	}
	return r.mark, nil
}

// request is an addition in the queue.
type request struct {
	sets map[string][]string
	came time.Time
	done chan<- result // has capacity one
}

type result struct {
	mark ovn.Mark
	err  error
}

// additions performs requests. All requests that arrive during a write are combined in the next one.
func (e *engine) additions(ctx context.Context) error {
	for {
		var batch []request
		select {
		case <-ctx.Done():
			return nil
		case r := <-e.program:
			batch = append(batch, r)
		}
		// Each transaction has a fixed cost in every part of OVN, so take all requests that wait.
		for len(e.program) > 0 {
			batch = append(batch, <-e.program)
		}
		sets := map[string][]string{}
		for _, r := range batch {
			for name, addrs := range r.sets {
				sets[name] = append(sets[name], addrs...)
			}
		}
		for name, addrs := range sets {
			// Two plugins often learn the same address at the same time, and a set must not contain it twice.
			slices.Sort(addrs)
			sets[name] = slices.Compact(addrs)
		}
		for _, r := range batch {
			e.metrics.stage("turn", r.came)
		}
		begun := time.Now()
		// Without a limit, one hanging write would block every later answer of CoreDNS.
		xctx, cancel := context.WithTimeout(ctx, programTimeout)
		mark, err := e.db.Extend(xctx, sets)
		cancel()
		if err == nil {
			e.metrics.stage("write", begun)
			e.note(mark)
		}
		for _, r := range batch {
			r.done <- result{mark, err}
		}
	}
}

// Explain implements hold.Handler.
func (e *engine) Explain(ctx context.Context, pattern string, addr netip.Addr) (hold.Explanation, error) {
	out := hold.Explanation{Node: e.node}
	p, err := enforce.ParsePattern(pattern, enforce.PatternOptions{Deep: true})
	if err != nil {
		return out, err
	}
	e.mu.Lock()
	was, ok := e.programmed[p][addr]
	out.Lease = max(0, time.Until(e.leaseTable.until(p, addr)))
	e.mu.Unlock()
	if !ok {
		return out, nil
	}
	// explain asks many agents one after the other. A switch that does not confirm within a second counts as not
	// programmed.
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	out.Programmed = e.db.Confirm(short, was.mark) == nil
	out.Age = time.Since(was.since)
	return out, nil
}
