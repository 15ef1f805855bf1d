// Package publish takes edits from every API, makes them durable in one ordered commit log, and serves them: when
// Commit returns nil, the change is on the disk and in the answers.
//
// Start with Publisher.Commit in publish.go: it passes a Tx (tx.go) to the edit of the caller. The committer in
// commit.go runs waiting edits as a group, writes the group with one Update of the store, and replaces the snapshot.
// zoneedit.go steps serials and writes the journal; quota.go and pace.go limit what a project can use.
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

// Options configures a Publisher. The zero value works.
type Options struct {
	Log *slog.Logger // discards messages by default

	// JournalLimit is how many changes the journal of a zone keeps; it can be a hundredth longer for a time. The default
	// is DefaultJournalLimit. Of changes that are together larger than maxJournalBytes it keeps fewer.
	//
	// JournalSets is the largest number of record sets that the journal lists for one change. Of a larger change it keeps
	// only the fact. The default is 10,000, because a journal entry is one row.
	JournalLimit int
	JournalSets  int

	// Derive, when set, is called inside each edit with the changes of the edit, and may make further changes. They become
	// part of the edit, and Derive is called with them too. Derive must be quick and must not block: all other edits wait
	// for it.
	Derive func(*Tx, []Changed) error

	// BeforeDurable, when set, is called once for each group, after its edits ran and before the group is durable. When it
	// returns an error, nothing of the group is kept and the callers get that error. A group that it accepts can still
	// fail in the store. Rows of groups are recorded only when BeforeDurable is set.
	BeforeDurable func(*Group) error

	// Quotas apply to projects that have no quotas of their own. The zero value means no limits.
	Quotas Quotas

	// Full, when set, reports whether the memory of the process is full. Zones cannot grow then.
	Full func() bool

	// Committed, when set, is called with the changes of each group after the group is served and before Commit returns.
	Committed func([]store.Change)
}

// DefaultJournalLimit is the default of Options.JournalLimit.
const DefaultJournalLimit = 10_000

// Publisher owns the store and the snapshot that queries read.
type Publisher struct {
	store   store.Store
	opts    Options
	snap    atomic.Pointer[zone.Snapshot]
	swapped atomic.Int64 // time at which snap was last replaced, in Unix nanoseconds
	queue   chan *request
	done    chan struct{} // closed when Run returns
	stats   *stats

	versions versions

	// Only the committer uses these fields.
	pace      pace
	edited    bool // an edit has run
	leftovers bool // there may be journals of deleted zones

	mu     sync.Mutex // guards closed
	closed bool
}

// request is one call of Commit, CommitAlone or Apply, on its path through the committer.
type request struct {
	ctx   context.Context
	actor store.Actor
	fn    func(*Tx) error
	alone bool // the edit runs in a group of its own; a failure undoes the group, not single rows

	replay *replayedGroup // the group of Apply, which has no fn
	tx     *Tx
	panic  any
	done   chan struct{}

	committed bool  // the edit is durable, or it did not fail and had nothing to write
	err       error // the result of Commit; a durable edit has one when its zone could not be loaded to be served
}

// groupLimit bounds how many waiting edits one fsync covers, and so how long the first of them waits.
const groupLimit = 256

// Open opens a publisher on a store and loads all zones. It commits nothing until Run is called.
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
		stats: newStats()}
	zones, err := p.load()
	if err != nil {
		return nil, err
	}
	p.swap(zone.NewSnapshot(zones...))
	debug.FreeOSMemory() // loading a million names needs memory that Go would otherwise keep for minutes
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
			return zone.NewNodes(z.ID, z.Name), nil // without an SOA record, so that the answer is SERVFAIL
		}
	}
	if err := v.Served(z, l.Add); err != nil {
		return nil, fmt.Errorf("load zone %s: %w", z.Name, err)
	}
	return l.Done(), nil
}

// Snapshot returns the zones that are served now.
func (p *Publisher) Snapshot() *zone.Snapshot { return p.snap.Load() }

func (p *Publisher) swap(s *zone.Snapshot) {
	p.snap.Store(s)
	p.swapped.Store(time.Now().UnixNano())
}

// View calls fn with a consistent view of the store.
func (p *Publisher) View(fn func(store.View) error) error {
	return p.store.View(func(r store.Reader) error { return fn(store.NewView(r)) })
}

// Read returns the result of fn, which reads from a consistent view of the store.
func Read[T any](p *Publisher, fn func(store.View) (T, error)) (out T, err error) {
	err = p.View(func(v store.View) (err error) {
		out, err = fn(v)
		return err
	})
	return out, err
}

// Backup writes a consistent copy of the store while it is in use.
func (p *Publisher) Backup(w io.Writer) error { return p.store.Backup(w) }

// ErrClosed reports that the server is shutting down and takes no further changes.
var ErrClosed = fmt.Errorf("shutting down: %w", store.ErrUnavailable)

// Commit runs fn and makes its writes durable and served. fn reads and writes through its Tx as if no other edit ran.
// When fn returns an error, none of its writes is kept, and Commit returns that error. When ctx ends before fn runs, fn
// does not run; once fn has run, Commit waits for the outcome and returns it.
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
		case <-r.done: // both channels are ready: return the outcome of the edit
		default:
			return ErrClosed
		}
	}
	if r.panic != nil {
		panic(r.panic) // in the goroutine that called Commit, so that its stack shows the caller
	}
	return r.err
}

// Run commits edits until ctx ends. Then it commits the edits that still wait, and returns.
func (p *Publisher) Run(ctx context.Context) error {
	defer close(p.done)
	for {
		if r := p.nextEdit(); r != nil {
			p.commit(r)
			continue
		}
		if p.leftovers && ctx.Err() == nil {
			p.commitLeftover(ctx)
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
			// The loop ends, because submit puts no further edits into the queue. An edit that passed the check of submit
			// just before can come after the last nextEdit. Its fn never runs, and its caller gets ErrClosed: that is true.
			for r := p.nextEdit(); r != nil; r = p.nextEdit() {
				p.commit(r)
			}
			return nil
		}
	}
}

// Check returns an error when the store cannot be read.
func (p *Publisher) Check() error {
	return p.View(func(v store.View) error {
		_, err := v.Zone(uuid.Nil)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
}
