package transfer

import (
	"cmp"
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// RefresherOptions say how masters are asked.
type RefresherOptions struct {
	Log     *slog.Logger // default: none
	MaxZone int          // bytes of the largest zone that is taken; default DefaultMaxZone
}

// DefaultMaxZone is the default of RefresherOptions.MaxZone.
const DefaultMaxZone = 256 << 20

// Refresher keeps our copies of SECONDARY zones: it asks their masters when it is time or when they say so, and transfers what is
// new. All timers are one heap, because there may be a hundred thousand zones.
type Refresher struct {
	opts RefresherOptions
	pub  *publish.Publisher
	work *workers
	stat *refreshStats
	keys *Keyring

	ask   asker // over the network, but for tests
	fetch func(context.Context, request) (*copied, error)

	mu    sync.Mutex // guards the rest
	zones map[uuid.UUID]*watched
	queue dueHeap
}

// watched is a zone that is copied.
type watched struct {
	next    time.Time
	begun   time.Time // the last look at its masters
	busy    bool
	again   bool // somebody asked for it while it was busy
	force   bool // the whole zone is wanted, whatever its serial
	tries   int  // that failed since the last success
	problem string
	state   publish.Secondary
}

// Copy is how our copy of a SECONDARY zone is.
type Copy struct {
	publish.Secondary
	Next    time.Time
	Problem string // what the last attempt came to, when it failed
}

const (
	parallelZones = 16
	longestLook   = time.Hour // at the masters of a zone, with all that is transferred

	// The timers of an SOA are taken within these bounds: a master's mistake must neither keep us busy nor keep a zone old.
	shortestRefresh = 5 * time.Second
	longestRefresh  = 7 * 24 * time.Hour
	longestRetry    = time.Hour
	firstRetry      = 2 * time.Second // of a zone that was never transferred

	// betweenLooks is how long a zone's masters are left alone: whoever sends NOTIFY in a master's name shall not have us
	// keep it busy.
	betweenLooks = 500 * time.Millisecond
)

// NewRefresher starts nothing.
func NewRefresher(pub *publish.Publisher, keys *Keyring, opts RefresherOptions) *Refresher {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	opts.MaxZone = cmp.Or(opts.MaxZone, DefaultMaxZone)
	return &Refresher{opts: opts, pub: pub, work: newWorkers(parallelZones), stat: newRefreshStats(),
		keys: keys, ask: keys.Ask, fetch: fetch, zones: map[uuid.UUID]*watched{}}
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
	now := time.Now()
	if at := w.begun.Add(betweenLooks); at.After(now) {
		return at
	}
	return now
}

func (r *Refresher) scheduleLocked(id uuid.UUID, w *watched, at time.Time) {
	w.next = at
	heap.Push(&r.queue, due{at: at, zone: id})
}

// Run copies until ctx ends. It begins with asking about every zone: masters may have changed while nobody listened.
func (r *Refresher) Run(ctx context.Context) error {
	err := r.pub.View(func(v store.View) error {
		return v.Zones(func(z zone.Zone) (bool, error) {
			if z.Kind == zone.Secondary {
				r.Refresh(z.ID, false)
			}
			return true, nil
		})
	})
	if err != nil {
		return err
	}
	defer r.work.Wait()
	for ctx.Err() == nil {
		list, wait := r.ready(time.Now())
		for _, id := range list {
			r.work.start(ctx, func() { r.step(ctx, id) })
		}
		r.work.wait(ctx, wait)
	}
	return nil
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
		w.busy, w.begun = true, now
		out = append(out, d.zone)
	}
	return out, longestPause
}

// step brings one zone up to date, and says when it is to be looked at again.
func (r *Refresher) step(ctx context.Context, id uuid.UUID) {
	r.mu.Lock()
	w := r.zones[id]
	force, tries := w.force, w.tries
	w.force = false
	r.mu.Unlock()
	a := attempt{Refresher: r, id: id, force: force}
	gone, err := a.run(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	w.busy = false
	if gone {
		delete(r.zones, id)
		return
	}
	now := time.Now()
	w.problem, w.tries, w.state = "", 0, a.state
	if err != nil {
		w.problem, w.tries = err.Error(), tries+1
		w.force = w.force || force && ctx.Err() != nil
	}
	next := a.next(now, w.tries)
	if w.again {
		w.again, next = false, w.soon()
	}
	r.scheduleLocked(id, w, next)
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
	return Copy{Secondary: w.state, Next: w.next, Problem: w.problem}
}
