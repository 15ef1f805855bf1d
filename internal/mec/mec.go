// Package mec keeps the DNS rules of edge applications and the platform's own records, and turns them into the record
// sets of overlay zones (docs/designs/005-overlay-zones.md).
//
// A Rule belongs to an application and is answered while it is ACTIVE. A Record belongs to the platform. Both are claims
// on a name and type; what is served follows from all claims on it, and is changed in the same commit as they are. Names
// and addresses come in through ParseRule, ParseRecord and ParseAppD, which say what is wrong with them.
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
	"github.com/nameplane/nameplane/internal/store"
)

// Options of a Service; the zero value works.
type Options struct {
	Log *slog.Logger // default: none

	// Deliver brings an event to a subscription's callback. Without it nothing is delivered. It is called for one event
	// of a subscription at a time, in order, and again after an error.
	Deliver func(context.Context, Subscription, Event) error
}

// Limits, so that one application cannot fill the store for all.
const (
	maxApps          = 100_000 // applications
	maxRules         = 1_000   // per application
	maxClaims        = 1_000   // rules and records on one name and type; that many still fit one message
	maxSubscriptions = 16      // per application
	maxTasks         = 16      // per application; older ones are forgotten
	maxEvents        = 10_000  // the feed keeps the newest
)

// Service holds no rules in memory: every call reads the rows it needs, so ten thousand applications cost nothing
// until they are asked for.
type Service struct {
	pub  *publish.Publisher
	opts Options
	keep uint64 // events of the feed: maxEvents, and fewer in tests

	listed atomic.Bool // the store has the rows of KindMECName

	changed  signal // the feed has grown
	expires  signal // a rule's end was written
	jobs     jobs
	progress progress
	post     post
}

// own is the actor of what the service does by itself.
var own = store.Actor{Who: "nameplane", Door: "mec"}

// Open ends what a crash or a stop left behind: rules whose time has passed are removed before anybody can ask for them,
// and tasks that were running are told as failed. The publisher must be running. A store that takes no changes is no
// reason not to serve what it has: then Run does it later.
func Open(ctx context.Context, pub *publish.Publisher, opts Options) (*Service, error) {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	s := &Service{pub: pub, opts: opts, keep: maxEvents}
	if err := s.findInterrupted(); err != nil {
		return nil, err
	}
	for _, end := range []func(context.Context) error{s.listNames, s.expire, s.failInterrupted} {
		if err := end(ctx); errors.Is(err, store.ErrUnavailable) {
			s.opts.Log.Warn("rules that have expired, or tasks that were interrupted, are not ended yet", "error", err)
		} else if err != nil {
			return nil, err
		}
	}
	return s, s.loadSubscriptions()
}

// Run removes rules at the end of their life, works on tasks and delivers events, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.runExpiry(ctx) })
	g.Go(func() error { return s.runJobs(ctx) })
	g.Go(func() error { return s.runPost(ctx) })
	return g.Wait()
}

// signal wakes everybody who waits for it, and keeps nobody who sends it.
type signal struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// wait is closed at the next send.
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

// sleep waits for d, or for ctx to end, and tells which.
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
