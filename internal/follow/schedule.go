package follow

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// node is a followed name.
type node struct {
	name      dnsname.Name
	entries   [len(families)]*entry // nil: the family is not followed
	reporting bool                  // a callback is running or about to run
	idle      chan struct{}         // closed when no lookup of the name is in flight; nil: no waiter
}

// entry is one family of a followed name. It stays while a lookup is in flight, even if all followers are gone: a
// follower that returns gets the result of that lookup.
type entry struct {
	node      *node
	followers int
	state     *State // replaced, never modified
	reported  *State // last state that followers know

	due        time.Time     // time of the next query; zero: before all other entries
	early      time.Duration // how much before due the query may be sent
	late       time.Duration // how much after due the query may be sent
	index      int           // index in the queue
	inFlight   bool          // a lookup is running; the entry is in no queue
	failing    bool          // is in the queue Tracker.failing, or in flight from there
	refreshing bool          // a Refresh waits for the result
	refreshed  bool          // the result of a Refresh is not reported yet
	cachedSets []cachedSet   // record sets of the last answer, if it had a chain; else state has them
	viaCache   bool          // the resolver answers from a cache, so a query before the TTL expires gets nothing new
}

func (e *entry) family() Family {
	return families[slices.Index(e.node.entries[:], e)]
}

// other returns the other family of the name, or nil if that is not followed.
func (e *entry) other() *entry {
	o := e.node.entries[1-slices.Index(e.node.entries[:], e)]
	if o == nil || o.followers == 0 {
		return nil
	}
	return o
}

// schedule sets the time of the next query.
func (e *entry) schedule(now time.Time, s span) {
	e.due, e.early, e.late = now.Add(s.wait), s.wait-s.from, s.until-s.wait
}

// commonTime returns a time within the bounds of both entries, as near to e.due as possible; false: there is none.
func (e *entry) commonTime(o *entry) (at time.Time, ok bool) {
	at = o.due
	if from := e.due.Add(-e.early); at.Before(from) {
		at = from
	}
	if until := e.due.Add(e.late); at.After(until) {
		at = until
	}
	return at, !at.Before(o.due.Add(-o.early)) && !at.After(o.due.Add(o.late))
}

// moveTo sets the time of the next query within the bounds.
func (e *entry) moveTo(at time.Time) {
	by := at.Sub(e.due)
	e.due, e.early, e.late = at, e.early+by, e.late-by
}

// alignLocked schedules an entry together with the other family of its name, where the bounds of both allow it. A
// target that changes both families is then seen to change once, and not twice.
func (t *Tracker) alignLocked(e *entry) {
	o := e.other()
	if o == nil || o.inFlight {
		return
	}
	if at, ok := e.commonTime(o); ok {
		e.moveTo(at)
		o.moveTo(at)
		t.queueOf(o).fix(o)
	}
}

// nudge wakes Run.
func (t *Tracker) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// startDue starts the lookups that are due and returns how long to wait for the next; false: do not wait for a time.
func (t *Tracker) startDue(ctx context.Context) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for {
		e := t.nextLocked()
		if e == nil {
			return 0, false
		}
		if e.due.After(now) {
			return e.due.Sub(now), true
		}
		t.queueOf(e).remove(e)
		e.inFlight = true
		t.inFlight++
		if e.failing {
			t.failingInFlight++
		}
		name, f := e.node.name, e.family()
		t.running.Go(func() { t.finish(ctx, e, t.lookup(ctx, name, f)) })
	}
}

// nextLocked returns the next entry to query, now or later. It returns nil if there is none, or no slot for it. Names
// that failed get half of the slots: each may hold a slot until it times out, and many of them would block all other
// names.
func (t *Tracker) nextLocked() *entry {
	slots := t.upstreams.slots()
	if t.inFlight >= slots {
		return nil
	}
	var next *entry
	if len(t.queue) > 0 {
		next = t.queue[0]
	}
	if len(t.failing) > 0 && t.failingInFlight < max(1, slots/2) && (next == nil || t.failing[0].due.Before(next.due)) {
		next = t.failing[0]
	}
	return next
}

// pushLocked puts an entry into its queue.
func (t *Tracker) pushLocked(e *entry) {
	e.failing = e.state.Err != nil
	t.queueOf(e).push(e)
}

// queueOf returns the queue of an entry.
func (t *Tracker) queueOf(e *entry) *queue {
	if e.failing {
		return &t.failing
	}
	return &t.queue
}

// finish applies the outcome of a lookup.
func (t *Tracker) finish(ctx context.Context, e *entry, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.nudge()
	t.inFlight--
	e.inFlight = false
	if e.failing {
		t.failingInFlight--
	}
	e.node.signalIdle()
	if e.followers == 0 {
		t.dropLocked(e)
		return
	}
	now := time.Now()
	if ctx.Err() != nil { // cancelled, which is no failure of the name
		e.schedule(now, span{})
		t.pushLocked(e)
		return
	}
	t.metrics.countLookup(e.family(), o)
	o = e.restoreTTLs(o, now)
	s := e.state.after(o, now)
	e.schedule(now, t.waitLocked(e, &s, o, now))
	t.alignLocked(e)
	s.NextAttempt = e.due
	e.state = &s
	t.pushLocked(e)
	e.refreshed, e.refreshing = e.refreshed || e.refreshing, false
	if !e.refreshed && !s.differs(e.reported) {
		e.reported = e.state // release the old state
	} else if !e.node.reporting {
		e.node.reporting = true
		t.running.Go(func() {
			t.awaitIdle(ctx, e.node)
			t.report(e.node)
		})
	}
}

// waitLocked returns the wait until the next attempt after the state became s.
func (t *Tracker) waitLocked(e *entry, s *State, o outcome, now time.Time) span {
	switch {
	case o.err != nil:
		return t.timing.retry(s.Failures)
	case o.answer != Found:
		return t.timing.negative(o.ttl)
	}
	if o.ttl < s.TTL { // a cache returned the remainder of our answer, or of one that it fetched for another client
		e.viaCache = e.viaCache || now.Before(e.state.ValidUntil)
		return t.timing.remainder(o.ttl)
	}
	return t.timing.fresh(o.ttl, e.viaCache)
}

// dropLocked removes an entry without followers, and its node if that was the last entry.
func (t *Tracker) dropLocked(e *entry) {
	if e.followers > 0 || e.inFlight {
		return
	}
	n := e.node
	if i := slices.Index(n.entries[:], e); i >= 0 {
		t.queueOf(e).remove(e)
		n.entries[i] = nil
	}
	t.dropNameLocked(n)
}

// dropNameLocked removes a node without entries. A node whose callback is running stays, so that a callback for the
// next follower of the name cannot overlap with it.
func (t *Tracker) dropNameLocked(n *node) {
	if n.entries == [len(families)]*entry{} && !n.reporting {
		delete(t.names, n.name)
	}
}

// signalIdle wakes awaitIdle if no lookup of the name is in flight.
func (n *node) signalIdle() {
	if n.idle != nil && !n.inFlight() {
		close(n.idle)
		n.idle = nil
	}
}

func (n *node) inFlight() bool {
	return slices.ContainsFunc(n.entries[:], func(e *entry) bool { return e != nil && e.inFlight })
}

// awaitIdle waits up to familyWait for the lookups of a name that are in flight.
func (t *Tracker) awaitIdle(ctx context.Context, n *node) {
	t.mu.Lock()
	if !n.inFlight() {
		t.mu.Unlock()
		return
	}
	if n.idle == nil {
		n.idle = make(chan struct{})
	}
	idle := n.idle
	t.mu.Unlock()
	timer := time.NewTimer(familyWait)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// report calls Changed for a name until its followers know the current state.
func (t *Tracker) report(n *node) {
	for {
		c, ok := t.nextChange(n)
		if !ok {
			return
		}
		t.metrics.changes.Inc()
		t.opts.Changed(c)
	}
}

// nextChange returns a change that is not reported yet, and marks it as reported.
func (t *Tracker) nextChange(n *node) (Change, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range n.entries {
		if e == nil || e.followers == 0 || !e.refreshed && !e.state.differs(e.reported) {
			continue
		}
		c := Change{Name: n.name, Family: families[i], Old: *e.reported, New: *e.state}
		e.reported, e.refreshed = e.state, false
		return c, true
	}
	n.reporting = false
	t.dropNameLocked(n)
	return Change{}, false
}

// queue is a heap of waiting entries, the next one first.
type queue []*entry

func (q *queue) push(e *entry) { heap.Push((*byDue)(q), e) }

func (q *queue) remove(e *entry) {
	if e.index < len(*q) && (*q)[e.index] == e {
		heap.Remove((*byDue)(q), e.index)
	}
}

// reschedule sets the time of a waiting entry, without bounds around it.
func (q *queue) reschedule(e *entry, due time.Time) {
	e.due, e.early, e.late = due, 0, 0
	q.fix(e)
}

// fix restores the heap after the time of an entry changed.
func (q *queue) fix(e *entry) { heap.Fix((*byDue)(q), e.index) }

// byDue implements heap.Interface for queue.
type byDue []*entry

func (q byDue) Len() int           { return len(q) }
func (q byDue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q byDue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *byDue) Push(x any) {
	e := x.(*entry)
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *byDue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
