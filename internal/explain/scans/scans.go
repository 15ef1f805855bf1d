// Package scans runs looks at names for many who ask: in turn, within limits, shared by those who ask the same at the same
// time, and kept with what changed since the last one.
package scans

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// Request is what to look at.
type Request struct {
	Kind   explain.Kind `json:"kind"`
	Target string       `json:"target"`
	Types  []rr.Type    `json:"types,omitempty"`
	Expect []string     `json:"expect,omitempty"` // "A=192.0.2.1"
	Change bool         `json:"change,omitempty"` // the records are about to change, or have been
}

// State is how far a scan is.
type State string

// The states.
const (
	Waiting State = "waiting"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed" // it could not be made, which says nothing about the name
)

// Scan is one look at a name.
type Scan struct {
	ID       string         `json:"id"`
	Project  string         `json:"project"`
	Name     dnsname.Name   `json:"name"`
	Request  Request        `json:"request"`
	State    State          `json:"state"`
	Created  time.Time      `json:"created_at"`
	Ended    time.Time      `json:"ended_at,omitzero"`
	Step     string         `json:"step,omitempty"` // what is being done
	Queries  int            `json:"queries"`
	Problem  string         `json:"problem,omitempty"` // why it failed
	Verdict  report.Verdict `json:"verdict,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	SafeAt   time.Time      `json:"safe_at,omitzero"`
	Previous string         `json:"previous,omitempty"` // the scan before of the same kind and name
	Changes  []Change       `json:"changes,omitempty"`  // since then
	Version  int            `json:"version"`            // grows with every change of the above

	// Interrupted is how often the server ended while it made the scan, as by a crash. It makes it again once.
	Interrupted int `json:"interrupted,omitempty"`
}

// Progress is a sign of life.
type Progress struct {
	Step    string
	Queries int
	Facts   *explain.Facts // what is known so far; may be nil. It is read until the call returns.
}

// Looker looks at a name, with what is known of it from before.
type Looker func(ctx context.Context, name dnsname.Name, r Request, past []explain.Past, progress func(Progress)) (*explain.Facts, error)

// Options are the limits. Zero values are the defaults.
type Options struct {
	Parallel  int           // scans at a time; default 4
	Queue     int           // that may wait; default 64
	Share     time.Duration // how long the same request gets the same scan; default 10 s
	PerClient int           // scans a minute of one project, or of one address of those that are of none; default DefaultPerClient
	PerTarget int           // scans of one registrable domain a minute; default DefaultPerTarget
	Keep      int           // scans kept of each kind and name; default DefaultKeep
	KeepAll   int           // scans kept in all; default 5,000
	MaxTime   time.Duration // of a scan; default 1 min
	Public    bool          // anybody may ask: names that are private are refused

	Parse func(input string) (dnsname.Name, error) // required: what was typed, as a name
}

// Defaults of the Options.
const (
	DefaultPerClient = 20
	DefaultPerTarget = 6
	DefaultKeep      = 30
)

func (o *Options) defaults() {
	o.Parallel = cmp.Or(o.Parallel, 4)
	o.Queue = cmp.Or(o.Queue, 64)
	o.Share = cmp.Or(o.Share, 10*time.Second)
	o.PerClient = cmp.Or(o.PerClient, DefaultPerClient)
	o.PerTarget = cmp.Or(o.PerTarget, DefaultPerTarget)
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	o.KeepAll = cmp.Or(o.KeepAll, 5000)
	o.MaxTime = cmp.Or(o.MaxTime, time.Minute)
}

// Errors of Start.
var (
	ErrRequest = errors.New("not a request that can be looked at")
	ErrPrivate = errors.New("private names are not looked at here")
)

// BusyError says that somebody asks too much, and when to come again.
type BusyError struct {
	What  string
	After time.Duration
}

func (e *BusyError) Error() string { return e.What }

// Service runs scans.
type Service struct {
	publisher *publish.Publisher
	look      Looker
	opts      Options
	metrics   metrics
	queue     chan *running
	documents documents

	mu      sync.Mutex      // guards the following
	kept    map[string]Scan // what has ended and is in the store: lists and bounds need no look into it
	live    map[string]*running
	recent  map[string]*running // by what was asked, for Options.Share
	waiting int                 // scans that have a place in the queue
	clients buckets[string]
	targets buckets[dnsname.Name]
}

// running is a scan that has not ended.
type running struct {
	scan     Scan
	actor    store.Actor
	accepted chan struct{} // closed when the store has it, or refused it
	refused  error
	changed  chan struct{}     // closed and made anew with every change of scan
	found    []explain.Finding // so far
	facts    *explain.Facts
	report   *report.Report
}

// Open makes a Service of what the store has. It looks at nothing before Run, which begins with the scans that an earlier one
// accepted and did not make.
func Open(p *publish.Publisher, look Looker, o Options) (*Service, error) {
	o.defaults()
	s := &Service{publisher: p, look: look, opts: o, metrics: newMetrics(),
		kept: map[string]Scan{}, live: map[string]*running{}, recent: map[string]*running{},
		clients: buckets[string]{perMinute: o.PerClient}, targets: buckets[dnsname.Name]{perMinute: o.PerTarget}}
	var all []row
	err := p.View(func(v store.View) (err error) {
		all, err = store.ObjectsOf[row](v, store.KindScan)
		return err
	})
	s.resume(all)
	return s, err
}

// Collectors are the metrics of the service.
func (s *Service) Collectors() []prometheus.Collector { return s.metrics.all() }

// Run looks until ctx ends. What it has not looked at by then waits in the store for the next one.
func (s *Service) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range s.opts.Parallel {
		workers.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case r := <-s.queue:
					s.do(ctx, r)
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// do makes a scan.
func (s *Service) do(ctx context.Context, r *running) {
	began := time.Now()
	if err := s.begin(ctx, r); err != nil {
		s.metrics.done(s.conclude(ctx, r, r.end(err, past{})), time.Since(began))
		return
	}
	past := s.past(r.scan)
	look, cancel := context.WithTimeout(ctx, s.opts.MaxTime)
	defer cancel()
	facts, err := s.look(look, r.scan.Name, r.scan.Request, past.looks, func(p Progress) { s.progress(r, p) })
	if err != nil && ctx.Err() != nil {
		s.suspend(ctx, r)
		return
	}
	r.facts = facts
	ended := r.end(err, past)
	s.metrics.done(s.conclude(ctx, r, ended), time.Since(began))
}

// conclude keeps a scan that has ended.
func (s *Service) conclude(ctx context.Context, r *running, ended Scan) Scan {
	if err := s.keep(ctx, r.actor, &ended, r.facts); err != nil {
		ended.fail(err)
	}
	s.mu.Lock()
	s.kept[ended.ID] = ended
	delete(s.live, ended.ID)
	r.facts, r.report, r.found = nil, nil, nil // who shares it needs no more than the scan
	s.mu.Unlock()
	s.change(r, func(x *Scan) { *x = ended; x.Version-- })
	return ended
}

// fail makes of a scan one whose result is lost.
func (x *Scan) fail(err error) {
	x.State, x.Problem = Failed, "the result could not be kept: "+err.Error()
	x.Verdict, x.Summary, x.SafeAt, x.Previous, x.Changes = "", "", time.Time{}, "", nil
}

// progress judges what is known so far.
func (s *Service) progress(r *running, p Progress) {
	var found []explain.Finding
	if p.Facts != nil {
		found = provisional(p.Facts)
	}
	s.change(r, func(x *Scan) {
		x.Step, x.Queries = p.Step, p.Queries
		if p.Facts != nil {
			r.found = found
		}
	})
}

// provisional are the findings so far; none if a check trips over facts that are not complete.
func provisional(facts *explain.Facts) (found []explain.Finding) {
	var err error
	defer tripped(&err)
	return check.Run(facts)
}

// Findings are what is found so far, of a scan that has not ended, or what was found.
func (s *Service) Findings(project, id string) []explain.Finding {
	s.mu.Lock()
	r := s.live[id]
	if r != nil && r.scan.Project == project {
		defer s.mu.Unlock()
		return r.found
	}
	s.mu.Unlock()
	d, err := s.Document(project, id, "json")
	if err != nil {
		return nil
	}
	var made struct{ Findings []explain.Finding }
	if json.Unmarshal(d.Body, &made) != nil {
		return nil
	}
	return made.Findings
}

// judge makes the report. Facts are made of what strangers send: a check that trips over them ends the scan, and not the server.
func (r *running) judge() (err error) {
	defer tripped(&err)
	r.report = report.Make(r.facts, check.Run(r.facts))
	return nil
}

func tripped(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("a check failed, which is a fault of this program: %v", p)
	}
}

// end is the scan as it is kept.
func (r *running) end(err error, past past) Scan {
	x := r.scan
	x.Ended, x.Step, x.Version = time.Now().UTC(), "", x.Version+1
	if err == nil {
		err = r.judge()
	}
	if err != nil {
		x.State, x.Problem, r.facts = Failed, err.Error(), nil
		return x
	}
	x.State, x.Verdict, x.Summary, x.SafeAt, x.Queries = Done, r.report.Verdict, r.report.Summary, r.report.SafeAt, r.report.Queries
	x.Previous = past.id
	if past.facts != nil {
		x.Changes = Diff(past.facts, r.facts)
	}
	return x
}

// change changes a scan, and wakes those who watch it.
func (s *Service) change(r *running, fn func(*Scan)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&r.scan)
	r.scan.Version++
	close(r.changed)
	r.changed = make(chan struct{})
}
