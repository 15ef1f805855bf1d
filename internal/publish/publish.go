// Package publish takes edits from every API, makes them durable in one ordered commit log, and serves them: when
// Commit returns nil, the change is on the disk and in the answers.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Options of a Publisher; the zero value works.
type Options struct {
	Log *slog.Logger // default: none

	// JournalLimit is how many changes the history of a zone keeps, and at times a hundredth more; default
	// DefaultJournalLimit. JournalSets is how many record sets one change may touch before the history keeps its fact
	// alone; default 10,000, because a journal entry is one row.
	JournalLimit int
	JournalSets  int

	// Derive, when set, is called inside each edit with what the edit changed, and may change more: that becomes part of
	// the edit, and Derive is called with it too. It must be quick and must not block: every other edit waits for it.
	Derive func(*Tx, []Changed) error

	// BeforeDurable, when set, is called once for each group, after its edits ran and before it is made durable. When it
	// returns an error, nothing of the group is kept, and the callers get that error. A group that it accepts can still
	// fail, when the store refuses. Without it the rows of groups are not recorded.
	BeforeDurable func(*Group) error

	// Quotas are for projects that have none of their own; the zero value is no limit.
	Quotas Quotas

	// Full, when set, reports whether zones may not grow because the memory of the process is full.
	Full func() bool

	// Committed, when set, is called with the changes of each group once it is served, before Commit returns to the
	// callers.
	Committed func([]store.Change)
}

// DefaultJournalLimit is the default of Options.JournalLimit.
const DefaultJournalLimit = 10_000

// Publisher owns the store and the snapshot that queries read.
type Publisher struct {
	store   store.Store
	opts    Options
	snap    atomic.Pointer[zone.Snapshot]
	swapped atomic.Int64 // when snap was last replaced, unix nanoseconds
	queue   chan *request
	done    chan struct{} // closed when Run has ended
	stats   *stats

	versions versions

	journal map[uuid.UUID]int // entries in each zone's journal; only the committer touches it
	pace    pace

	mu     sync.Mutex // guards closed
	closed bool
}

type request struct {
	ctx   context.Context
	actor store.Actor
	fn    func(*Tx) error
	alone bool // runs in a group of its own, and is undone only with it

	decided *decided // of Apply; then there is no fn
	tx      *Tx
	panic   any
	done    chan struct{}

	committed bool  // the edit is durable, or it did not fail and had nothing to write
	err       error // the result of Commit; a durable edit has one when its zone could not be loaded to be served
}

// groupLimit bounds how many waiting edits one fsync carries, and so how long the first of them waits.
const groupLimit = 256

// Open reads all zones of a store. Commits begin with Run.
func Open(st store.Store, opts Options) (*Publisher, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	opts.JournalLimit = cmp.Or(opts.JournalLimit, DefaultJournalLimit)
	opts.JournalSets = cmp.Or(opts.JournalSets, 10_000)
	opts.Quotas = cmp.Or(opts.Quotas, unlimited)
	if err := store.Init(st); err != nil {
		return nil, err
	}
	p := &Publisher{store: st, opts: opts, queue: make(chan *request, groupLimit), done: make(chan struct{}),
		stats: newStats(), journal: map[uuid.UUID]int{}}
	zones, err := p.load()
	if err != nil {
		return nil, err
	}
	p.swap(zone.NewSnapshot(zones...))
	debug.FreeOSMemory() // loading a million names needs memory that Go would keep for minutes
	return p, nil
}

func (p *Publisher) load() ([]*zone.Nodes, error) {
	var zones []*zone.Nodes
	err := p.View(func(v store.View) error {
		return v.Zones(func(z zone.Zone) (bool, error) {
			n, err := loadZone(v, z)
			zones = append(zones, n)
			return true, err
		})
	})
	return zones, err
}

func loadZone(v store.View, z zone.Zone) (*zone.Nodes, error) {
	l := zone.NewLoader(z.ID, z.Name)
	l.Expect(z.Sets)
	if z.Kind == zone.Overlay {
		l.Overlay()
	}
	if z.Kind == zone.Secondary {
		s, err := SecondaryOf(v, z.ID)
		if err != nil {
			return nil, fmt.Errorf("load zone %s: %w", z.Name, err)
		}
		if s.Expired {
			return zone.NewNodes(z.ID, z.Name), nil // without an SOA, so that the answer is SERVFAIL
		}
	}
	if err := v.Served(z, l.Add); err != nil {
		return nil, fmt.Errorf("load zone %s: %w", z.Name, err)
	}
	return l.Done(), nil
}

// Snapshot returns what is served now.
func (p *Publisher) Snapshot() *zone.Snapshot { return p.snap.Load() }

func (p *Publisher) swap(s *zone.Snapshot) {
	p.snap.Store(s)
	p.swapped.Store(time.Now().UnixNano())
}

// View reads the store at one moment.
func (p *Publisher) View(fn func(store.View) error) error {
	return p.store.View(func(r store.Reader) error { return fn(store.NewView(r)) })
}

// Read returns what fn reads from the store at one moment.
func Read[T any](p *Publisher, fn func(store.View) (T, error)) (out T, err error) {
	err = p.View(func(v store.View) (err error) {
		out, err = fn(v)
		return err
	})
	return out, err
}

// Backup writes a consistent copy of the store while it is in use.
func (p *Publisher) Backup(w io.Writer) error { return p.store.Backup(w) }

// ErrClosed says that the program is about to end and takes no further changes.
var ErrClosed = fmt.Errorf("shutting down: %w", store.ErrUnavailable)

// Commit runs fn, which reads and writes through its Tx as if it were alone, and makes what it wrote durable and
// served. When fn returns an error nothing of it is kept, and Commit returns that error. When ctx ends first, fn does
// not run; once it has run, Commit waits for the outcome and returns it.
func (p *Publisher) Commit(ctx context.Context, actor store.Actor, fn func(*Tx) error) error {
	return p.submit(&request{ctx: ctx, actor: actor, fn: fn, done: make(chan struct{})})
}

func (p *Publisher) submit(r *request) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	p.mu.Unlock()
	select {
	case p.queue <- r:
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-p.done:
		return ErrClosed
	}
	select {
	case <-r.done:
	case <-p.done:
		select {
		case <-r.done: // both are ready: the outcome is known
		default:
			return ErrClosed
		}
	}
	if r.panic != nil {
		panic(r.panic) // in the goroutine that called Commit, where its owner can see it
	}
	return r.err
}

// Run commits edits until ctx ends. Then it commits the edits that are still waiting, and returns.
func (p *Publisher) Run(ctx context.Context) error {
	defer close(p.done)
	for {
		if r := p.nextEdit(); r != nil {
			p.commit(r)
			continue
		}
		select {
		case r := <-p.queue:
			if !p.pace.hold(r, time.Now()) {
				p.commit(r)
			}
		case <-p.pace.wait():
		case <-ctx.Done():
			p.mu.Lock()
			p.closed = true
			p.mu.Unlock()
			p.pace.off = true
			for r := p.nextEdit(); r != nil; r = p.nextEdit() { // only Run takes from the queue
				p.commit(r)
			}
			return nil
		}
	}
}

// Check reports whether the store can be read.
func (p *Publisher) Check() error {
	return p.View(func(v store.View) error {
		_, err := v.Zone(uuid.Nil)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
}
