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
	writers         = 8 // at most one of them writes an object at a time
	recallers       = 8
	recallTimeout   = 5 * time.Second
	shutdownTimeout = time.Second // maximum time for the writes at shutdown
	minRetry        = 20 * time.Millisecond
	maxRetry        = 5 * time.Second
	maxRetries      = 8
	// After a write, an object pauses for a multiple of the duration of that write. A slow API server, or one with a large
	// object, thus gets fewer and larger writes. An observation waits at most maxPause, unless the writes themselves take
	// longer.
	pauseFactor, maxPause = 5, 500 * time.Millisecond
	// An object with many entries pauses longer if all agents receive the addresses before the write: every node reads
	// each write as a whole.
	manyEntries, pausePerEntry, maxEntriesPause = 100, 8 * time.Millisecond, 2 * time.Second
	// pause after a rebuild; at least three times its duration
	rebuildPause = 10 * time.Millisecond
)

// start starts the engine and waits for the first list of objects, for at most syncWait: DNS must start without the
// API.
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
		e.log.Warning("starting without the full lists of DNSNameResolvers, agents and networks of the cluster: the " +
			"Kubernetes API did not answer in time")
	}
	e.cluster.rebuild()
	e.running.Go(func() { e.cluster.follow(ctx) })
	e.rebuild() // before the first query, which must not pass as one without a rule
	e.running.Go(func() { e.follow(ctx) })
	return nil
}

// shutdown stops the engine. It first writes the observations that are not stored yet, within shutdownTimeout: clients
// use those addresses, and a successor, as after a reload of the Corefile, does not know them.
func (e *engine) shutdown() error {
	e.ending.Store(true)
	for _, o := range e.unwritten() {
		e.queue.Add(o)
	}
	e.queue.ShutDown() // the queue still returns its remaining items
	if e.stop != nil {
		timer := time.AfterFunc(shutdownTimeout, e.stop)
		e.writers.Wait()
		timer.Stop()
		e.stop()
	}
	e.running.Wait()
	return nil
}

// unwritten returns the objects that have anything to write.
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

// follow rebuilds the tree when the objects change.
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

// recall repeats queries for names that clients queried shortly before an object for them appeared.
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

// write is the loop of one writer.
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

// writeOne writes the pending changes of an object. It returns the delay until the object must be processed again, or
// zero.
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
			e.warn(o, "NoRoom", "the status is full; "+
				"addresses of %s and of other names are allowed only while their leases last", w.omitted[0])
		}
	}
	if len(w.ops) > 0 {
		began := time.Now()
		got, err := e.store.write(ctx, o.key, w)
		if err != nil {
			after := e.failed(ctx, o, w, err, time.Since(began))
			o.delayWrites(after) // new observations are not a reason to retry earlier
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

// pauseAfter returns the pause after a write with the given duration.
func pauseAfter(took time.Duration) time.Duration { return min(pauseFactor*took, max(maxPause, took)) }

// allAgentsConnected reports whether there are agents and all of them receive observations. A disconnected agent has
// only the status.
func (e *engine) allAgentsConnected() bool {
	if e.hold == nil {
		return false
	}
	agents := e.hold.Agents()
	return len(agents) > 0 && !slices.ContainsFunc(agents,
		func(a hold.AgentState) bool { return !a.Connected || a.Broken })
}

// pauseForEntries returns the minimum pause of an object with the given number of entries.
func pauseForEntries(entries int) time.Duration {
	return min(time.Duration(max(entries-manyEntries, 0))*pausePerEntry, maxEntriesPause)
}

// failed handles a failed write and returns the delay until the retry. The pending changes are kept, and retried while
// clients may use one of the addresses. The count of a failed lookup is about no such address: it is given up after
// maxRetries attempts.
func (e *engine) failed(ctx context.Context, o *object, w *write, err error, took time.Duration) time.Duration {
	o.undo(w, e.store.clock.now())
	if ctx.Err() != nil {
		return 0 // the engine is stopping
	}
	o.mu.Lock()
	o.failed++
	n := o.failed
	o.mu.Unlock()
	backoff := min(minRetry<<min(n-1, 10), maxRetry)
	switch {
	case apierrors.IsNotFound(err):
		return backoff // the watch will report the deletion
	case apierrors.IsForbidden(err):
		// Use the other method next time, but not permanently: an API server that has just started forbids everything until
		// it has loaded its roles.
		put := !e.store.putOnly.Load()
		e.store.putOnly.Store(put)
		if put && n <= 2 {
			e.log.Warningf("patching the status is forbidden, so it is replaced as a whole: %v", err)
			backoff = time.Millisecond
		}
	case apierrors.IsConflict(err), apierrors.IsInvalid(err), isUnprocessable(err):
		writes.WithLabelValues("lost").Inc()
		e.reread(ctx, o, w, err)
		backoff = min(backoff, 500*time.Millisecond)
		if n > 1 || took > maxPause {
			// The replica whose write came first may be about to write the same data. Wait as long as a write takes, so that
			// this replica sees that write before it tries again.
			backoff = max(backoff, min(pauseAfter(took), 2*time.Second))
		}
	default:
		writes.WithLabelValues("error").Inc()
		backoff = max(backoff, pauseAfter(took)) // a server that answers late or not at all is overloaded
		if n == 1 || n%20 == 0 {
			e.log.Warningf("%s: the status could not be written, and will be retried: %v", o.key, err)
		}
	}
	if n > maxRetries && !o.alive(e.store.clock.now()) {
		return 0
	}
	return backoff/2 + rand.N(backoff/2+1)
}

// reread reads the newest state after a write was rejected. If the object did not change, there was no conflict, and
// the API server rejects the tests of the patch. If it repeatedly rejects a value, the value is a name: the installed
// definition may be the stock one, which accepts only hostnames.
func (e *engine) reread(ctx context.Context, o *object, w *write, err error) {
	known := o.newest()
	// the watch will report an object with another UID
	if live, gerr := e.store.get(ctx, o.key); gerr == nil && live.UID == known.UID {
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

// isUnprocessable reports whether an operation of a patch did not apply. The API server has no status reason for that.
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

// slogTo returns a slog.Logger that writes to the log of CoreDNS.
func slogTo(p clog.P) *slog.Logger { return slog.New(slogHandler{log: p}) }

// slogHandler is a slog.Handler that writes to the log of CoreDNS.
type slogHandler struct {
	log   clog.P
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (h slogHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
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

// WithAttrs implements slog.Handler.
func (h slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slogHandler{h.log, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup implements slog.Handler. Groups are not used.
func (h slogHandler) WithGroup(string) slog.Handler { return h }
