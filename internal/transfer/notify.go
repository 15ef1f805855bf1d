package transfer

import (
	"cmp"
	"container/heap"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Secondary is a server that transfers our zones.
type Secondary struct {
	Addr Remote
	Key  dnsname.Name // TSIG key that signs queries; zero: unsigned
}

// NotifierOptions configures a Notifier.
type NotifierOptions struct {
	Secondaries []Secondary
	Ask         queryFunc    // sends one query over UDP
	Log         *slog.Logger // default: discard
}

// Notifier sends NOTIFY for new serials to secondaries (RFC 1996) and checks whether they have transferred them. It
// keeps only the zones that some secondary does not have yet; all others are in sync.
type Notifier struct {
	opts NotifierOptions
	pub  *publish.Publisher
	work *workers
	stat *notifyStats

	mu          sync.Mutex // guards the rest
	secondaries []Secondary
	round       int // version of secondaries: steps of an earlier version are ignored
	zones       map[uuid.UUID]*pendingZone
	queue       dueHeap
}

// due is the time of the next query to a secondary about a zone. It is ignored if it is not the peer's next any longer.
type due struct {
	at   time.Time
	zone uuid.UUID
	peer int
}

// dueHeap has the earliest entry first.
type dueHeap []due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are for container/heap.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	*h = (*h)[:last]
	return d
}

// pendingZone is a zone that some secondary does not have yet.
type pendingZone struct {
	serial  uint32
	changes []change // the changes that some secondary may lack, oldest first; never empty
	peers   []peer
}

// change is a change of a zone that is being notified.
type change struct {
	serial uint32
	since  time.Time // when it was committed
	from   time.Time // the time of its records; zero: it stands for all earlier changes too
}

// peer is the state of a zone at one secondary.
type peer struct {
	done     bool // has the serial
	check    bool // may have the serial: after a start this is unknown, and one query answers it
	acked    bool // has answered a NOTIFY of the serial
	alive    bool // has answered the last message
	busy     bool // a query is in flight
	tries    int
	next     time.Time
	has      uint32 // last known serial of the secondary; 0: not known
	problem  string
	reminded time.Time // time of the last NOTIFY
	asked    time.Time // time of the last query, or of the first change that it lacks
}

// Progress is the state of a zone at a secondary.
type Progress struct {
	Secondary    Secondary
	InSync       bool
	Acknowledged bool   // answered the NOTIFY of a serial that it does not have yet
	Has          uint32 // serial of the secondary; 0: unknown
	Since        time.Time
	From         time.Time // records with changes before this time are at the secondary; zero: not known
	Next         time.Time
	Problem      string // why it does not have the serial, as far as known
}

const (
	parallelQueries = 64

	firstPause   = 200 * time.Millisecond // between a NOTIFY and the first query: a transfer takes about that long
	longestPause = 5 * time.Minute
	remindAfter  = 10 * time.Second // a secondary may have lost a NOTIFY that it answered

	// askAfter is how long a secondary gets only NOTIFY messages while the zone changes all the time. Then it is asked
	// which of the changes it has.
	askAfter = time.Second

	// maxChanges bounds the changes of a zone that are kept apart. A second of a busy zone has fewer.
	maxChanges = 64
)

// NewNotifier returns a Notifier. Call Run to start it.
func NewNotifier(pub *publish.Publisher, opts NotifierOptions) *Notifier {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Notifier{opts: opts, pub: pub, work: newWorkers(parallelQueries), stat: newNotifyStats(),
		secondaries: opts.Secondaries, zones: map[uuid.UUID]*pendingZone{}}
}

// Committed registers new serials without blocking. It is the callback for publish.Options.Committed.
func (n *Notifier) Committed(changes []store.Change) {
	now := time.Now()
	n.mu.Lock()
	if len(n.secondaries) == 0 {
		changes = nil
	}
	for _, c := range changes {
		if c.To != c.From {
			n.set(c.Zone, change{c.To, now, c.Time}, false)
		}
	}
	n.mu.Unlock()
	n.work.signal()
}

// Notify sends NOTIFY for the serial of a zone again. Without secondaries it does nothing.
func (n *Notifier) Notify(z zone.Zone) {
	n.mu.Lock()
	// A newer change may have been committed since the caller read the zone.
	if p := n.zones[z.ID]; len(n.secondaries) > 0 && (p == nil || int32(z.Serial-p.serial) >= 0) {
		n.set(z.ID, change{serial: z.Serial, since: time.Now()}, false)
	}
	n.mu.Unlock()
	n.work.signal()
}

// set starts the notification of a change. Callers hold n.mu.
func (n *Notifier) set(id uuid.UUID, c change, check bool) {
	z := n.zones[id]
	if z == nil {
		z = &pendingZone{peers: make([]peer, len(n.secondaries))}
		n.zones[id] = z
	}
	z.add(c)
	for i := range z.peers {
		p := &z.peers[i]
		if p.done || p.asked.IsZero() {
			p.asked = c.since
		}
		p.done, p.check, p.acked, p.tries = false, check, false, 0
		n.schedule(id, z, i, c.since)
	}
}

// add adds a change. When there are too many it merges the two oldest: a secondary that lacks the second one counts as
// lacking both.
func (z *pendingZone) add(c change) {
	z.serial = c.serial
	if len(z.changes) == maxChanges {
		z.changes[0].serial = z.changes[1].serial
		z.changes = slices.Delete(z.changes, 1, 2)
	}
	z.changes = append(z.changes, c)
}

// lacks returns the index of the first change that a secondary lacks, as far as known.
func (z *pendingZone) lacks(p *peer) int {
	if p.has == 0 {
		return 0
	}
	lacking := slices.IndexFunc(z.changes, func(c change) bool { return int32(c.serial-p.has) > 0 }) // RFC 1982
	if lacking < 0 {
		return len(z.changes) - 1
	}
	return lacking
}

// learn records the serial of a secondary, and drops the changes that all secondaries have.
func (z *pendingZone) learn(p *peer, has uint32) {
	p.has = has
	first := len(z.changes) - 1
	for i := range z.peers {
		if p := &z.peers[i]; !p.done {
			first = min(first, z.lacks(p))
		}
	}
	z.changes = slices.Delete(z.changes, 0, first)
}

// schedule sets the time of the next query to a secondary. Callers hold n.mu.
func (n *Notifier) schedule(id uuid.UUID, z *pendingZone, peer int, at time.Time) {
	z.peers[peer].next = at
	heap.Push(&n.queue, due{at, id, peer})
}

// Run notifies and queries secondaries until ctx is done. It begins by querying the serials of all zones, because a
// change may have been committed just before the last stop.
func (n *Notifier) Run(ctx context.Context) error {
	defer n.work.Wait()
	for round := -1; ; {
		n.mu.Lock()
		now := n.round
		n.mu.Unlock()
		if now != round {
			round = now
			if err := n.checkAll(); err != nil {
				return err
			}
		}
		list, wait := n.ready(time.Now())
		for _, s := range list {
			n.work.start(ctx, func() { n.step(ctx, s) })
		}
		if ctx.Err() != nil {
			return nil
		}
		n.work.wait(ctx, wait)
	}
}

// SetSecondaries replaces the secondaries. All of them are queried for their serials.
func (n *Notifier) SetSecondaries(list []Secondary) {
	n.mu.Lock()
	if !slices.Equal(list, n.secondaries) {
		n.secondaries, n.zones, n.queue = list, map[uuid.UUID]*pendingZone{}, nil
		n.round++
	}
	n.mu.Unlock()
	n.work.signal()
}

// checkAll schedules a query to every secondary about every zone.
func (n *Notifier) checkAll() error {
	now := time.Now()
	return n.pub.View(func(v store.View) error {
		return v.Zones(func(z zone.Zone) (bool, error) {
			if transferred(z) {
				n.mu.Lock()
				if n.zones[z.ID] == nil && len(n.secondaries) > 0 {
					n.set(z.ID, change{serial: z.Serial, since: now}, true)
				}
				n.mu.Unlock()
			}
			return true, nil
		})
	})
}

// transferred reports whether secondaries may transfer a zone.
func transferred(z zone.Zone) bool { return z.Kind == zone.Primary || z.Kind == zone.Secondary }

// step is one query to one secondary about one zone.
type step struct {
	zone   uuid.UUID
	peer   int
	round  int
	to     Secondary
	serial uint32
	notify bool
}

// ready removes the steps that are due from the queue, and returns them and the time until the next one.
func (n *Notifier) ready(now time.Time) ([]step, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []step
	for len(n.queue) > 0 {
		if d := n.queue[0]; d.at.After(now) {
			return out, d.at.Sub(now)
		}
		d := heap.Pop(&n.queue).(due)
		z := n.zones[d.zone]
		if z == nil {
			continue
		}
		p := &z.peers[d.peer]
		if p.done || p.busy || !p.next.Equal(d.at) {
			continue
		}
		p.busy = true
		notify := p.notify(now)
		if !notify {
			p.asked = now
		}
		out = append(out, step{d.zone, d.peer, n.round, n.secondaries[d.peer], z.serial, notify})
	}
	return out, longestPause
}

// notify reports whether the next message to a secondary is a NOTIFY and not a query.
func (p *peer) notify(now time.Time) bool {
	switch {
	case p.check:
		return false
	case p.acked:
		return now.Sub(p.reminded) > remindAfter
	}
	return !p.alive || now.Sub(p.asked) <= askAfter
}
