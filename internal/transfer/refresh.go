package transfer

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// RefresherOptions say how masters are asked.
type RefresherOptions struct {
	Log    *slog.Logger   // default: none
	Spool  *os.Root       // the folder for what transfers have read; it must survive a restart
	Budget *budget.Budget // of memory
}

// Refresher keeps our copies of SECONDARY zones: it asks their masters when it is time or when they say so, and
// transfers what is new. All timers are one heap, because there may be a hundred thousand zones.
type Refresher struct {
	opts RefresherOptions
	pub  *publish.Publisher
	work *workers
	stat *refreshStats
	keys *Keyring

	ask   asker // over the network, but for tests
	fetch func(context.Context, request) (*copied, error)

	spools *spools

	mu    sync.Mutex // guards the rest
	zones map[uuid.UUID]*watched
	queue dueHeap
	turns *turns
}

// watched is a zone that is copied.
type watched struct {
	next    time.Time
	rest    time.Time // its masters are not asked before
	busy    bool      // it is in the line for a turn, or has one
	attempt *attempt  // nil: none has begun
	again   bool      // somebody asked for it while it was busy
	force   bool      // the whole zone is wanted, whatever its serial
	tries   int       // that failed since the last success
	state   publish.Secondary
	problem string
	reason  string // the problem as the zone's owner may read it
}

// Copy is how our copy of a SECONDARY zone is.
type Copy struct {
	publish.Secondary
	Next    time.Time
	Problem string // why the last attempt failed, for administrators
	Reason  string // the same without details of the network, for the owner of the zone
}

const (
	// parallelZones is how many zones ask their masters at once; see turns. Each takes about 100 KiB until it commits.
	parallelZones = 64
	longestLook   = time.Hour // at one master of a zone, with all that is transferred

	// The timers of an SOA are taken within these bounds: a master's mistake must neither keep us busy nor keep a zone
	// old.
	shortestRefresh = 5 * time.Second
	longestRefresh  = 7 * 24 * time.Hour
	longestRetry    = time.Hour
	firstRetry      = 2 * time.Second // of a zone that was never transferred

	// betweenLooks is how long a zone's masters are left alone: whoever sends NOTIFY in a master's name shall not have
	// us keep it busy.
	betweenLooks = 500 * time.Millisecond

	// A zone whose transfer was running when the program crashed may be the cause. It waits for firstRest after the
	// first such crash and twice as long after each further one, so that a server that is restarted serves meanwhile.
	firstRest   = time.Minute
	longestRest = 24 * time.Hour
)

// NewRefresher starts nothing.
func NewRefresher(pub *publish.Publisher, keys *Keyring, opts RefresherOptions) *Refresher {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Refresher{opts: opts, pub: pub, work: newWorkers(parallelZones), stat: newRefreshStats(),
		keys: keys, ask: keys.Ask, fetch: fetch, spools: newSpools(opts.Spool, maxSpooled),
		zones: map[uuid.UUID]*watched{}, turns: newTurns(parallelZones)}
}

// Refresh has a zone's masters asked at once: because it is new, because a master says that it has changed, or because
// somebody wants it. With force all of it is transferred.
func (r *Refresher) Refresh(id uuid.UUID, force bool) {
	r.mu.Lock()
	w := r.zones[id]
	if w == nil {
		w = &watched{}
		r.zones[id] = w
	}
	w.force = w.force || force
	// What is in the queue already is not put there again: a flood of NOTIFY would fill it faster than it is emptied.
	switch at := w.soon(); {
	case w.busy:
		w.again = true
	case w.next.IsZero() || at.Before(w.next):
		r.scheduleLocked(id, w, at)
	}
	r.mu.Unlock()
	r.work.poke()
}

// soon is when the masters may be asked again.
func (w *watched) soon() time.Time {
	if now := time.Now(); w.rest.Before(now) {
		return now
	}
	return w.rest
}

func (r *Refresher) scheduleLocked(id uuid.UUID, w *watched, at time.Time) {
	w.next = at
	heap.Push(&r.queue, due{at: at, zone: id})
}

// Run copies until ctx ends. It begins with asking about every zone: masters may have changed while nobody listened.
func (r *Refresher) Run(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	defer r.work.Wait()
	for ctx.Err() == nil {
		list, wait := r.ready(time.Now())
		r.lineUp(list)
		for t, ok := r.nextTurn(); ok; t, ok = r.nextTurn() {
			r.work.start(ctx, func() { r.step(ctx, t) })
		}
		r.work.wait(ctx, wait)
	}
	return nil
}

// begin schedules all zones. Those that a process before this one did not survive wait.
func (r *Refresher) begin() error {
	if err := r.spools.recover(); err != nil {
		r.opts.Log.Warn("no zone waits for its transfer, because the data directory cannot be read", "error", err)
	}
	gone := maps.Clone(r.spools.crashes)
	err := r.pub.View(func(v store.View) error {
		return v.Zones(func(z zone.Zone) (bool, error) {
			if z.Kind != zone.Secondary {
				return true, nil
			}
			if n := gone[z.ID]; n > 0 {
				delete(gone, z.ID)
				r.rest(z, n)
			}
			r.Refresh(z.ID, false)
			return true, nil
		})
	})
	for id := range gone {
		r.spools.forget(id)
	}
	return err
}

// rest lets a zone wait after n crashes.
func (r *Refresher) rest(z zone.Zone, n int) {
	wait := min(firstRest<<min(n-1, 20), longestRest)
	text := fmt.Sprintf("the server ended while it transferred the zone, %d times in a row; the next try is after %v",
		n, wait)
	r.opts.Log.Warn("zone not refreshed", "zone", z.Name.String(), "error", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.zones[z.ID] = &watched{rest: time.Now().Add(wait), problem: text, reason: text}
}

// ready takes the zones whose time has come, and tells how long it is until the next one's comes.
func (r *Refresher) ready(now time.Time) (out []uuid.UUID, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 {
		if d := r.queue[0]; d.at.After(now) {
			return out, d.at.Sub(now)
		}
		d := heap.Pop(&r.queue).(due)
		w := r.zones[d.zone]
		if w == nil || w.busy || !w.next.Equal(d.at) {
			continue
		}
		w.busy = true
		out = append(out, d.zone)
	}
	return out, longestPause
}

// lineUp puts zones into the line for their first masters. The store is not read with mu held: a reader of the store
// may wait for mu.
func (r *Refresher) lineUp(list []uuid.UUID) {
	line := make([]turn, len(list))
	_ = r.pub.View(func(v store.View) error { // what cannot be read is the error of the zone's turn
		for i, id := range list {
			a := attempt{}
			a.zone, _ = v.Zone(id)
			line[i], _, _ = a.turn()
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, t := range line {
		t.zone = list[i]
		r.turns.add(t)
	}
}

// nextTurn returns the next zone that may ask a master, if there is one.
func (r *Refresher) nextTurn() (turn, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns.next()
}

// step lets a zone have its turn, and says when it is to be looked at again.
func (r *Refresher) step(ctx context.Context, t turn) {
	r.mu.Lock()
	w := r.zones[t.zone]
	if w.attempt == nil {
		w.attempt = &attempt{Refresher: r, id: t.zone, force: w.force}
		w.force, w.rest = false, time.Now().Add(betweenLooks)
	}
	a := w.attempt
	r.mu.Unlock()
	next, err := a.run(ctx, t)
	if errors.Is(err, errGone) || next == nil && err == nil { // also when the copy was the newest, and nothing came
		r.spools.forget(t.zone)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns.done(t)
	switch {
	case next != nil:
		r.turns.add(*next)
	case errors.Is(err, errGone):
		delete(r.zones, t.zone)
	default:
		w.end(a, err, ctx.Err() != nil)
		at := a.next(time.Now(), w.tries)
		if w.again {
			w.again, at = false, w.soon()
		}
		r.scheduleLocked(t.zone, w, at)
	}
}

// end takes down what an attempt came to. One that was broken off is made again as it was.
func (w *watched) end(a *attempt, err error, brokenOff bool) {
	w.busy, w.attempt, w.state = false, nil, a.state
	w.problem, w.reason = "", ""
	if err == nil {
		w.tries = 0
		return
	}
	w.problem, w.reason = err.Error(), reasonOf(a.errs)
	w.tries++
	w.force = w.force || a.force && brokenOff
}

// next is when a zone is to be looked at again.
func (a *attempt) next(now time.Time, tries int) time.Time {
	if !a.has {
		return now.Add(min(firstRetry<<min(tries, 20), longestRetry))
	}
	wait := bounded(a.soa.Refresh, longestRefresh)
	if tries > 0 {
		wait = bounded(a.soa.Retry, longestRetry)
	}
	at := now.Add(wait)
	if end := a.expires(); !a.state.Expired && end.Before(at) {
		at = end
		if at.Before(now) {
			at = now.Add(shortestRefresh)
		}
	}
	return at
}

func bounded(seconds uint32, most time.Duration) time.Duration {
	return max(shortestRefresh, min(time.Duration(seconds)*time.Second, most))
}

// State is how our copy of a zone is; the zero Copy for a zone that is not copied.
func (r *Refresher) State(id uuid.UUID) Copy {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.zones[id]
	if w == nil {
		return Copy{}
	}
	return Copy{Secondary: w.state, Next: w.next, Problem: w.problem, Reason: w.reason}
}
