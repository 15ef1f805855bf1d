// Package scans queues, runs and stores scans of names for the clients of a server.
//
// Start with Service in this file: Open, Run and the life of one scan. accept.go accepts requests, limit.go holds the
// limits, keep.go stores ended scans and their facts, memory.go reserves the memory to read them, and documents.go
// renders and caches reports. Equal requests within Options.Share get the same scan. Each scan lists the changes since
// the previous scan of the same kind and name.
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

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// Request is the name to scan, and how.
type Request struct {
	Kind   explain.Kind `json:"kind"`
	Target string       `json:"target"`
	Types  []rr.Type    `json:"types,omitempty"`
	Expect []string     `json:"expect,omitempty"` // each in the form "A=192.0.2.1"
	Change bool         `json:"change,omitempty"` // the records are about to change, or have changed
	DKIM   []string     `json:"dkim,omitempty"`   // DKIM selectors to check in a scan

	PointsTo string `json:"points_to,omitempty"` // the target of a service: a host name or an address
	Proof    string `json:"proof,omitempty"`     // the TXT record that proves the ownership, as NAME=VALUE
	Objects  string `json:"objects,omitempty"`   // the Kubernetes objects of a service, as YAML or JSON

	ProofHTTP string   `json:"proof_http,omitempty"` // the text at a URL that proves the ownership, as URL=TEXT
	ProofNS   []string `json:"proof_ns,omitempty"`   // the nameservers that prove the ownership
}

// State is the state of a scan.
type State string

// The states.
const (
	Waiting State = "waiting"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed" // the scan failed, which says nothing about the name
)

// Scan is one scan of a name.
type Scan struct {
	ID       string         `json:"id"`
	Project  string         `json:"project"`
	Name     dnsname.Name   `json:"name"`
	Request  Request        `json:"request"`
	State    State          `json:"state"`
	Created  time.Time      `json:"created_at"`
	Ended    time.Time      `json:"ended_at,omitzero"`
	Step     string         `json:"step,omitempty"` // current stage
	Queries  int            `json:"queries"`
	Problem  string         `json:"problem,omitempty"` // reason of the failure
	Verdict  report.Verdict `json:"verdict,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	SafeAt   time.Time      `json:"safe_at,omitzero"`
	Previous string         `json:"previous,omitempty"` // ID of the previous scan of the same kind and name
	Changes  []Change       `json:"changes,omitempty"`  // since Previous
	Version  int            `json:"version"`            // increases with every change of the fields above

	// Interrupted counts how often the server ended during this scan, for example by a crash. The scan is repeated once.
	Interrupted int `json:"interrupted,omitempty"`
}

// Progress reports how far a scan is.
type Progress struct {
	Step    string
	Queries int
	Facts   *explain.Facts // facts so far; may be nil; only read until the call returns
}

// Scanner scans a name. past holds the results of earlier scans of the name.
type Scanner func(ctx context.Context, name dnsname.Name, r Request, past []explain.Past, progress func(Progress)) (
	*explain.Facts, error)

// Options are the limits of a Service. Zero values are the defaults.
type Options struct {
	Parallel  int           // concurrent scans; default 4
	Queue     int           // scans that may wait; default 64
	Share     time.Duration // how long equal requests get the same scan; default 10 s
	PerClient int           // scans per minute of one project, or of one address; default 20
	PerTarget int           // scans per minute of one registrable domain; default 6
	Keep      int           // stored scans of each kind and name; default 30
	KeepAll   int           // stored scans in total; default 5,000
	MaxTime   time.Duration // time limit of one scan; default 1 min
	Patience  time.Duration // how long a request waits for memory; default 10 s
	Public    bool          // the service is open to everyone: private names are refused

	Budget *budget.Budget // memory for facts and reports that are read; nil: no limit

	Parse func(input string) (dnsname.Name, error) // required: converts user input to a name
	// CheckService checks the request of a service; nil: the kind service is refused.
	CheckService func(Request) error
}

func (o *Options) defaults() {
	o.Parallel = cmp.Or(o.Parallel, 4)
	o.Queue = cmp.Or(o.Queue, 64)
	o.Share = cmp.Or(o.Share, 10*time.Second)
	o.PerClient = cmp.Or(o.PerClient, 20)
	o.PerTarget = cmp.Or(o.PerTarget, 6)
	o.Keep = cmp.Or(o.Keep, 30)
	o.KeepAll = cmp.Or(o.KeepAll, 5000)
	o.MaxTime = cmp.Or(o.MaxTime, time.Minute)
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
}

// Errors of Start.
var (
	ErrRequest = errors.New("invalid scan request")
	ErrPrivate = errors.New("private names are not scanned here")
)

// BusyError reports that a limit is reached, and after which time to retry.
type BusyError struct {
	What  string
	After time.Duration
}

func (e *BusyError) Error() string { return e.What }

// Service runs scans.
type Service struct {
	publisher *publish.Publisher
	scan      Scanner
	opts      Options
	metrics   metrics
	queue     chan *running
	documents documents

	mu      sync.Mutex          // guards the fields below
	kept    map[string]Scan     // ended scans; a copy of the store, so that lists and limits need not read it
	live    map[string]*running // scans that have not ended, by ID
	recent  map[string]*running // scans by request, for Options.Share
	waiting int                 // scans in the queue
	clients buckets[string]
	targets buckets[dnsname.Name]
}

// running is a scan that has not ended.
type running struct {
	scan     Scan
	actor    store.Actor
	accepted chan struct{}     // closed when the store has accepted or refused the scan
	refused  error             // error of the store
	changed  chan struct{}     // closed and replaced at every change of scan
	found    []explain.Finding // findings so far
	facts    *explain.Facts
	report   *report.Report
}

// Open returns a Service with the scans in the store. It scans nothing before Run, which begins with the scans that
// an earlier server accepted and did not finish.
func Open(p *publish.Publisher, scan Scanner, o Options) (*Service, error) {
	o.defaults()
	s := &Service{publisher: p, scan: scan, opts: o, metrics: newMetrics(),
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

// Collectors returns the metrics of the service.
func (s *Service) Collectors() []prometheus.Collector { return s.metrics.all() }

// Run runs scans until ctx ends. Scans that have not ended by then wait in the store for the next server.
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

// do runs one scan.
func (s *Service) do(ctx context.Context, r *running) {
	began := time.Now()
	if err := s.begin(ctx, r); err != nil {
		s.metrics.done(s.conclude(ctx, r, r.end(err, past{})), time.Since(began))
		return
	}
	past := s.past(ctx, r.scan)
	scanCtx, cancel := context.WithTimeout(ctx, s.opts.MaxTime)
	defer cancel()
	facts, err := s.scan(scanCtx, r.scan.Name, r.scan.Request, past.history, func(p Progress) { s.progress(r, p) })
	if err != nil && ctx.Err() != nil {
		s.suspend(ctx, r)
		return
	}
	r.facts = facts
	ended := r.end(err, past)
	s.metrics.done(s.conclude(ctx, r, ended), time.Since(began))
}

// conclude stores a scan that has ended and notifies its watchers.
func (s *Service) conclude(ctx context.Context, r *running, ended Scan) Scan {
	if err := s.keep(ctx, r.actor, &ended, r.facts); err != nil {
		ended.fail(err)
	}
	s.mu.Lock()
	s.kept[ended.ID] = ended
	delete(s.live, ended.ID)
	r.facts, r.report, r.found = nil, nil, nil // requests that share the scan need only its result
	s.mu.Unlock()
	s.change(r, func(x *Scan) { *x = ended; x.Version-- })
	return ended
}

// fail marks a scan as failed because its result could not be stored.
func (x *Scan) fail(err error) {
	x.State, x.Problem = Failed, "the result could not be stored: "+err.Error()
	x.Verdict, x.Summary, x.SafeAt, x.Previous, x.Changes = "", "", time.Time{}, "", nil
}

// progress updates a scan and its provisional findings.
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

// provisional returns the findings so far, or none if a check panics on incomplete facts.
func provisional(facts *explain.Facts) (found []explain.Finding) {
	var err error
	defer recoverCheck(&err)
	return check.Run(facts)
}

// Findings returns the findings of a scan, or those found so far if it has not ended. It returns none if the report
// cannot be read, for example because the memory budget has no room.
func (s *Service) Findings(ctx context.Context, project, id string) []explain.Finding {
	s.mu.Lock()
	r := s.live[id]
	if r != nil && r.scan.Project == project {
		defer s.mu.Unlock()
		return r.found
	}
	s.mu.Unlock()
	d, release, err := s.Document(ctx, project, id, "json")
	if err != nil {
		return nil
	}
	defer release()
	var made struct{ Findings []explain.Finding }
	if json.Unmarshal(d.Body, &made) != nil {
		return nil
	}
	return made.Findings
}

// judge builds the report. Facts contain data that strangers sent: a check that panics on them fails the scan and
// does not end the server.
func (r *running) judge() (err error) {
	defer recoverCheck(&err)
	r.report = report.Make(r.facts, check.Run(r.facts))
	return nil
}

// recoverCheck turns a panic of a check into an error.
func recoverCheck(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("a check failed, which is a bug in this program: %v", p)
	}
}

// end returns the scan as it is stored.
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
	x.State, x.Verdict, x.Summary, x.SafeAt, x.Queries = Done, r.report.Verdict, r.report.Summary, r.report.SafeAt,
		r.report.Queries
	x.Previous = past.id
	if past.id != "" {
		x.Changes = changes(past.last, explain.PastOf(r.facts))
	}
	return x
}

// change changes a scan and wakes its watchers.
func (s *Service) change(r *running, fn func(*Scan)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&r.scan)
	r.scan.Version++
	close(r.changed)
	r.changed = make(chan struct{})
}
