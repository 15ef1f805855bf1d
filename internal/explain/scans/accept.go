package scans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/store"
)

// row is the stored form of a scan, from its acceptance on. Until it has ended, the row holds the actor that
// requested it.
type row struct {
	Scan
	Actor *store.Actor `json:"actor,omitempty"`
}

// Start starts a scan, or returns the scan of an equal recent request. When it returns, the scan is stored: it will
// run even if the process is killed now.
func (s *Service) Start(ctx context.Context, actor store.Actor, from netip.Addr, req Request) (Scan, error) {
	name, err := s.check(req)
	if err != nil {
		return Scan{}, err
	}
	r, x, err := s.reserve(actor, from, name, req)
	if err != nil {
		s.metrics.refused.Inc()
		return Scan{}, err
	}
	if x.ID != "" {
		return x, s.accept(ctx, r, x)
	}
	s.metrics.shared.Inc()
	<-r.accepted
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.scan, r.refused
}

// reserve returns the running scan of an equal recent request. Otherwise it reserves a slot in the queue for a new
// scan, and returns that scan as it is to be stored.
func (s *Service) reserve(actor store.Actor, from netip.Addr, name dnsname.Name, req Request) (*running, Scan, error) {
	now := time.Now()
	key := keyOf(actor.Project, name, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, r := range s.recent {
		if now.Sub(r.scan.Created) >= s.opts.Share {
			delete(s.recent, k)
		}
	}
	if r := s.recent[key]; r != nil {
		return r, Scan{}, nil
	}
	if s.waiting >= s.opts.Queue {
		return nil, Scan{}, &BusyError{"too many scans are waiting", 5 * time.Second}
	}
	if err := s.admit(clientOf(actor, from), name, now); err != nil {
		return nil, Scan{}, err
	}
	r := &running{actor: actor, changed: make(chan struct{}), accepted: make(chan struct{}),
		scan: Scan{ID: uuid.NewString(), Project: actor.Project, Name: name, Request: req, State: Waiting, Created: now.UTC(),
			Version: 1}}
	s.waiting++
	s.live[r.scan.ID], s.recent[key] = r, r
	return r, r.scan, nil
}

// keyOf returns a key that is equal for requests that share one scan.
func keyOf(project string, name dnsname.Name, req Request) string {
	return fmt.Sprint(project, " ", req.Kind, " ", name, " ", req.Types, req.Expect, req.Change, req.DKIM,
		req.PointsTo, req.Proof, req.ProofHTTP, req.ProofNS, req.Objects)
}

// clientOf returns the client for the rate limit: a project, whatever addresses its members have; otherwise an IPv4
// address, or an IPv6 /64, since one client usually controls all of it.
func clientOf(actor store.Actor, from netip.Addr) string {
	if actor.Project != "" {
		return "project " + actor.Project
	}
	from = from.Unmap().WithZone("")
	p, err := from.Prefix(min(64, from.BitLen()))
	if err != nil {
		return "nobody"
	}
	return p.String()
}

// admit counts a scan against the limits of its client and its target.
func (s *Service) admit(client string, name dnsname.Name, now time.Time) error {
	if wait := s.clients.wait(client, now); wait > 0 {
		return &BusyError{"you have asked for too many scans", wait}
	}
	domain := cmp.Or(registry.SuffixOf(name).Domain, name) // the registrable domain
	if wait := s.targets.wait(domain, now); wait > 0 {
		return &BusyError{fmt.Sprintf("%s, with all names in it, has been scanned too often", domain), wait}
	}
	s.clients.take(client, now)
	s.targets.take(domain, now)
	return nil
}

// accept stores a new scan and queues it.
func (s *Service) accept(ctx context.Context, r *running, x Scan) error {
	err := s.store(ctx, r.actor, x)
	s.mu.Lock()
	r.refused = err
	if err != nil {
		s.waiting--
		delete(s.live, x.ID)
		delete(s.recent, keyOf(x.Project, x.Name, x.Request))
	}
	s.mu.Unlock()
	close(r.accepted)
	if err == nil {
		s.queue <- r // reserve made room: this does not block
	}
	return err
}

// store writes a scan that has not ended.
func (s *Service) store(ctx context.Context, actor store.Actor, x Scan) error {
	// The scan is stored even if the client has disconnected: it may come back.
	return s.publisher.Commit(context.WithoutCancel(ctx), actor, func(tx *publish.Tx) error {
		return tx.PutObject(store.KindScan, x.ID, row{x, &actor})
	})
}

// resume queues the scans that an earlier server accepted and did not finish, in the order of their creation.
func (s *Service) resume(all []row) {
	slices.SortFunc(all, func(a, b row) int { return newest(b.Scan, a.Scan) })
	s.queue = make(chan *running, s.opts.Queue+len(all))
	for _, w := range all {
		x := w.Scan
		if x.State == Done || x.State == Failed {
			s.kept[x.ID] = x
			continue
		}
		if x.State == Running {
			x.Interrupted++
		}
		x.State, x.Step, x.Queries = Waiting, "", 0
		r := &running{scan: x, actor: store.Actor{Project: x.Project, API: "explain"}, changed: make(chan struct{}),
			accepted: make(chan struct{})}
		if w.Actor != nil {
			r.actor = *w.Actor
		}
		close(r.accepted)
		s.waiting++
		s.live[x.ID], s.recent[keyOf(x.Project, x.Name, x.Request)] = r, r
		s.queue <- r
	}
}

// errInterrupted is why a scan does not run a third time: the scan may be what crashes the server.
var errInterrupted = errors.New("interrupted: the server ended twice during this scan")

// begin stores that a scan is running, so that the next server knows about it after a crash. An error means that the
// scan must not run.
func (s *Service) begin(ctx context.Context, r *running) error {
	s.change(r, func(x *Scan) { x.State = Running; s.waiting-- })
	if r.scan.Interrupted > 1 {
		return errInterrupted
	}
	if _, err := s.check(r.scan.Request); err != nil {
		return err // the settings have changed since it was accepted
	}
	// The store may be full now and have room again when the scan has ended. If it has not, the scan runs again later.
	_ = s.store(ctx, r.actor, r.scan)
	return nil
}

// suspend leaves a scan to the next server. An orderly stop does not count as an interruption.
func (s *Service) suspend(ctx context.Context, r *running) {
	s.change(r, func(x *Scan) { x.State, x.Step, x.Queries = Waiting, "", 0 })
	_ = s.store(ctx, r.actor, r.scan) // if this fails it counts as a crash, after which the scan runs again
}
