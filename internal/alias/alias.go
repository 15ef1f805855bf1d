// Package alias derives A and AAAA record sets from ALIAS record sets and keeps them equal to the addresses of their
// targets.
//
// Start with Service in this file and with Derive in derive.go. publish calls Derive inside every edit
// (publish.Options.Derive), so flattened record sets never outlive their ALIAS. A target in our own zones is followed
// in the same commit. follow.Tracker watches targets elsewhere; each change that it reports becomes an edit of this
// package. docs/designs/007-alias.md has the design decisions.
//
// There are three parts. A path (path.go) is the chain of names from a target to its addresses, read from the state
// inside an edit. assess (assess.go) combines the path and the tracker's knowledge into a Record, and flatten.go
// derives the record sets from the Record. The index (index.go) maps each name to the ALIAS record sets that depend on
// it.
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

// Options configures a Service. The zero value works.
type Options struct {
	Log *slog.Logger // default: discard
}

// maxAddrs is the largest number of addresses of one family that are copied from a target: the maximum of a record set.
// Family.Found has the full number.
const maxAddrs = 20

// refreshEvery is the minimum time between two lookups of one target on request. Every user with write access to a zone
// may request lookups, but their cost falls on the owner of the target.
const refreshEvery = 5 * time.Second

// Service flattens ALIAS record sets. Create it with New and pass its Derive method to the publisher. Call Open when
// the publisher is open, and Run to apply the results of lookups.
type Service struct {
	opts      Options
	publisher *publish.Publisher
	wake      chan struct{}
	metrics   *metrics
	stale     staleNames

	edits map[*publish.Tx]*edit // edits without an outcome; used only by the committer
	marks int                   // number of the last due row; used only by the committer

	mu       sync.Mutex // guards the following
	tracker  *follow.Tracker
	policy   Policy
	epoch    int // incremented when tracker or policy changes
	index    index
	targets  map[dnsname.Name]bool      // targets for which the tracker reported a change
	due      map[dueName]int            // names that edits left to Run, with the number in each row
	dirty    map[Key]bool               // aliases to flatten again
	asked    map[dnsname.Name]time.Time // last lookup on request, by target
	swept    time.Time                  // when old entries were last removed from asked
	followed map[dnsname.Name]int       // number of aliases that follow each target
	expiries expiries
}

// New returns a Service without aliases.
func New(opts Options) *Service {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Service{
		opts: opts, wake: make(chan struct{}, 1), metrics: newMetrics(),
		edits:    map[*publish.Tx]*edit{},
		index:    newIndex(),
		targets:  map[dnsname.Name]bool{},
		due:      map[dueName]int{},
		dirty:    map[Key]bool{},
		asked:    map[dnsname.Name]time.Time{},
		followed: map[dnsname.Name]int{},
		expiries: expiries{since: map[*entry]time.Time{}},
	}
}

// Open reads the stored records of all aliases. Call it before the publisher runs.
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

// SetTracker sets the tracker of outside targets; its Changed callback must be s.Changed. With nil there is no tracker,
// and every ALIAS with an outside target is an error. A second tracker is seeded with the state of the first.
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
		// A pending ALIAS waits for a lookup of the old tracker, which the new tracker will not report.
		if !e.outside.IsZero() && (t == nil || rec.Status == statusPending || old == nil && rec.Cause == causeNoResolver) {
			s.dirty[k] = true
		}
	}
	s.nudge()
}

// seedLocked passes earlier knowledge of a name to the tracker: the state of the previous tracker, or else the stored
// record.
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

// SetPolicy replaces the policy; before the first call, the zero Policy applies. Addresses that are already served and
// that the new policy refuses are withdrawn.
func (s *Service) SetPolicy(p Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.policy
	s.policy = p
	s.epoch++
	s.rescheduleLocked()
	for k, e := range s.index.entries { // not all aliases: every start calls SetPolicy too
		rec := e.rec
		refused := slices.ContainsFunc(rec.Families[:], func(f Family) bool {
			return f.Cause == causePrivate || f.Cause == causeOwn || f.Cause == causeStaleLimit && p.StaleLimit != old.StaleLimit
		})
		if refused || p.refusesRecord(rec) || p.AllZones != rec.AllZones {
			s.dirty[k] = true
		}
	}
	s.nudge()
}

// Changed marks the aliases that a change of a target affects. It is the callback for follow.Options.Changed.
func (s *Service) Changed(c follow.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.Same() {
		s.targets[c.Name] = true
	}
	for e := range s.index.byName[c.Name] {
		if e.rec.Status == statusPending { // the others, however many, need no work
			s.dirty[e.key] = true
		}
	}
	s.nudge()
}

// nudge wakes Run.
func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// retryAfter is the pause after a commit that the store refused.
const retryAfter = time.Second

// Run flattens aliases whose target changed or whose addresses expired. It blocks until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	s.nudge()
	for {
		select {
		case <-s.wake:
		case <-s.nextExpiry():
			s.expire(time.Now())
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
			select { // ignores wake-ups during the pause
			case <-time.After(retryAfter):
			case <-ctx.Done():
				return nil
			}
			s.nudge()
		}
	}
}

// maxBatch is the largest number of aliases that one commit of Run flattens, even when all are in one zone. Other edits
// wait for that commit, about 7 ms for 100 aliases. Between two commits Run pauses for as long as the last one took, so
// that other edits get half of the time.
const maxBatch = 100

// flattenDue flattens the aliases that lookups and edits marked, in commits of maxBatch.
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
	if err := s.finishDue(ctx, due); err != nil {
		s.putBack(nil, due)
		return err
	}
	return nil
}

// takeDue returns the aliases to flatten, sorted by zone, and the due names from which they were expanded.
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

// putBack marks aliases and due names again after a failed commit.
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

// actor is recorded as the author of commits that no user requested.
var actor = store.Actor{Who: "nameplane", API: "alias"}

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
