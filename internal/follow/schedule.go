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
	name    dnsname.Name
	entries [len(families)]*entry // nil where the family is not followed
	telling bool                  // a callback is running, or about to
	landed  chan struct{}         // closed when nothing of it is in flight any more; nil: nobody waits for that
}

// entry is one family of a followed name. It stays while it is in flight, even if all its followers have gone: one who
// comes back gets the result of the lookup that is under way.
type entry struct {
	node      *node
	followers int
	state     *State // replaced, never changed
	told      *State // what followers know

	due      time.Time     // zero: before all others
	early    time.Duration // how much sooner than due would do as well
	late     time.Duration // and how much later
	place    int           // in the queue
	inFlight bool          // is being asked for, and not in the queue
	doubtful bool          // waits in the queue of those that failed, or is in flight as one of them
	wanted   bool          // somebody wants to know what comes of it
	news     bool          // and it has come
	pieces   []piece       // of the last answer, if that has a chain; else the state tells
	cached   bool          // the resolver has it in a cache, where it cannot be renewed before its TTL is over
}

func (e *entry) family() Family {
	return families[slices.Index(e.node.entries[:], e)]
}

// other is the other family of the name, if that is followed; else nil.
func (e *entry) other() *entry {
	o := e.node.entries[1-slices.Index(e.node.entries[:], e)]
	if o == nil || o.followers == 0 {
		return nil
	}
	return o
}

// wait makes an entry due.
func (e *entry) wait(now time.Time, s span) {
	e.due, e.early, e.late = now.Add(s.wait), s.wait-s.from, s.until-s.wait
}

// meet is a moment near the entry's own at which another would have it asked as well; not ok, if there is none.
func (e *entry) meet(o *entry) (at time.Time, ok bool) {
	at = o.due
	if from := e.due.Add(-e.early); at.Before(from) {
		at = from
	}
	if until := e.due.Add(e.late); at.After(until) {
		at = until
	}
	return at, !at.Before(o.due.Add(-o.early)) && !at.After(o.due.Add(o.late))
}

// move gives an entry another moment within its bounds.
func (e *entry) move(at time.Time) {
	by := at.Sub(e.due)
	e.due, e.early, e.late = at, e.early+by, e.late-by
}

// joinLocked has an entry that is about to wait asked together with the other family of its name, where the bounds of both
// allow it: a target that moves with both is found to have moved in one moment, and not in two.
func (t *Tracker) joinLocked(e *entry) {
	o := e.other()
	if o == nil || o.inFlight {
		return
	}
	if at, ok := e.meet(o); ok {
		e.move(at)
		o.move(at)
		t.lineOf(o).moved(o)
	}
}

// nudge makes Run look at the queue.
func (t *Tracker) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// startDue begins to ask for what is due, and tells how long to wait for the next; not ok, if that is not for the clock to say.
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
		t.lineOf(e).remove(e)
		e.inFlight = true
		t.inFlight++
		if e.doubtful {
			t.doubts++
		}
		name, f := e.node.name, e.family()
		t.running.Go(func() { t.finish(ctx, e, t.look(ctx, name, f)) })
	}
}

// nextLocked is the entry to ask for next, now or later; nil, if there is none, or no slot for it. Names that failed get half of
// the slots: each may hold one until it times out, and so many of them as one pleases would hold up all others.
func (t *Tracker) nextLocked() *entry {
	slots := t.upstreams.slots()
	if t.inFlight >= slots {
		return nil
	}
	var next *entry
	if len(t.queue) > 0 {
		next = t.queue[0]
	}
	if len(t.doubtful) > 0 && t.doubts < max(1, slots/2) && (next == nil || t.doubtful[0].due.Before(next.due)) {
		next = t.doubtful[0]
	}
	return next
}

// pushLocked makes an entry wait.
func (t *Tracker) pushLocked(e *entry) {
	e.doubtful = e.state.Err != nil
	t.lineOf(e).push(e)
}

// lineOf is the queue that an entry waits in.
func (t *Tracker) lineOf(e *entry) *queue {
	if e.doubtful {
		return &t.doubtful
	}
	return &t.queue
}

// finish takes in what came of a lookup.
func (t *Tracker) finish(ctx context.Context, e *entry, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.nudge()
	t.inFlight--
	e.inFlight = false
	if e.doubtful {
		t.doubts--
	}
	e.node.land()
	if e.followers == 0 {
		t.dropLocked(e)
		return
	}
	now := time.Now()
	if ctx.Err() != nil { // given up, which says nothing of the name
		e.wait(now, span{})
		t.pushLocked(e)
		return
	}
	t.metrics.looked(e.family(), o)
	o = e.uncounted(o, now)
	s := e.state.after(o, now)
	e.wait(now, t.waitLocked(e, &s, o, now))
	t.joinLocked(e)
	s.NextAttempt = e.due
	e.state = &s
	t.pushLocked(e)
	e.news, e.wanted = e.news || e.wanted, false
	if !e.news && !s.differs(e.told) {
		e.told = e.state // so that the old one is not kept
	} else if !e.node.telling {
		e.node.telling = true
		t.running.Go(func() {
			t.await(ctx, e.node)
			t.tell(e.node)
		})
	}
}

// waitLocked is how long to wait for the next attempt after the state became s.
func (t *Tracker) waitLocked(e *entry, s *State, o outcome, now time.Time) span {
	switch {
	case o.err != nil:
		return t.timing.retry(s.Failures)
	case o.answer != Found:
		return t.timing.negative(o.ttl)
	}
	if o.ttl < s.TTL { // a cache gave us the rest of what we had, or of what it fetched for somebody else
		e.cached = e.cached || now.Before(e.state.ValidUntil)
		return t.timing.rest(o.ttl)
	}
	return t.timing.fresh(o.ttl, e.cached)
}

// dropLocked forgets an entry that nobody follows, and its name if that was all of it.
func (t *Tracker) dropLocked(e *entry) {
	if e.followers > 0 || e.inFlight {
		return
	}
	n := e.node
	if i := slices.Index(n.entries[:], e); i >= 0 {
		t.lineOf(e).remove(e)
		n.entries[i] = nil
	}
	t.dropNameLocked(n)
}

// dropNameLocked forgets a name that has nothing left. One whose callback is running stays, so that the name's next
// follower is not told at the same time.
func (t *Tracker) dropNameLocked(n *node) {
	if n.entries == [len(families)]*entry{} && !n.telling {
		delete(t.names, n.name)
	}
}

// land tells who waits for it that nothing of the name is in flight.
func (n *node) land() {
	if n.landed != nil && !n.inFlight() {
		close(n.landed)
		n.landed = nil
	}
}

func (n *node) inFlight() bool {
	return slices.ContainsFunc(n.entries[:], func(e *entry) bool { return e != nil && e.inFlight })
}

// await waits a moment for what of a name is in flight.
func (t *Tracker) await(ctx context.Context, n *node) {
	t.mu.Lock()
	if !n.inFlight() {
		t.mu.Unlock()
		return
	}
	if n.landed == nil {
		n.landed = make(chan struct{})
	}
	landed := n.landed
	t.mu.Unlock()
	timer := time.NewTimer(together)
	defer timer.Stop()
	select {
	case <-landed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// tell calls back for a name until its followers know everything.
func (t *Tracker) tell(n *node) {
	for {
		c, ok := t.untold(n)
		if !ok {
			return
		}
		t.metrics.changes.Inc()
		t.opts.Changed(c)
	}
}

// untold is a change that the followers of a name do not know. From here on they do.
func (t *Tracker) untold(n *node) (Change, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range n.entries {
		if e == nil || e.followers == 0 || !e.news && !e.state.differs(e.told) {
			continue
		}
		c := Change{Name: n.name, Family: families[i], Old: *e.told, New: *e.state}
		e.told, e.news = e.state, false
		return c, true
	}
	n.telling = false
	t.dropNameLocked(n)
	return Change{}, false
}

// queue is a heap of the entries that wait, the next one first.
type queue []*entry

func (q *queue) push(e *entry) { heap.Push((*byDue)(q), e) }

func (q *queue) remove(e *entry) {
	if e.place < len(*q) && (*q)[e.place] == e {
		heap.Remove((*byDue)(q), e.place)
	}
}

// move gives a waiting entry another time, and no choice.
func (q *queue) move(e *entry, due time.Time) {
	e.due, e.early, e.late = due, 0, 0
	q.moved(e)
}

// moved takes in that a waiting entry has another time.
func (q *queue) moved(e *entry) { heap.Fix((*byDue)(q), e.place) }

// byDue is the queue as container/heap wants it.
type byDue []*entry

func (q byDue) Len() int           { return len(q) }
func (q byDue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q byDue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *byDue) Push(x any) {
	e := x.(*entry)
	e.place = len(*q)
	*q = append(*q, e)
}

func (q *byDue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
