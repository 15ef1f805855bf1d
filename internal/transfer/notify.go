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
	Key  dnsname.Name // TSIG key to sign with; the zero Name for none
}

// NotifierOptions say whom to tell.
type NotifierOptions struct {
	Secondaries []Secondary
	Ask         asker        // sends one query over UDP
	Log         *slog.Logger // default: none
}

// Notifier tells secondaries of new serials (RFC 1996), and finds out whether they have them. It remembers only zones that
// some secondary does not have yet; all others are in sync.
type Notifier struct {
	opts NotifierOptions
	pub  *publish.Publisher
	work *workers
	stat *notifyStats

	mu          sync.Mutex // guards the rest
	secondaries []Secondary
	round       int // of secondaries: what belongs to an earlier one means nothing
	zones       map[uuid.UUID]*notified
	queue       dueHeap
}

// due is when a secondary is to be asked about a zone. One that is not the peer's next any more means nothing.
type due struct {
	at   time.Time
	zone uuid.UUID
	peer int
}

// dueHeap has the earliest first.
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

// notified is a zone on its way to the secondaries.
type notified struct {
	serial uint32
	peers  []peer
}

// peer is what is known of one secondary's copy of a zone.
type peer struct {
	done     bool // it has the serial
	check    bool // it may have it: after a start nobody knows, and asking is enough
	acked    bool // it has answered a NOTIFY of the serial
	busy     bool // a query is on its way
	tries    int
	since    time.Time // of the serial
	next     time.Time
	has      uint32 // the serial it was last seen with
	problem  string
	reminded time.Time // last NOTIFY
}

// Progress is how far a secondary has come with a zone.
type Progress struct {
	Secondary    Secondary
	InSync       bool
	Acknowledged bool   // it has answered the NOTIFY of a serial that it does not have yet
	Has          uint32 // 0: not known
	Since        time.Time
	Next         time.Time
	Problem      string // why it does not have it, as far as that can be told
}

const (
	parallelQueries = 64

	firstPause   = 200 * time.Millisecond // after a NOTIFY, before the first look: a transfer takes about that long
	longestPause = 5 * time.Minute
	remindAfter  = 10 * time.Second // a secondary may have lost an answered NOTIFY
)

// NewNotifier starts nothing.
func NewNotifier(pub *publish.Publisher, opts NotifierOptions) *Notifier {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Notifier{opts: opts, pub: pub, work: newWorkers(parallelQueries), stat: newNotifyStats(),
		secondaries: opts.Secondaries, zones: map[uuid.UUID]*notified{}}
}

// Committed takes note of new serials. It is for publish.Options.Committed, and waits for nothing.
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
	n.work.poke()
}

// set begins with a serial. n.mu is held.
func (n *Notifier) set(id uuid.UUID, serial uint32, at time.Time, check bool) {
	z := n.zones[id]
	if z == nil {
		z = &notified{peers: make([]peer, len(n.secondaries))}
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

// schedule says when a secondary is to be asked next. n.mu is held.
func (n *Notifier) schedule(id uuid.UUID, z *notified, peer int, at time.Time) {
	z.peers[peer].next = at
	heap.Push(&n.queue, due{at, id, peer})
}

// Run tells and asks until ctx ends. It begins with a look at what the secondaries have: a change may have been made right
// before the last stop.
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

// SetSecondaries changes whom to tell. All of them are asked what they have.
func (n *Notifier) SetSecondaries(list []Secondary) {
	n.mu.Lock()
	if !slices.Equal(list, n.secondaries) {
		n.secondaries, n.zones, n.queue = list, map[uuid.UUID]*notified{}, nil
		n.round++
	}
	n.mu.Unlock()
	n.work.poke()
}

// checkAll asks every secondary about every zone.
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

// transferred reports whether secondaries get a zone at all.
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

// ready takes the steps whose time has come, and tells how long it is until the next one's comes.
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
