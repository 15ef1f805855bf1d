// Package follow tracks the addresses that names resolve to and reports changes.
//
// Start with Tracker in this file: Follow adds a name, and the callback Options.Changed receives its changes.
// schedule.go decides when a name is queried, lookup.go and wire.go query the resolvers, and timing.go computes the
// waits.
//
// The number of followers of a name does not matter: each family is queried once, shortly before its TTL expires. A
// name whose lookups fail keeps its last known state and is queried again later.
//
// Changes are reported by a callback and not by a channel, because a follower needs the newest state of a name, not its
// history. A channel is either unbounded or full one day, and then one slow reader blocks all names. While the callback
// of a name runs, further changes of that name are merged into one. It is reported when the callback returns: from the
// last reported state to the current one. So memory is bounded, callbacks for one name never overlap, and other names
// do not wait for them.
package follow

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Options configures a Tracker. Exchanger, Servers and Changed are required; other zero values mean the defaults.
type Options struct {
	Exchanger resolve.Exchanger
	Servers   []resolve.Server // recursive resolvers; a later one is queried when those before it fail or are busy

	// Changed is called for every change of the addresses, the TTL, the answer or the cause of failure of a followed name.
	// It is also called with the result of a Refresh, even if nothing changed. Calls for one name never overlap, even for
	// different families. Changed may call the Tracker. Run waits for it to return.
	Changed func(Change)

	Floor   time.Duration // minimum time between two queries for a name, unless one failed; default DefaultFloor
	Ceiling time.Duration // maximum time between two queries for a name, whatever its TTL; default DefaultCeiling
	Timeout time.Duration // timeout of one query; default 2 s

	Parallel int // names queried at once at one server; default 16
	// Rate is the maximum number of queries in any second, to all servers together; default 100. It includes the
	// repetitions over TCP of truncated replies.
	Rate int

	Rand func() float64 // random number in [0, 1), called by one goroutine at a time; default math/rand/v2
}

// Defaults of Options.
const (
	DefaultFloor   = 30 * time.Second
	DefaultCeiling = 30 * time.Minute
)

// withDefaults returns o with defaults for its zero values.
func (o Options) withDefaults() Options {
	o.Floor = cmp.Or(o.Floor, DefaultFloor)
	o.Ceiling = max(cmp.Or(o.Ceiling, DefaultCeiling), o.Floor)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Parallel = cmp.Or(o.Parallel, 16)
	o.Rate = cmp.Or(o.Rate, 100)
	// A query over TCP waits for the rate limit within the timeout of the truncated query. So the queries before it must
	// fit into half of that time.
	o.Parallel = min(o.Parallel, max(1, int(float64(o.Rate)*o.Timeout.Seconds()/2)))
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

// Tracker follows names. Its methods are safe for concurrent use.
type Tracker struct {
	opts      Options
	timing    timing
	upstreams upstreams
	limiter   *limiter
	priority  *rate.Limiter // limits how many refreshes go before all other names
	metrics   *metrics
	wake      chan struct{}  // wakes Run
	running   sync.WaitGroup // running lookups and callbacks

	mu              sync.Mutex // guards the following, and all nodes and entries
	names           map[dnsname.Name]*node
	queue           queue
	failing         queue // entries whose last attempt failed
	followers       int
	inFlight        int
	failingInFlight int // the part of inFlight that comes from the queue failing
}

// New returns a Tracker. It sends no queries before Run.
func New(opts Options) *Tracker {
	opts = opts.withDefaults()
	t := &Tracker{
		opts:    opts,
		timing:  timing{opts.Floor, opts.Ceiling, opts.Rand},
		limiter: newLimiter(opts.Rate),
		// at least 2: both families of one name
		priority: rate.NewLimiter(rate.Limit(max(2, opts.Rate/4)), max(2, opts.Rate/4)),
		wake:     make(chan struct{}, 1),
		names:    map[dnsname.Name]*node{},
	}
	for i, s := range opts.Servers {
		if !slices.Contains(opts.Servers[:i], s) {
			t.upstreams = append(t.upstreams, newUpstream(s, opts.Parallel))
		}
	}
	t.metrics = newMetrics()
	return t
}

// Follow starts to follow the addresses of a name. If the name was not followed before, it is queried at once and
// Changed reports the result. Otherwise State has the current knowledge. Each Follow needs one Unfollow with the same
// families.
func (t *Tracker) Follow(name dnsname.Name, f Family) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodeLocked(name)
	for i := range families {
		if f&families[i] == 0 {
			continue
		}
		e := n.entries[i]
		if e == nil {
			e = &entry{node: n, state: &unknown, reported: &unknown, due: time.Now()}
			n.entries[i] = e
		}
		if e.followers == 0 && !e.inFlight {
			t.pushLocked(e)
		}
		e.followers++
		t.followers++
	}
	t.nudge()
}

// nodeLocked returns the node of a name, and creates it if needed.
func (t *Tracker) nodeLocked(name dnsname.Name) *node {
	n := t.names[name]
	if n == nil {
		n = &node{name: name}
		t.names[name] = n
	}
	return n
}

// unknown is the state of a name before its first lookup.
var unknown State

// Unfollow ends one Follow. After the last one no change of the name is reported, but a running callback may not have
// returned yet.
func (t *Tracker) Unfollow(name dnsname.Name, f Family) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[name]
	if n == nil {
		return
	}
	for i, e := range n.entries {
		if f&families[i] == 0 || e == nil || e.followers == 0 {
			continue
		}
		e.followers--
		t.followers--
		t.dropLocked(e)
	}
}

// Refresh queries a followed name now, before all other names, unless it is in flight already. Of many refreshes at
// once, only some go before all other names; the others wait like a name that is due now. Otherwise a user with the
// right to refresh could keep other names from being queried. Changed reports the result, even if nothing changed.
// Refresh reports whether the name is followed.
func (t *Tracker) Refresh(name dnsname.Name) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[name]
	if n == nil {
		return false
	}
	followed, now := false, time.Now()
	for _, e := range n.entries {
		if e == nil || e.followers == 0 {
			continue
		}
		followed, e.refreshing = true, true
		switch {
		case e.inFlight:
		case t.priority.AllowN(now, 1):
			t.queueOf(e).reschedule(e, time.Time{})
		case e.due.After(now):
			t.queueOf(e).reschedule(e, now)
		}
	}
	t.nudge()
	return followed
}

// Refreshing reports whether a Refresh of a name is in progress, so that Changed will report its result.
func (t *Tracker) Refreshing(name dnsname.Name) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[name]
	return n != nil && slices.ContainsFunc(n.entries[:], func(e *entry) bool { return e != nil && e.refreshing })
}

// Seed sets the state of one family of a name from before the program started. Call Follow after it. Followers know
// that state too, so only changes from it are reported. The first query comes after a random time, so that a restart
// does not query all names at once. Seed does not change a name that is followed already.
func (t *Tracker) Seed(name dnsname.Name, f Family, s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, i := t.nodeLocked(name), slices.Index(families[:], f)
	if n.entries[i] != nil {
		return
	}
	now := time.Now()
	e := &entry{node: n, state: &s, reported: &s}
	n.entries[i] = e
	e.schedule(now, t.timing.seeded(s, now))
	if o := n.entries[1-i]; o != nil {
		if at, ok := e.commonTime(o); ok && at.Equal(o.due) {
			e.moveTo(at)
		}
	}
}

// State returns the current state of one family of a name, and whether that family is followed.
func (t *Tracker) State(name dnsname.Name, f Family) (State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entryLocked(name, f)
	if e == nil {
		return State{}, false
	}
	s := *e.state
	s.NextAttempt = e.due
	if now := time.Now(); e.inFlight || e.due.Before(now) {
		s.NextAttempt = now
	}
	return s, true
}

// entryLocked returns the entry of one family of a followed name, or nil.
func (t *Tracker) entryLocked(name dnsname.Name, f Family) *entry {
	n := t.names[name]
	if n == nil {
		return nil
	}
	for i, e := range n.entries {
		if families[i] == f && e != nil && e.followers > 0 {
			return e
		}
	}
	return nil
}

// Run queries names and reports changes until ctx is done. It returns when all lookups and callbacks have ended. Call
// it only once.
func (t *Tracker) Run(ctx context.Context) error {
	if len(t.upstreams) == 0 {
		return errors.New("follow names: no resolver is configured")
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if wait, ok := t.startDue(ctx); ok {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-t.wake:
		case <-ctx.Done():
			t.running.Wait()
			return nil
		}
	}
}
