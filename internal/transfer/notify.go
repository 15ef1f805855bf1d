package transfer

import (
	"cmp"
	"container/heap"
	"context"
	"log/slog"
	"net/netip"
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
	Addr netip.AddrPort
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
	serial uint32
	peers  []peer
}

// peer is the state of a zone at one secondary.
type peer struct {
	done     bool // has the serial
	check    bool // may have the serial: after a start this is unknown, and one query answers it
	acked    bool // has answered a NOTIFY of the serial
	busy     bool // a query is in flight
	tries    int
	since    time.Time // when the serial was committed
	next     time.Time
	has      uint32 // last known serial of the secondary
	problem  string
	reminded time.Time // time of the last NOTIFY
}

// Progress is the state of a zone at a secondary.
type Progress struct {
	Secondary    Secondary
	InSync       bool
	Acknowledged bool   // answered the NOTIFY of a serial that it does not have yet
	Has          uint32 // serial of the secondary; 0: unknown
	Since        time.Time
	Next         time.Time
	Problem      string // why it does not have the serial, as far as known
}

const (
	parallelQueries = 64

	firstPause   = 200 * time.Millisecond // between a NOTIFY and the first query: a transfer takes about that long
	longestPause = 5 * time.Minute
	remindAfter  = 10 * time.Second // a secondary may have lost a NOTIFY that it answered
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
			n.set(c.Zone, c.To, now, false)
		}
	}
	n.mu.Unlock()
	n.work.signal()
}

// set starts the notification of a serial. Callers hold n.mu.
func (n *Notifier) set(id uuid.UUID, serial uint32, at time.Time, check bool) {
	z := n.zones[id]
	if z == nil {
		z = &pendingZone{peers: make([]peer, len(n.secondaries))}
		n.zones[id] = z
	}
	z.serial = serial
	for i := range z.peers {
		p := &z.peers[i]
		if p.done || p.since.IsZero() {
			p.since = at
		}
		p.done, p.check, p.acked, p.tries = false, check, false, 0
		n.schedule(id, z, i, at)
	}
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
					n.set(z.ID, z.Serial, now, true)
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
		remind := p.acked && now.Sub(p.reminded) > remindAfter
		out = append(out, step{d.zone, d.peer, n.round, n.secondaries[d.peer], z.serial, !p.check && (!p.acked || remind)})
	}
	return out, longestPause
}
