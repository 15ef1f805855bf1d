// Package alias makes A and AAAA record sets of ALIAS record sets, and keeps them equal to the addresses of the targets.
//
// The record sets are made inside the edit that is the reason for them (publish.Options.Derive). So they never outlive
// their ALIAS, and follow a target in our own zones in the same commit. follow.Tracker follows targets elsewhere, and what
// it finds becomes edits of this package. The decisions are in docs/designs/007-alias.md.
//
// There are three parts. A way (way.go) is where a target leads, read from the state inside an edit. Judging (judge.go)
// turns the way and what the tracker knows into a Record, of which the record sets are a function (flatten.go). The index
// (index.go) knows which ALIAS depends on which name.
package alias

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Options of a Service; the zero value works.
type Options struct {
	Log *slog.Logger // default: none
}

// maxAddrs is how many addresses of one family are taken over: as many as a record set may have. More are counted in the
// Record.
const maxAddrs = 20

// refreshEvery is how long to wait between two lookups of a target that somebody asked for: anybody who may change a zone
// may ask, and others pay.
const refreshEvery = 5 * time.Second

// Service flattens ALIAS record sets. New makes it, its Derive goes to the publisher, Open begins with the publisher, and
// Run does what lookups bring.
type Service struct {
	opts      Options
	publisher *publish.Publisher
	wake      chan struct{}
	metrics   *metrics
	stale     staleNames

	edits map[*publish.Tx]*edit // whose outcome is not known; only the committer uses it
	marks int                   // number of the last due row; only the committer uses it

	mu       sync.Mutex // guards the following
	tracker  *follow.Tracker
	policy   Policy
	epoch    int // steps with tracker and policy
	index    index
	targets  map[dnsname.Name]bool // the tracker reported a change of them
	due      map[dueName]int       // left to Run by edits, with the number in the row of each
	dirty    map[Key]bool          // to be flattened again
	asked    map[dnsname.Name]time.Time
	swept    time.Time            // when asked was last cleared of what is too old
	followed map[dnsname.Name]int // by how many
	strikes  strikes
}

// New makes a Service without aliases.
func New(opts Options) *Service {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Service{opts: opts, wake: make(chan struct{}, 1), metrics: newMetrics(), edits: map[*publish.Tx]*edit{}, index: newIndex(),
		targets: map[dnsname.Name]bool{}, due: map[dueName]int{}, dirty: map[Key]bool{}, asked: map[dnsname.Name]time.Time{}, followed: map[dnsname.Name]int{},
		strikes: strikes{since: map[*entry]time.Time{}}}
}

// Open reads the rows of all aliases. It comes before the publisher runs.
func (s *Service) Open(p *publish.Publisher) error {
	s.publisher = p
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.View(func(v store.View) error {
		if err := s.openDue(v); err != nil {
			return err
		}
		err := v.EachObject(store.KindAlias, func(id string, value []byte) (bool, error) {
			k, rec, err := readRecord(id, value)
			if err != nil {
				return false, err
			}
			e := s.index.entry(k)
			s.setRecord(e, rec)
			e.names = rec.deps()
			s.index.depend(e, e.names)
			s.followLocked(e, rec.outside())
			return true, nil
		})
		if err != nil {
			return err
		}
		return s.openOwners(v)
	})
}

// SetTracker gives the tracker of outside targets, whose Changed is s.Changed; nil: there is none, and such targets are errors.
// A second one takes over what the first one knew.
func (s *Service) SetTracker(t *follow.Tracker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.tracker
	s.tracker = t
	s.epoch++
	for name := range s.followed {
		if t != nil {
			s.seedLocked(name, old)
			t.Follow(name, follow.Both)
		}
	}
	for k, e := range s.index.entries {
		rec := e.rec
		// One that waits would do so for what the old one was asked, which this one will not tell.
		if !e.outside.IsZero() && (t == nil || rec.Status == statusPending || old == nil && rec.Cause == causeNoResolver) {
			s.dirty[k] = true
		}
	}
	s.nudge()
}

// seedLocked tells the tracker what was known of a name: by the tracker before it, or when the program ended.
func (s *Service) seedLocked(name dnsname.Name, old *follow.Tracker) {
	for i, f := range families {
		if old != nil {
			if st, ok := old.State(name, f); ok && st.Cause() != "" {
				s.tracker.Seed(name, f, st)
				continue
			}
		}
		for e := range s.index.byName[name] {
			if st, ok := e.rec.seed(i); ok && e.outside == name {
				s.tracker.Seed(name, f, st)
				break
			}
		}
	}
}

// SetPolicy changes which addresses are refused; before the first call, Policy's zero value says it. What was taken over and
// is refused now is taken back.
func (s *Service) SetPolicy(p Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.policy
	s.policy = p
	s.epoch++
	s.aimStrikesLocked()
	for k, e := range s.index.entries { // not all of them: a start sets it too
		rec := e.rec
		refused := slices.ContainsFunc(rec.Families[:], func(f Family) bool {
			return f.Cause == causePrivate || f.Cause == causeOwn || f.Cause == causeStaleLimit && p.StaleLimit != old.StaleLimit
		})
		if refused || p.refusesAny(rec) || p.AllZones != rec.AllZones {
			s.dirty[k] = true
		}
	}
	s.nudge()
}

// Changed is the tracker's callback.
func (s *Service) Changed(c follow.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.Same() {
		s.targets[c.Name] = true
	}
	for e := range s.index.byName[c.Name] {
		if e.rec.Status == statusPending { // of the others, however many, there is nothing to be done
			s.dirty[e.key] = true
		}
	}
	s.nudge()
}

// nudge makes Run look.
func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// retryAfter is when to try again what the store did not take.
const retryAfter = time.Second

// Run follows targets and flattens what changed, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	s.nudge()
	for {
		select {
		case <-s.wake:
		case <-s.nextStrike():
			s.strike(time.Now())
		case <-ctx.Done():
			return nil
		}
		err := s.flattenDue(ctx)
		switch {
		case err == nil:
		case errors.Is(err, publish.ErrClosed), ctx.Err() != nil:
			return nil
		default:
			s.opts.Log.Error("flatten aliases", "error", err)
			select { // whatever wakes us in the meantime
			case <-time.After(retryAfter):
			case <-ctx.Done():
				return nil
			}
			s.nudge()
		}
	}
}

// maxBatch is how many aliases one commit of Run flattens, also when all are of one zone: others wait for the commit, some
// 7 ms for this many. Between two commits Run waits for as long as the last one took, so that others have half of the time.
const maxBatch = 100

// flattenDue flattens what lookups and edits left to be done, in steps.
func (s *Service) flattenDue(ctx context.Context) error {
	keys, due := s.takeDue()
	for len(keys) > 0 {
		begin := time.Now()
		n := min(maxBatch, len(keys))
		if err := s.commit(ctx, keys[:n]); err != nil {
			s.putBack(keys, due)
			return err
		}
		if keys = keys[n:]; len(keys) == 0 {
			break
		}
		select {
		case <-time.After(time.Since(begin)):
		case <-ctx.Done():
		}
	}
	if err := s.finish(ctx, due); err != nil {
		s.putBack(nil, due)
		return err
	}
	return nil
}

// takeDue returns the aliases to flatten, those of a zone together, and the due names that they are all of.
func (s *Service) takeDue() ([]Key, map[dueName]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, due := s.dirty, s.due
	for name := range s.targets {
		for e := range s.index.byName[name] {
			keys[e.key] = true
		}
	}
	s.expand(due, keys)
	s.dirty, s.targets, s.due = map[Key]bool{}, map[dnsname.Name]bool{}, map[dueName]int{}
	return slices.SortedFunc(maps.Keys(keys), Key.compare), due
}

// putBack keeps what could not be done for the next time.
func (s *Service) putBack(keys []Key, due map[dueName]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		s.dirty[k] = true
	}
	for n, mark := range due {
		s.due[n] = max(s.due[n], mark)
	}
}

// actor is who flattens when nobody asked for it.
var actor = store.Actor{Who: "nameplane", Door: "alias"}

func (s *Service) commit(ctx context.Context, keys []Key) error {
	s.metrics.commits.Inc()
	return s.publisher.Commit(ctx, actor, func(tx *publish.Tx) error {
		tx.Note("flatten %d ALIAS", len(keys))
		f := s.flattener(tx)
		for _, k := range keys {
			if err := f.flatten(k); err != nil {
				return fmt.Errorf("flatten %s: %w", k.Name, err)
			}
		}
		return nil
	})
}
