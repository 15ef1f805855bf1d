// Package mec stores the DNS rules of edge applications (ETSI MEC 011) and the platform's own records, and turns them
// into the record sets of overlay zones.
//
// A Rule belongs to an application and is served while it is ACTIVE. A Record belongs to the platform. Both are claims
// on a name and type. The record set that is served follows from all claims on it, and changes in the same commit as
// the claims. docs/designs/005-overlay-zones.md has the reasons.
//
// Start with Service in this file and its methods in rules.go and records.go: an edit (edit.go) writes rows and claims
// (claim.go) in one commit. ParseRule, ParseRecord and ParseAppD read the input of clients. The other files have the
// background work: expiry.go, task.go and delivery.go.
package mec

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
)

// Options configures a Service. The zero value works.
type Options struct {
	Log *slog.Logger // default: none

	Special specialaddr.Table // classifies the addresses of rules and records

	// Deliver sends an event to the callback of a subscription. If it is nil, nothing is delivered. The Service calls it
	// for one event of a subscription at a time, in order, and again after an error.
	Deliver func(context.Context, Subscription, Event) error
}

// Limits that keep one application from filling the store.
const (
	maxApps          = 100_000 // applications
	maxRules         = 1_000   // per application
	maxClaims        = 1_000   // rules and records on one name and type; this many fit into one DNS message
	maxSubscriptions = 16      // per application
	maxTasks         = 16      // per application; older ones are deleted
	maxEvents        = 10_000  // in the feed, which drops the oldest
)

// Service manages the rules and records. It holds none of them in memory: every call reads the rows that it needs, so
// ten thousand idle applications cost nothing.
type Service struct {
	pub  *publish.Publisher
	opts Options
	keep uint64 // the bound of the feed: maxEvents, or less in tests

	listed atomic.Bool // the store has the rows of KindMECName

	changed  signal // the feed has grown
	expires  signal // the expiry of a rule was stored
	jobs     jobs
	progress progress
	delivery delivery
}

// ownActor is the actor of changes that no client asked for.
var ownActor = store.Actor{Who: "nameplane", API: "mec"}

// Open returns a Service on a running publisher. It first cleans up after a stop or crash: it removes expired rules
// before any client can resolve them, and marks interrupted tasks as failed. If the store accepts no changes, Open
// succeeds and Run does the cleanup later: the server can still answer queries.
func Open(ctx context.Context, pub *publish.Publisher, opts Options) (*Service, error) {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	s := &Service{pub: pub, opts: opts, keep: maxEvents}
	if err := s.findInterrupted(); err != nil {
		return nil, err
	}
	for _, end := range []func(context.Context) error{s.listNames, s.expire, s.failInterrupted} {
		if err := end(ctx); errors.Is(err, store.ErrUnavailable) {
			s.opts.Log.Warn("expired rules are not removed yet, or interrupted tasks are not marked as failed", "error", err)
		} else if err != nil {
			return nil, err
		}
	}
	return s, s.loadSubscriptions()
}

// Special returns the table for ParseRule and ParseRecord.
func (s *Service) Special() specialaddr.Table { return s.opts.Special }

// Run removes expired rules, runs tasks and delivers events, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.runExpiry(ctx) })
	g.Go(func() error { return s.runJobs(ctx) })
	g.Go(func() error { return s.runDelivery(ctx) })
	return g.Wait()
}

// signal wakes all goroutines that wait for it. Sending never blocks.
type signal struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// wait returns a channel that the next send closes.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// sleep blocks for d or until ctx ends. It returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
