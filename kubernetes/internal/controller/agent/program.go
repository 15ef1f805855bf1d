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

// programTime is the longest a plugin is left without an answer. Its reply has long gone by then.
const programTime = 5 * time.Second

// Program is hold.Handler's: it returns when the switch has the addresses, and they stay for the lease. Addresses that the
// policy refuses are left out, and the error names one of them.
func (e *engine) Program(ctx context.Context, l hold.Learned) error {
	p, err := enforce.ParsePattern(l.Pattern, enforce.PatternOptions{Deep: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, programTime)
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

// open returns when the switch has the addresses.
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
	e.way.enter()
	defer e.way.leave()
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

// lease notes the lease, and tells which of the addresses are not in their sets, and which write brought the last of the others there.
func (e *engine) lease(ctx context.Context, p enforce.Pattern, addrs []netip.Addr, until time.Time) (missing []netip.Addr, mark ovn.Mark, err error) {
	for {
		missing, mark, left := e.tryLease(p, addrs, until)
		if left == nil {
			return missing, mark, nil
		}
		select {
		case <-left:
		case <-ctx.Done():
			return nil, mark, ctx.Err()
		}
	}
}

// tryLease is one look: either none of the addresses is being taken away, and the lease is noted before one can be, or there is a
// channel to wait on.
func (e *engine) tryLease(p enforce.Pattern, addrs []netip.Addr, until time.Time) (missing []netip.Addr, mark ovn.Mark, left <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return e.leaving[place{p, a}] }) {
		return nil, mark, e.left
	}
	e.book.lease(p, addrs, until)
	if !e.used[p] {
		return nil, mark, nil // no rule here has the name, or none that is programmed
	}
	for _, a := range addrs {
		if e.world.InCluster(a) || a.Is4() && !e.world.V4 || a.Is6() && !e.world.V6 {
			continue
		}
		was, ok := e.there[p][a]
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

// add is the short way. A set that is not there is left to a pass, which knows the lease by now.
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
		e.way.leave() // for the pass
		r.err = e.nextPass(ctx)
		e.way.enter()
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
		return r.mark, nil // its rule went meanwhile, and its set with it
	}
	there := e.there[p]
	if there == nil {
		there = map[netip.Addr]presence{}
		e.there[p] = there
	}
	for _, a := range addrs {
		was, ok := there[a]
		if !ok || !e.db.Current(was.mark) {
			was.since = time.Now()
		}
		// A pass may have seen it in the database before we heard that we wrote it, and taken an earlier write for the one.
		if was.mark.Epoch != r.mark.Epoch || was.mark.Cfg < r.mark.Cfg {
			was.mark = r.mark
		}
		there[a] = was
	}
	return r.mark, nil
}

// request is an addition that waits for its turn.
type request struct {
	sets map[string][]string
	came time.Time
	done chan<- result // of one element
}

type result struct {
	mark ovn.Mark
	err  error
}

// additions does requests, all that came during one write with the next one.
func (e *engine) additions(ctx context.Context) error {
	for {
		var batch []request
		select {
		case <-ctx.Done():
			return nil
		case r := <-e.program:
			batch = append(batch, r)
		}
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
			slices.Sort(addrs)
			sets[name] = slices.Compact(addrs)
		}
		for _, r := range batch {
			e.metrics.stage("turn", r.came)
		}
		begun := time.Now()
		xctx, cancel := context.WithTimeout(ctx, programTime)
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

// Explain is hold.Handler's.
func (e *engine) Explain(ctx context.Context, pattern string, addr netip.Addr) (hold.Explanation, error) {
	out := hold.Explanation{Node: e.node}
	p, err := enforce.ParsePattern(pattern, enforce.PatternOptions{Deep: true})
	if err != nil {
		return out, err
	}
	e.mu.Lock()
	was, ok := e.there[p][addr]
	out.Lease = max(0, time.Until(e.book.until(p, addr)))
	e.mu.Unlock()
	if !ok {
		return out, nil
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	out.Programmed = e.db.Confirm(short, was.mark) == nil
	out.Age = time.Since(was.since)
	return out, nil
}
