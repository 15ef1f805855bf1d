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

// northbound is ovn.DB.
type northbound interface {
	Have(context.Context) (ovn.Rows, map[string][]string, ovn.Features, error)
	Apply(context.Context, ovn.Tx) (ovn.Mark, error)
	Extend(context.Context, map[string][]string) (ovn.Mark, error)
	Confirm(context.Context, ovn.Mark) error
	Current(ovn.Mark) bool
	Changed() <-chan struct{}
}

// engine keeps the database equal to what objects and leases say. There are two ways into the database: a pass, which compares everything
// and is done again whenever anything changed, and the short way of Program, which only adds addresses.
type engine struct {
	db      northbound
	read    func(context.Context) (reading, error)
	report  func(outcome) // after each pass; does not wait
	log     *slog.Logger
	metrics *metrics
	node    string // for Explain

	refusals rate.Sometimes // logs refused addresses, of which a peer may send many

	wake    chan struct{} // of one element: the objects changed
	program chan request
	way     way

	mu         sync.Mutex // guards all below
	book       *book
	remembered bool      // the book has what was in the database before us
	world      ovn.World // of the last pass; families and subnets
	policy     learn.Policy
	used       map[enforce.Pattern]bool
	there      map[enforce.Pattern]map[netip.Addr]presence
	leaving    map[place]bool // being taken away
	left       chan struct{}  // closed when they are gone
	wrote      ovn.Mark       // the last write
	seen       passes
}

// passes counts passes, so that one can wait for one that begins later.
type passes struct {
	begun, done int
	moved       chan struct{} // closed and replaced when done grows
}

// outcome is what a pass came to.
type outcome struct {
	reading reading
	failed  map[string]error // by namespace
	mark    ovn.Mark         // when this is confirmed, all of it is
}

func newEngine(db northbound, keepFor time.Duration) *engine {
	e := &engine{db: db, book: newBook(keepFor), there: map[enforce.Pattern]map[netip.Addr]presence{}, leaving: map[place]bool{}, wake: make(chan struct{}, 1), program: make(chan request, 1024),
		seen: passes{moved: make(chan struct{})}, log: slog.New(slog.DiscardHandler), metrics: newMetrics(), report: func(outcome) {},
		refusals: rate.Sometimes{Interval: time.Minute}}
	e.book.breathe = e.breathe
	return e
}

// breathe lets those who program addresses have their turn. With thousands of names a pass would keep them waiting for longer than
// the switch does.
func (e *engine) breathe() {
	e.mu.Unlock()
	e.mu.Lock()
}

// Changed says that objects changed.
func (e *engine) Changed() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (e *engine) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.passes(ctx) })
	g.Go(func() error { return e.additions(ctx) })
	return g.Wait()
}

const (
	// between is the shortest time between two passes: what comes meanwhile goes with the next one.
	between = 50 * time.Millisecond
	// lull is that before a pass that only looks for what others did to the database. Nearly always it finds what the short way wrote, and
	// hand edits are undone within a second all the same.
	lull = 150 * time.Millisecond
	// Passes take at most one part in share+1 of the time, unless that would make them rarer than longest: hand edits are undone
	// within a second.
	share   = 4
	longest = 500 * time.Millisecond
	// again is when a pass that failed is tried again.
	again = 500 * time.Millisecond
	// passTime is the longest a pass may take; OVN-Kubernetes gives transactions ten seconds.
	passTime = 30 * time.Second
)

func (e *engine) passes(ctx context.Context) error {
	e.Changed()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	told := "" // the last failure, which is not told again twice a second
	var ended time.Time
	for {
		repair := e.wait(ctx, due.C, ended)
		e.way.give(ctx)
		if ctx.Err() != nil {
			return nil
		}
		begun := time.Now()
		next, err := e.pass(ctx, repair)
		ended = time.Now()
		// A large cluster must not spend its time comparing: who programs an address meanwhile does not wait for passes.
		pause := min(max(between, share*time.Since(begun)), longest)
		wait := time.Hour
		if !next.IsZero() {
			wait = max(0, time.Until(next))
		}
		if err != nil && ctx.Err() == nil {
			if text := rowID.ReplaceAllString(err.Error(), "…"); text != told {
				e.log.Error("pass failed", "err", err)
				told = text
			}
			e.metrics.failures.Inc()
			wait = min(wait, again)
		} else if told != "" {
			e.log.Info("passes succeed again")
			told = ""
		}
		due.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// wait returns when there is something to do: at once when objects changed or something lapses, and a lull after the last pass when only
// the database changed, which it tells.
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
			changed, over = nil, time.After(time.Until(ended.Add(lull)))
		case <-over:
			return len(e.wake) == 0
		}
	}
}

// pass makes the database what it should be. next is when something lapses by itself.
func (e *engine) pass(ctx context.Context, repair bool) (next time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	defer e.metrics.timePass()()
	n := e.begin()
	in, err := e.read(ctx)
	if err != nil {
		return time.Time{}, err
	}
	out := outcome{reading: in, failed: map[string]error{}}
	next, err = e.bring(ctx, &out, repair)
	if err != nil {
		for _, f := range in.world.Firewalls {
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

// bring compares and writes. The database is read before the leases: an address that is there by a lease is then seen with its
// lease.
func (e *engine) bring(ctx context.Context, out *outcome, repair bool) (next time.Time, err error) {
	have, ports, features, err := e.db.Have(ctx)
	if err != nil {
		return next, err
	}
	w, next := e.look(out.reading, have)
	w.Ports = ports
	want := ovn.Render(w, features)
	e.metrics.rows(want)
	txs, waiting := ovn.Plan(want, have, features)
	for _, ns := range waiting {
		out.failed[ns] = errNoGroup
	}
	if e.last() == (ovn.Mark{}) {
		txs = append([]ovn.Tx{{}}, txs...) // what is there already is confirmed with this
	}
	for _, tx := range txs {
		if repair && !tx.Takes {
			e.metrics.repairs.Add(float64(len(tx.Ops)))
		}
		if tx.Takes {
			e.present(w)
			err = e.take(ctx, tx, have)
		} else {
			err = e.apply(ctx, tx)
		}
		switch {
		case err == nil:
		case tx.Namespace == "":
			return next, err // rules may name the sets of this one
		default: // other firewalls have nothing to do with it
			out.failed[tx.Namespace] = err
		}
	}
	e.present(w)
	if out.mark = e.last(); out.mark == (ovn.Mark{}) {
		return next, errUnsure
	}
	return next, nil
}

// errUnsure says that the connection was lost after the last write. A zero mark must not stand for it: it needs no confirmation.
var errUnsure = errors.New("the connection to the northbound database was lost before it was confirmed")

// look fills in what is learned at this moment.
func (e *engine) look(in reading, have ovn.Rows) (w ovn.World, next time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if !e.remembered {
		learned, kept := have.Addresses()
		e.book.remember(learned, kept, now)
		e.remembered = true
	}
	w = in.world
	// First, because the look takes breaths: who leases an address of a name that it has passed already must see that there is
	// something to write.
	e.world, e.used, e.policy = w, in.used, in.policy
	w.Learned, w.Kept, next = e.book.look(in, now)
	e.metrics.count(e.book.count())
	return w, next
}

func (e *engine) last() ovn.Mark {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.db.Current(e.wrote) {
		e.wrote = ovn.Mark{}
	}
	return e.wrote
}

func (e *engine) apply(ctx context.Context, tx ovn.Tx) error {
	m, err := e.db.Apply(ctx, tx)
	if err != nil {
		e.metrics.refused.Inc()
		return err
	}
	e.note(m)
	return nil
}

// note remembers the latest write.
func (e *engine) note(m ovn.Mark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.Epoch != e.wrote.Epoch || m.Cfg > e.wrote.Cfg {
		e.wrote = m
	}
}

// take takes addresses away, but for those that were leased since the plan was made. Who wants to lease one meanwhile has to
// wait until it is gone, and adds it again.
func (e *engine) take(ctx context.Context, tx ovn.Tx, have ovn.Rows) error {
	e.mu.Lock()
	now := time.Now()
	tx = tx.Spare(have, func(p enforce.Pattern, a netip.Addr) bool {
		if e.book.until(p, a).After(now) {
			return true
		}
		e.leaving[place{p, a}] = true
		return false
	})
	e.left = make(chan struct{})
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for at := range e.leaving {
			delete(e.there[at.pattern], at.addr)
		}
		clear(e.leaving)
		close(e.left)
	}()
	if len(tx.Ops) == 0 {
		return nil
	}
	return e.apply(ctx, tx)
}

var errNoGroup = errors.New("the namespace has no port group yet")

func (e *engine) begin() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.begun++
	return e.seen.begun
}

func (e *engine) end(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.done = n
	close(e.seen.moved)
	e.seen.moved = make(chan struct{})
}

// nextPass waits for a pass that begins from now on, and succeeds.
func (e *engine) nextPass(ctx context.Context) error {
	e.mu.Lock()
	after := e.seen.begun
	e.mu.Unlock()
	e.Changed()
	for {
		e.mu.Lock()
		done, moved := e.seen.done, e.seen.moved
		e.mu.Unlock()
		if done > after {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}
