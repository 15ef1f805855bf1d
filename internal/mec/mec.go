// Package mec keeps the DNS rules of edge applications and the platform's own records, and turns them into the record
// sets of overlay zones (docs/designs/005-overlay-zones.md).
//
// A Rule belongs to an application and is answered while it is ACTIVE. A Record belongs to the platform. Both are claims
// on a name and type; what is served follows from all claims on it, and is changed in the same commit as they are. Names
// and addresses come in through ParseRule, ParseRecord and ParseAppD, which say what is wrong with them.
package mec

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Options of a Service; the zero value works.
type Options struct {
	Log *slog.Logger // default: none

	// Limits, so that one application cannot fill the store for all.
	Apps          int // applications; default 100,000
	RulesPerApp   int // default 1,000
	ClaimsPerName int // rules and records on one name and type; default 1,000, which still fit one message
	Subscriptions int // per application; default 16
	Tasks         int // per application, older ones are forgotten; default 16
	Events        int // the feed keeps the newest; default 10,000

	// Deliver brings an event to a subscription's callback. Without it there are no subscriptions. It is called for one
	// event of a subscription at a time, in order, and again after an error.
	Deliver func(context.Context, Subscription, Event) error

	// Attempts is how often one event is tried before the subscription is given up; default 10, which with the pauses
	// between them is about five minutes.
	Attempts int
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for p, v := range map[*int]int{&o.Apps: 100_000, &o.RulesPerApp: 1_000, &o.ClaimsPerName: 1_000, &o.Subscriptions: 16,
		&o.Tasks: 16, &o.Events: 10_000, &o.Attempts: 10} {
		if *p == 0 {
			*p = v
		}
	}
	return o
}

// Service holds no rules in memory: every call reads the rows it needs, so ten thousand applications cost nothing
// until they are asked for.
type Service struct {
	pub  *publish.Publisher
	opts Options

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
	s := &Service{pub: pub, opts: opts.withDefaults()}
	if err := s.findInterrupted(); err != nil {
		return nil, err
	}
	for _, end := range []func(context.Context) error{s.expire, s.failInterrupted} {
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
