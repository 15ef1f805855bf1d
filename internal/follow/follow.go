// Package follow keeps track of the addresses that names resolve to, and tells when they change.
//
// Names go in by Follow, changes come out by a callback. How many follow a name does not matter: it is asked for once,
// each family by itself, when its TTL is nearly over. A name whose servers fail keeps what was known, and is asked again
// after a while.
//
// Changes come by a callback and not by a channel, because what matters to a follower is the newest state of a name, not
// its history. A channel is either unbounded, or full one day, and then one slow reader stops the clock of all names. Here a
// name whose callback is running is told again when it has returned, once, from what it was last told to what is true by
// then. So memory is bounded, callbacks for one name never overlap, and other names do not wait for them.
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

// Options of a Tracker. Exchanger, Servers and Changed must be given; zeros elsewhere are the defaults.
type Options struct {
	Exchanger resolve.Exchanger
	Servers   []resolve.Server // recursive resolvers; a later one is asked when those before it fail or are busy

	// Changed is told of every change of the addresses, the TTL, the answer or the cause of failure of a followed name, and of
	// what came of a Refresh, be it the same. It is
	// never called twice at once for one name, its two families included. It may call the Tracker. Run waits for it to end.
	Changed func(Change)

	Floor   time.Duration // no name is asked more often, unless it failed; default DefaultFloor
	Ceiling time.Duration // each is asked that often, however long its TTL; default DefaultCeiling
	Timeout time.Duration // of one query; default 2 s

	Parallel int // names asked at once of one server; default 16
	// Rate bounds the queries that go in any second, to all servers together; default 100. Those that ask again over TCP for a
	// reply that was cut off are among them.
	Rate int

	Rand func() float64 // chance in [0, 1), drawn by one goroutine at a time; default math/rand/v2
}

// Defaults of the Options.
const (
	DefaultFloor   = 30 * time.Second
	DefaultCeiling = 30 * time.Minute
)

// withDefaults is o with the defaults in the place of zeros.
func (o Options) withDefaults() Options {
	o.Floor = cmp.Or(o.Floor, DefaultFloor)
	o.Ceiling = max(cmp.Or(o.Ceiling, DefaultCeiling), o.Floor)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Parallel = cmp.Or(o.Parallel, 16)
	o.Rate = cmp.Or(o.Rate, 100)
	// A query over TCP waits for its turn within the time of the one that was cut off: no more may be before it than go in
	// half of that.
	o.Parallel = min(o.Parallel, max(1, int(float64(o.Rate)*o.Timeout.Seconds()/2)))
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

// Tracker follows names. Its methods may be called at any time, by anybody.
type Tracker struct {
	opts      Options
	timing    timing
	upstreams upstreams
	limiter   *limiter
	jumps     *rate.Limiter // of the queue, by Refresh
	metrics   *metrics
	wake      chan struct{}  // Run has something new to look at
	running   sync.WaitGroup // lookups and callbacks

	mu        sync.Mutex // guards the following, and all nodes and entries
	names     map[dnsname.Name]*node
	queue     queue
	doubtful  queue // names whose last attempt failed
	followers int
	inFlight  int
	doubts    int // of inFlight
}

// New makes a Tracker. It begins to ask with Run.
func New(opts Options) *Tracker {
	opts = opts.withDefaults()
	t := &Tracker{
		opts:    opts,
		timing:  timing{opts.Floor, opts.Ceiling, opts.Rand},
		limiter: newLimiter(opts.Rate),
		jumps:   rate.NewLimiter(rate.Limit(max(2, opts.Rate/4)), max(2, opts.Rate/4)), // 2: the families of one name
		wake:    make(chan struct{}, 1),
		names:   map[dnsname.Name]*node{},
	}
	for i, s := range opts.Servers {
		if !slices.Contains(opts.Servers[:i], s) {
			t.upstreams = append(t.upstreams, newUpstream(s, opts.Parallel))
		}
	}
	t.metrics = newMetrics()
	return t
}

// Follow begins to follow the addresses of a name. A name that nobody followed yet is asked for at once, and Changed tells
// what came of it; if somebody did, State has what is known. Each Follow is ended by one Unfollow of the same families.
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
			e = &entry{node: n, state: &unknown, told: &unknown, due: time.Now()}
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

// nodeLocked is the node of a name, followed or not.
func (t *Tracker) nodeLocked(name dnsname.Name) *node {
	n := t.names[name]
	if n == nil {
		n = &node{name: name}
		t.names[name] = n
	}
	return n
}

// unknown is the state of a name before anything is known of it.
var unknown State

// Unfollow ends one Follow. After the last of a name nothing is told of it any more, but a callback that is under way may
// still be running.
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

// Refresh asks for a followed name now, before all others, unless it is being asked for already. Of many that are refreshed at
// once only some go before all others, and the rest wait like a name that is due now: else whoever may refresh could keep
// other names from ever being asked for. What comes of it is told, also if it is nothing new. It reports whether the name is
// followed.
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
		followed, e.wanted = true, true
		switch {
		case e.inFlight:
		case t.jumps.AllowN(now, 1):
			t.lineOf(e).move(e, time.Time{})
		case e.due.After(now):
			t.lineOf(e).move(e, now)
		}
	}
	t.nudge()
	return followed
}

// Refreshing reports whether a Refresh of a name is under way, so that Changed has yet to tell what came of it.
func (t *Tracker) Refreshing(name dnsname.Name) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[name]
	return n != nil && slices.ContainsFunc(n.entries[:], func(e *entry) bool { return e != nil && e.wanted })
}

// Seed gives what was known of one family of a name before the program started, and is followed by Follow. Followers know it
// too, so they are told only of changes from it. The name is asked for after a while, which differs between names, so that a
// restart does not ask for all of them at once. A name that is followed already is left as it is.
func (t *Tracker) Seed(name dnsname.Name, f Family, s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, i := t.nodeLocked(name), slices.Index(families[:], f)
	if n.entries[i] != nil {
		return
	}
	now := time.Now()
	e := &entry{node: n, state: &s, told: &s}
	n.entries[i] = e
	e.wait(now, t.timing.seeded(s, now))
	if o := n.entries[1-i]; o != nil {
		if at, ok := e.meet(o); ok && at.Equal(o.due) {
			e.move(at)
		}
	}
}

// State is what is known of one family of a name, and whether that is followed.
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

// entryLocked is the entry of one family of a followed name, or nil.
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

// Run asks for names and tells changes until ctx ends, and returns when all it began has ended. It must run only once.
func (t *Tracker) Run(ctx context.Context) error {
	if len(t.upstreams) == 0 {
		return errors.New("follow names: no server to ask is configured")
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
