package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// northbound is the interface of ovn.DB.
type northbound interface {
	Read(context.Context) (ovn.Rows, map[string][]string, ovn.Features, error)
	Apply(context.Context, ovn.Tx) (ovn.Mark, error)
	Extend(context.Context, map[string][]string) (ovn.Mark, error)
	Confirm(context.Context, ovn.Mark) error
	Current(ovn.Mark) bool
	Changed() <-chan struct{}
}

// engine keeps the database equal to the state of objects and leases. There are two paths into the database. A pass
// compares everything, and runs whenever anything changed. The short path of Program only adds addresses.
type engine struct {
	db      northbound
	read    func(context.Context) (reading, error)
	report  func(outcome) // called after each pass; does not block
	log     *slog.Logger
	metrics *metrics
	node    string // name for Explain

	refusals rate.Sometimes // limits the log of refused addresses, of which a peer may send many

	wake    chan struct{} // signals changed objects; has capacity one
	program chan request
	gate    gate

	mu         sync.Mutex // guards the fields below
	leaseTable *leaseTable
	remembered bool      // leaseTable has the addresses that were in the database at the start
	input      ovn.Input // input of the last pass, for families and subnets
	policy     learn.Policy
	used       map[enforce.Pattern]bool
	programmed map[enforce.Pattern]map[netip.Addr]presence
	removing   map[setMember]bool // addresses that are being removed
	removed    chan struct{}      // closed when they are removed
	wrote      ovn.Mark           // the last write
	seen       passes
}

// passes counts passes, so that a caller can wait for one that begins later.
type passes struct {
	begun, done int
	progress    chan struct{} // closed and replaced when done increases
}

// outcome is the result of a pass.
type outcome struct {
	reading reading
	failed  map[string]error // by namespace
	mark    ovn.Mark         // confirmed when all writes of the pass are
}

func newEngine(db northbound, keepFor time.Duration) *engine {
	e := &engine{db: db, leaseTable: newLeaseTable(keepFor), programmed: map[enforce.Pattern]map[netip.Addr]presence{},
		removing: map[setMember]bool{}, wake: make(chan struct{}, 1), program: make(chan request, 1024),
		seen: passes{progress: make(chan struct{})}, log: slog.New(slog.DiscardHandler), metrics: newMetrics(),
		report:   func(outcome) {},
		refusals: rate.Sometimes{Interval: time.Minute}}
	e.leaseTable.yieldLock = e.yieldLock
	return e
}

// yieldLock releases the lock for a moment, so that requests for addresses can proceed. With thousands of names, a pass
// would otherwise block them for longer than the switch does.
func (e *engine) yieldLock() {
	e.mu.Unlock()
	e.mu.Lock()
}

// Changed notifies the engine that objects changed.
func (e *engine) Changed() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run runs the engine until ctx ends.
func (e *engine) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.passes(ctx) })
	g.Go(func() error { return e.additions(ctx) })
	return g.Wait()
}

const (
	// minPassInterval is the minimum time between two passes. Changes in between are handled by the next one.
	minPassInterval = 50 * time.Millisecond
	// repairDelay is the minimum time before a pass that only checks changes of the database. Such a pass nearly always
	// finds only writes of the short path. Hand edits are still undone within a second.
	repairDelay = 150 * time.Millisecond
	// Passes take at most one part in share+1 of the time, unless the pause would exceed maxPause: hand edits must be
	// undone within a second.
	share    = 4
	maxPause = 500 * time.Millisecond
	// retryDelay is the delay after a failed pass.
	retryDelay = 500 * time.Millisecond
	// passTimeout is the maximum duration of a pass; OVN-Kubernetes allows ten seconds per transaction.
	passTimeout = 30 * time.Second
)

func (e *engine) passes(ctx context.Context) error {
	e.Changed()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	lastError := "" // logged once, not with each attempt
	var ended time.Time
	for {
		repair := e.wait(ctx, due.C, ended)
		e.gate.give(ctx)
		if ctx.Err() != nil {
			return nil
		}
		begun := time.Now()
		next, err := e.pass(ctx, repair)
		ended = time.Now()
		// Passes must not use most of the time of a large cluster. Requests for addresses do not wait for passes.
		pause := min(max(minPassInterval, share*time.Since(begun)), maxPause)
		wait := time.Hour
		if !next.IsZero() {
			wait = max(0, time.Until(next))
		}
		if err != nil && ctx.Err() == nil {
			if text := rowID.ReplaceAllString(err.Error(), "…"); text != lastError {
				e.log.Error("pass failed", "err", err)
				lastError = text
			}
			e.metrics.failures.Inc()
			wait = min(wait, retryDelay)
		} else if lastError != "" {
			e.log.Info("passes succeed again")
			lastError = ""
		}
		due.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// wait blocks until a pass is needed. It returns at once if objects changed or something expires. If only the database
// changed, it returns repairDelay after the last pass and reports true.
func (e *engine) wait(ctx context.Context, due <-chan time.Time, ended time.Time) (repair bool) {
	changed, over := e.db.Changed(), (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-e.wake:
			return false
		case <-due:
			return false
		case <-changed:
			// The database reports our own writes, too. The delay lets one pass repair many foreign changes.
			changed, over = nil, time.After(time.Until(ended.Add(repairDelay)))
		case <-over:
			// If objects changed as well, the operations of the pass are not all repairs.
			return len(e.wake) == 0
		}
	}
}

// pass brings the database to the wanted state. next is the time at which something expires.
func (e *engine) pass(ctx context.Context, repair bool) (next time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	defer e.metrics.timePass()()
	n := e.begin()
	in, err := e.read(ctx)
	if err != nil {
		return time.Time{}, err
	}
	out := outcome{reading: in, failed: map[string]error{}}
	next, err = e.reconcile(ctx, &out, repair)
	if err != nil {
		for _, f := range in.input.Firewalls {
			// No firewall can claim to be applied after a pass that failed as a whole.
			out.failed[f.Namespace] = err
		}
	}
	e.report(out)
	if err != nil {
		return next, err
	}
	e.end(n)
	for _, ns := range slices.Sorted(maps.Keys(out.failed)) {
		err = errors.Join(err, fmt.Errorf("%s: %w", ns, out.failed[ns]))
	}
	return next, err
}

// reconcile compares and writes. It reads the database before the leases, so that it sees the lease of every address in
// the database.
func (e *engine) reconcile(ctx context.Context, out *outcome, repair bool) (next time.Time, err error) {
	have, ports, features, err := e.db.Read(ctx)
	if err != nil {
		return next, err
	}
	w, next := e.merge(out.reading, have)
	w.Ports = ports
	want := ovn.Render(w, features)
	e.metrics.rows(want)
	txs, waiting := ovn.Plan(want, have, features)
	for _, ns := range waiting {
		out.failed[ns] = errNoGroup
	}
	if e.last() == (ovn.Mark{}) {
		txs = append([]ovn.Tx{{}}, txs...) // an empty transaction confirms the existing rows
	}
	for _, tx := range txs {
		if repair && !tx.Removes {
			// Removals are not counted: an address that expired meanwhile is no repair.
			e.metrics.repairs.Add(float64(len(tx.Ops)))
		}
		if tx.Removes {
			e.notePresent(w)
			err = e.take(ctx, tx, have)
		} else {
			err = e.apply(ctx, tx)
		}
		switch {
		case err == nil:
		case tx.Namespace == "":
			return next, err // rules may refer to the sets of this transaction
		default: // other firewalls do not depend on it
			out.failed[tx.Namespace] = err
		}
	}
	e.notePresent(w)
	if out.mark = e.last(); out.mark == (ovn.Mark{}) {
		return next, errUnsure
	}
	return next, nil
}

// errUnsure is returned if the connection was lost after the last write. A zero mark must not stand for that write: it
// needs no confirmation.
var errUnsure = errors.New("the connection to the northbound database was lost before the switch confirmed the write")

// merge adds the current addresses of names to the input.
func (e *engine) merge(in reading, have ovn.Rows) (w ovn.Input, next time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if !e.remembered {
		learned, kept := have.Addresses()
		e.leaseTable.remember(learned, kept, now)
		e.remembered = true
	}
	w = in.input
	// Set these first, because snapshot yields the lock. A concurrent lease for a name that snapshot has already processed
	// must see that there is something to write.
	e.input, e.used, e.policy = w, in.used, in.policy
	w.Learned, w.Kept, next = e.leaseTable.snapshot(in, now)
	e.metrics.count(e.leaseTable.count())
	return w, next
}

// last returns the mark of the latest write, or zero if the connection was lost since: marks of an earlier connection
// cannot be confirmed.
func (e *engine) last() ovn.Mark {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.db.Current(e.wrote) {
		e.wrote = ovn.Mark{}
	}
	return e.wrote
}

// apply writes a transaction. The database refuses it if another program changed a row that it tests; the next pass
// plans again.
func (e *engine) apply(ctx context.Context, tx ovn.Tx) error {
	m, err := e.db.Apply(ctx, tx)
	if err != nil {
		e.metrics.refused.Inc()
		return err
	}
	e.note(m)
	return nil
}

// note stores the latest write.
func (e *engine) note(m ovn.Mark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.Epoch != e.wrote.Epoch || m.Cfg > e.wrote.Cfg {
		e.wrote = m
	}
}

// take performs a transaction that removes addresses, except those that were leased since the plan was made. A
// concurrent request for a lease waits until the removal is done, and then adds the address again.
func (e *engine) take(ctx context.Context, tx ovn.Tx, have ovn.Rows) error {
	e.mu.Lock()
	now := time.Now()
	tx = tx.Except(have, func(p enforce.Pattern, a netip.Addr) bool {
		if e.leaseTable.until(p, a).After(now) {
			return true
		}
		e.removing[setMember{p, a}] = true
		return false
	})
	// Requests wait on the channel and not on the mutex, which must not be held during a write.
	e.removed = make(chan struct{})
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for at := range e.removing {
			delete(e.programmed[at.pattern], at.addr)
		}
		clear(e.removing)
		close(e.removed)
	}()
	if len(tx.Ops) == 0 {
		return nil
	}
	return e.apply(ctx, tx)
}

// errNoGroup is reported with --manage-port-groups=false, until OVN-Kubernetes has created the group.
var errNoGroup = errors.New("the namespace has no port group yet")

// begin and end number the passes, so that nextPass can wait for one that began after its call.
func (e *engine) begin() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.begun++
	return e.seen.begun
}

// end wakes all that wait. A closed channel wakes any number of them, and is replaced for the next pass.
func (e *engine) end(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.done = n
	close(e.seen.progress)
	e.seen.progress = make(chan struct{})
}

// nextPass blocks until a pass that begins after the call succeeds.
func (e *engine) nextPass(ctx context.Context) error {
	e.mu.Lock()
	after := e.seen.begun
	e.mu.Unlock()
	e.Changed()
	for {
		e.mu.Lock()
		done, progress := e.seen.done, e.seen.progress
		e.mu.Unlock()
		if done > after {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-progress:
		}
	}
}
