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
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// RefresherOptions configures a Refresher.
type RefresherOptions struct {
	Log    *slog.Logger   // default: discard
	Spool  *os.Root       // directory for the records that transfers have read; it must survive a restart
	Budget *budget.Budget // memory budget

	Special specialaddr.Table // classifies the addresses of masters
}

// Refresher keeps our copies of SECONDARY zones up to date. It queries their masters when a timer expires or a NOTIFY
// arrives, and transfers new serials. All timers are in one heap, because there may be a hundred thousand zones.
type Refresher struct {
	opts RefresherOptions
	pub  *publish.Publisher
	work *workers
	stat *refreshStats
	keys *Keyring

	ask   queryFunc // uses the network, except in tests
	fetch func(context.Context, request) (*incoming, error)

	spools *spools

	mu    sync.Mutex // guards the rest
	zones map[uuid.UUID]*secondaryZone
	queue dueHeap
	fair  *fairQueue
}

// secondaryZone is the state of a zone that is copied.
type secondaryZone struct {
	next      time.Time
	notBefore time.Time // its masters are not queried before this time
	busy      bool      // a job of the zone is queued or running
	attempt   *attempt  // nil: no attempt is running
	again     bool      // Refresh was called while the zone was busy
	force     bool      // transfer the whole zone, whatever its serial
	tries     int       // failed attempts since the last success
	state     publish.Secondary
	problem   string
	reason    string // the problem as the owner of the zone may read it
}

// Copy is the state of our copy of a SECONDARY zone.
type Copy struct {
	publish.Secondary
	Next    time.Time
	Problem string // why the last attempt failed, for administrators
	Reason  string // the same without details of the network, for the owner of the zone
}

const (
	// parallelZones is the number of zones that query their masters at once; see fairQueue. Each takes about 100 KiB until
	// it commits.
	parallelZones = 64
	masterTimeout = time.Hour // maximum time at one master of a zone, with the transfer

	// The timers of an SOA are limited to these bounds: a mistake of a master must neither keep us busy nor keep a zone
	// outdated.
	shortestRefresh = 5 * time.Second
	longestRefresh  = 7 * 24 * time.Hour
	longestRetry    = time.Hour
	firstRetry      = 2 * time.Second // first retry of a zone that was never transferred

	// minInterval is the minimum time between two queries to the masters of a zone. Otherwise forged NOTIFY messages could
	// make us keep a master busy.
	minInterval = 500 * time.Millisecond

	// A zone whose transfer was running when the program crashed may be the cause. It waits for firstBackoff after the
	// first such crash and twice as long after each further one, so that a restarted server can serve meanwhile.
	firstBackoff   = time.Minute
	longestBackoff = 24 * time.Hour
)

// NewRefresher returns a Refresher. Call Run to start it.
func NewRefresher(pub *publish.Publisher, keys *Keyring, opts RefresherOptions) *Refresher {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Refresher{opts: opts, pub: pub, work: newWorkers(parallelZones), stat: newRefreshStats(),
		keys: keys, ask: keys.Ask, fetch: fetch, spools: newSpools(opts.Spool, maxSpooled),
		zones: map[uuid.UUID]*secondaryZone{}, fair: newFairQueue(parallelZones)}
}

// Refresh queries the masters of a zone at once: because it is new, because of a NOTIFY, or because a user requested
// it. With force the whole zone is transferred.
func (r *Refresher) Refresh(id uuid.UUID, force bool) {
	r.mu.Lock()
	w := r.zones[id]
	if w == nil {
		w = &secondaryZone{}
		r.zones[id] = w
	}
	w.force = w.force || force
	// Do not queue a zone twice: a flood of NOTIFY would fill the queue faster than it is emptied.
	switch at := w.earliest(); {
	case w.busy:
		w.again = true
	case w.next.IsZero() || at.Before(w.next):
		r.scheduleLocked(id, w, at)
	}
	r.mu.Unlock()
	r.work.signal()
}

// earliest returns when the masters may be queried again.
func (w *secondaryZone) earliest() time.Time {
	if now := time.Now(); w.notBefore.Before(now) {
		return now
	}
	return w.notBefore
}

func (r *Refresher) scheduleLocked(id uuid.UUID, w *secondaryZone, at time.Time) {
	w.next = at
	heap.Push(&r.queue, due{at: at, zone: id})
}

// Run refreshes zones until ctx is done. It begins by querying the masters of every zone, because NOTIFY messages may
// have been missed.
func (r *Refresher) Run(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	defer r.work.Wait()
	for ctx.Err() == nil {
		list, wait := r.ready(time.Now())
		r.enqueue(list)
		for t, ok := r.nextJob(); ok; t, ok = r.nextJob() {
			r.work.start(ctx, func() { r.step(ctx, t) })
		}
		r.work.wait(ctx, wait)
	}
	return nil
}

// begin schedules all zones. Zones whose transfer was running during a crash wait.
func (r *Refresher) begin() error {
	if err := r.spools.recoverMarks(); err != nil {
		r.opts.Log.Warn("cannot read the data directory: zones whose transfer crashed the server are not delayed",
			"error", err)
	}
	gone := maps.Clone(r.spools.crashes)
	err := r.pub.View(func(v store.View) error {
		return v.Zones(func(z zone.Zone) (bool, error) {
			if z.Kind != zone.Secondary {
				return true, nil
			}
			if n := gone[z.ID]; n > 0 {
				delete(gone, z.ID)
				r.backOff(z, n)
			}
			r.Refresh(z.ID, false)
			return true, nil
		})
	})
	for id := range gone {
		r.spools.removeMark(id)
	}
	return err
}

// backOff delays a zone after n crashes.
func (r *Refresher) backOff(z zone.Zone, n int) {
	wait := min(firstBackoff<<min(n-1, 20), longestBackoff)
	text := fmt.Sprintf("the server ended while it transferred the zone, %d times in a row; the next attempt is after %v",
		n, wait)
	r.opts.Log.Warn("zone not refreshed", "zone", z.Name.String(), "error", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.zones[z.ID] = &secondaryZone{notBefore: time.Now().Add(wait), problem: text, reason: text}
}

// ready removes the zones that are due from the queue, and returns them and the time until the next one.
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

// enqueue queues jobs for the first masters of zones. It does not read the store with mu held: a reader of the store
// may wait for mu.
func (r *Refresher) enqueue(list []uuid.UUID) {
	line := make([]job, len(list))
	_ = r.pub.View(func(v store.View) error { // the job of the zone will return the error
		for i, id := range list {
			a := attempt{}
			a.zone, _ = v.Zone(id)
			line[i], _, _ = a.job()
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, t := range line {
		t.zone = list[i]
		r.fair.add(t)
	}
}

// nextJob returns the next job that may run, if there is one.
func (r *Refresher) nextJob() (job, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fair.next()
}

// step runs a job and schedules the next attempt of its zone.
func (r *Refresher) step(ctx context.Context, t job) {
	r.mu.Lock()
	w := r.zones[t.zone]
	if w.attempt == nil {
		w.attempt = &attempt{Refresher: r, id: t.zone, force: w.force}
		w.force, w.notBefore = false, time.Now().Add(minInterval)
	}
	a := w.attempt
	r.mu.Unlock()
	next, err := a.run(ctx, t)
	if errors.Is(err, errGone) || next == nil && err == nil { // also when the copy was current and nothing was transferred
		r.spools.removeMark(t.zone)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fair.done(t)
	switch {
	case next != nil:
		r.fair.add(*next)
	case errors.Is(err, errGone):
		delete(r.zones, t.zone)
	default:
		w.end(a, err, ctx.Err() != nil)
		at := a.next(time.Now(), w.tries)
		if w.again {
			w.again, at = false, w.earliest()
		}
		r.scheduleLocked(t.zone, w, at)
	}
}

// end stores the result of an attempt. A cancelled attempt will be repeated with the same force.
func (w *secondaryZone) end(a *attempt, err error, brokenOff bool) {
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

// next returns when the zone is refreshed again.
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

// State returns the state of our copy of a zone; the zero Copy if the zone is not copied.
func (r *Refresher) State(id uuid.UUID) Copy {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.zones[id]
	if w == nil {
		return Copy{}
	}
	return Copy{Secondary: w.state, Next: w.next, Problem: w.problem, Reason: w.reason}
}
