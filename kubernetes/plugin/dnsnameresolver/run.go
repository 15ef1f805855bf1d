package dnsnameresolver

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/match"
)

const (
	writers    = 8 // at most one of them for an object
	recallers  = 8
	recallTimeout = 5 * time.Second
	shutdownTimeout = time.Second // when we end
	minRetry   = 20 * time.Millisecond
	maxRetry   = 5 * time.Second
	maxRetries = 8
	// After a write an object rests for a multiple of what that took: an API server that is slow, because it has much to do or
	// the object is large, gets fewer and larger writes. What comes meanwhile is never older than maxRest when it is written,
	// unless the writes themselves take longer.
	pauseFactor, maxPause = 5, 500 * time.Millisecond
	// One with many entries rests longer while all agents hear of it before it is written: each write of it is read as a whole by every node.
	manyEntries, pausePerEntry, maxEntriesPause = 100, 8 * time.Millisecond, 2 * time.Second
	rebuildPause                     = 10 * time.Millisecond // after a rebuild, or three times as long as that took
)

// start runs all of the engine and waits for the first list of objects, but not for ever: DNS must come up without the API.
func (e *engine) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	e.store.record(ctx)
	namespaces := e.opts.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var synced []cache.InformerSynced
	for _, ns := range namespaces {
		c := e.store.informer(ns, e)
		synced = append(synced, c.HasSynced)
		e.running.Go(func() { c.RunWithContext(ctx) })
	}
	every := func(period time.Duration, f func()) {
		e.running.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { f() }, period) })
	}
	every(time.Second, func() { e.recent.now.Store(time.Now().Unix()) })
	every(sweepEvery, func() { e.sweep(e.store.clock.now()) })
	for range writers {
		e.writers.Go(func() { e.write(ctx) })
	}
	if e.hold != nil {
		e.running.Go(func() { _ = e.hold.Run(ctx) })
		every(time.Second, func() { countAgents(e.hold.Agents()) })
	}
	if e.opts.service.name != "" {
		c := e.agentInformer()
		synced = append(synced, c.HasSynced)
		e.running.Go(func() { c.RunWithContext(ctx) })
	}
	for _, s := range e.sources() {
		synced = append(synced, e.watchNetworks(ctx, s))
	}
	wctx, done := context.WithTimeout(ctx, syncWait)
	defer done()
	if !cache.WaitForCacheSync(wctx.Done(), synced...) {
		e.log.Warning("starting without having seen all DNSNameResolvers, agents and networks of the cluster: the Kubernetes API did not answer in time")
	}
	e.cluster.rebuild()
	e.running.Go(func() { e.cluster.follow(ctx) })
	e.rebuild() // before the first question, which must not pass as one of no rule
	e.running.Go(func() { e.follow(ctx) })
	return nil
}

// shutdown ends all that start began. What was learned and is not written yet is written first, if that is soon: clients use it, and who
// starts in our place, as after a change of the Corefile, does not know it.
func (e *engine) shutdown() error {
	e.ending.Store(true)
	for _, o := range e.unwritten() {
		e.queue.Add(o)
	}
	e.queue.ShutDown() // what is in it is still handed out
	if e.stop != nil {
		timer := time.AfterFunc(shutdownTimeout, e.stop)
		e.writers.Wait()
		timer.Stop()
		e.stop()
	}
	e.running.Wait()
	return nil
}

// unwritten are the objects that have something to be written.
func (e *engine) unwritten() []*object {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*object
	for _, o := range e.objects {
		if o.unwritten() {
			out = append(out, o)
		}
	}
	return out
}

// follow keeps the tree true to the objects.
func (e *engine) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.changed:
		}
		began := time.Now()
		if fresh := e.rebuild(); len(fresh) > 0 {
			e.running.Go(func() { e.recall(ctx, fresh) })
		}
		sleep(ctx, max(rebuildPause, min(3*time.Since(began), time.Second)))
	}
}

// recall asks again for names that were asked for shortly before there was an object for them.
func (e *engine) recall(ctx context.Context, fresh []*object) {
	tree := &match.Tree[*object]{}
	for _, o := range fresh {
		tree.Add(o.pattern, o)
	}
	for _, q := range e.recent.all() {
		objects := tree.Append(nil, q.name)
		if len(objects) == 0 {
			continue
		}
		for _, t := range q.types {
			select {
			case e.recalls <- struct{}{}:
			case <-ctx.Done():
				return
			}
			recalled.Inc()
			e.running.Go(func() {
				defer func() { <-e.recalls }()
				actx, cancel := context.WithTimeout(ctx, recallTimeout)
				defer cancel()
				q.from.resolveAgain(actx, objects, q.name, t, q.client)
			})
		}
	}
}

// write is one writer.
func (e *engine) write(ctx context.Context) {
	for {
		o, stopped := e.queue.Get()
		if stopped {
			return
		}
		after := e.writeOne(ctx, o)
		e.queue.Done(o)
		if after > 0 && ctx.Err() == nil {
			e.queue.AddAfter(o, after)
		}
	}
}

// writeOne writes what an object has to be written, and returns after how long to look at it again; zero: not by itself.
func (e *engine) writeOne(ctx context.Context, o *object) time.Duration {
	if delay := o.writeDelay(); delay > 0 && !e.ending.Load() {
		return delay
	}
	w := o.begin(e.rules, e.store.clock.now())
	if w == nil {
		return 0
	}
	if len(w.omitted) > 0 {
		leasedOnly.Add(float64(len(w.omitted)))
		if o.warnFull(e.store.clock.now()) {
			e.warn(o, "NoRoom", "the status has no room for more; addresses of %s and others are allowed for as long as their leases last", w.omitted[0])
		}
	}
	if len(w.ops) > 0 {
		began := time.Now()
		got, err := e.store.write(ctx, o.key, w)
		if err != nil {
			after := e.failed(ctx, o, w, err, time.Since(began))
			o.delayWrites(after) // new lessons are no reason to try earlier
			return after
		}
		if e.opts.wait != waitStatus {
			delay := pauseAfter(time.Since(began))
			if e.allAgentsConnected() {
				delay = max(delay, pauseForEntries(len(w.want)))
			}
			o.delayWrites(delay)
		}
		writes.WithLabelValues("ok").Inc()
		o.done(w, got, e.rules, e.store.clock.now())
	}
	if due := o.nextDue(); !due.IsZero() {
		return max(due.Sub(e.store.clock.now()), time.Millisecond)
	}
	return 0
}

// restOf is how long an object rests after a write that took so long.
func pauseAfter(took time.Duration) time.Duration { return min(pauseFactor*took, max(maxPause, took)) }

// agentsHear reports whether there are agents, and all of them are told what is learned. One that is not has nothing but the status.
func (e *engine) allAgentsConnected() bool {
	if e.hold == nil {
		return false
	}
	agents := e.hold.Agents()
	return len(agents) > 0 && !slices.ContainsFunc(agents, func(a hold.AgentState) bool { return !a.Connected || a.Broken })
}

// restOfMany is how long an object with so many entries rests at least.
func pauseForEntries(entries int) time.Duration {
	return min(time.Duration(max(entries-manyEntries, 0))*pausePerEntry, maxEntriesPause)
}

// failed decides what follows a write that failed. What it carried is kept, and tried again for as long as clients may use an
// address of it. A failure that is to be counted is about no such address, and is given up after some attempts.
func (e *engine) failed(ctx context.Context, o *object, w *write, err error, took time.Duration) time.Duration {
	o.undo(w, e.store.clock.now())
	if ctx.Err() != nil {
		return 0 // it is we who end
	}
	o.mu.Lock()
	o.failed++
	n := o.failed
	o.mu.Unlock()
	backoff := min(minRetry<<min(n-1, 10), maxRetry)
	switch {
	case apierrors.IsNotFound(err):
		return backoff // the watch will tell
	case apierrors.IsForbidden(err):
		// The other way next time, and not for good: an API server that has just started refuses everything until it knows
		// its roles.
		put := !e.store.putOnly.Load()
		e.store.putOnly.Store(put)
		if put && n <= 2 {
			e.log.Warningf("patches of the status are forbidden, so it is replaced as a whole: %v", err)
			backoff = time.Millisecond
		}
	case apierrors.IsConflict(err), apierrors.IsInvalid(err), isUnprocessable(err):
		writes.WithLabelValues("lost").Inc()
		e.reread(ctx, o, w, err)
		backoff = min(backoff, 500*time.Millisecond)
		if n > 1 || took > maxPause {
			// Who was first may be about to write more of what is ours too: as long as writes take, that is seen first.
			backoff = max(backoff, min(pauseAfter(took), 2*time.Second))
		}
	default:
		writes.WithLabelValues("error").Inc()
		backoff = max(backoff, pauseAfter(took)) // a server that answers late, or not at all, has too much to do
		if n == 1 || n%20 == 0 {
			e.log.Warningf("%s: the status could not be written, and will be tried again: %v", o.key, err)
		}
	}
	if n > maxRetries && !o.alive(e.store.clock.now()) {
		return 0
	}
	return backoff/2 + rand.N(backoff/2+1)
}

// reread gets the newest state after a write was refused. If there is none, nobody was first, and it is the tests that the API server does not
// take; one that refuses again and again what stands in a write refuses a name in it: the definition may be the stock one, which takes plain
// names only.
func (e *engine) reread(ctx context.Context, o *object, w *write, err error) {
	known := o.newest()
	if live, gerr := e.store.get(ctx, o.key); gerr == nil && live.UID == known.UID { // another one is for the watch to tell of
		o.set(live, older(live.ResourceVersion, known.ResourceVersion), e.store.clock.now())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	invalid := apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid)
	if apierrors.IsConflict(err) || !invalid && o.live.ResourceVersion != w.live.ResourceVersion {
		return
	}
	if o.refused++; o.refused > 4 && invalid {
		o.hostnamesOnly = true
	}
}

// isUnprocessable reports whether an operation of a patch did not apply; the API server has no reason of its own for that.
func isUnprocessable(err error) bool {
	var s apierrors.APIStatus
	return errors.As(err, &s) && s.Status().Code == 422
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// slogTo is a logger that writes to CoreDNS's.
func slogTo(p clog.P) *slog.Logger { return slog.New(slogHandler{log: p}) }

// slogHandler is a slog.Handler on CoreDNS's log.
type slogHandler struct {
	log   clog.P
	attrs []slog.Attr
}

// Enabled is part of slog.Handler.
func (h slogHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle is part of slog.Handler.
func (h slogHandler) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	add := func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	if r.Level >= slog.LevelWarn {
		h.log.Warning(text)
	} else {
		h.log.Info(text)
	}
	return nil
}

// WithAttrs is part of slog.Handler.
func (h slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slogHandler{h.log, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup is part of slog.Handler; groups are not used.
func (h slogHandler) WithGroup(string) slog.Handler { return h }
