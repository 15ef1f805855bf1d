package mec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// Bounds of delivery.
const (
	deliverTimeout   = 10 * time.Second // for one attempt
	maxDeliveries    = 32               // attempts at a time, so that notifications cannot use all sockets
	maxAppDeliveries = 2                // attempts of one application, so that slow callbacks do not delay others
	firstRetry       = time.Second      // the wait after the first failure; doubles up to longestRetry
	longestRetry     = time.Minute
	maxAttempts      = 10  // for one event before the subscription fails: about five minutes with the waits
	saveEvery        = 64  // deliveries between two saves; a crash repeats no more than these
	maxError         = 300 // bytes of an error in LastError
)

// delivery distributes the events of the feed to one queue for each subscription. It reads the feed once for all of
// them, and a queue holds only numbers of events. So a subscription without events costs no goroutine and no reads.
type delivery struct {
	mu     sync.Mutex                   // guards the following fields, and the fields of the queues
	read   uint64                       // the last event that was distributed; open can set it back
	seen   uint64                       // the largest value of read, in this run or the previous one
	queues map[string]map[string]*queue // by application and subscription
	share  map[string]chan struct{}     // by application: a semaphore for its attempts

	opened signal
}

// queue holds the events that wait for delivery to one subscription.
type queue struct {
	sub      Subscription
	pending  []uint64 // numbers of events; an event that the feed drops is dropped here too
	assigned uint64   // the last event that was considered for this queue
	busy     bool     // a goroutine works on it
	share    chan struct{}
	end      chan struct{}
}

// open starts the delivery of the events after a number to a subscription. If the feed was read further already, it is
// read again from there; the other queues skip the events that they have had.
func (d *delivery) open(sub Subscription, after uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queues == nil {
		d.queues, d.share = map[string]map[string]*queue{}, map[string]chan struct{}{}
	}
	if d.queues[sub.App] == nil {
		d.queues[sub.App], d.share[sub.App] = map[string]*queue{}, make(chan struct{}, maxAppDeliveries)
	}
	d.queues[sub.App][sub.ID] = &queue{sub: sub, assigned: after, share: d.share[sub.App], end: make(chan struct{})}
	d.read = min(d.read, after)
	d.opened.send()
}

// close ends the delivery to a subscription, or to all subscriptions of an application when id is empty.
func (d *delivery) close(app, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for have, q := range d.queues[app] {
		if id == "" || id == have {
			d.removeLocked(q)
		}
	}
}

func (d *delivery) removeLocked(q *queue) {
	close(q.end)
	delete(d.queues[q.sub.App], q.sub.ID)
	if len(d.queues[q.sub.App]) == 0 {
		delete(d.queues, q.sub.App)
		delete(d.share, q.sub.App)
	}
}

// current returns the newest state of a subscription. Its row in the store is written later.
func (d *delivery) current(sub Subscription) Subscription {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.queues[sub.App][sub.ID]; q != nil {
		return q.sub
	}
	return sub
}

// runDelivery delivers events until ctx ends.
func (s *Service) runDelivery(ctx context.Context) error {
	if s.opts.Deliver == nil {
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxDeliveries)
	for ctx.Err() == nil {
		changed, opened := s.changed.wait(), s.delivery.opened.wait()
		more, err := s.distribute()
		if err != nil {
			s.opts.Log.Error("events cannot be read", "error", err)
			sleep(ctx, retryStore)
			continue
		}
		for _, q := range s.delivery.ready() {
			wg.Go(func() { s.deliverQueue(ctx, q, slots) })
		}
		if more {
			continue
		}
		select {
		case <-changed:
		case <-opened:
		case <-ctx.Done():
		}
	}
	return nil
}

// distribute reads some of the new events and adds them to the queues. It reports whether there are more.
func (s *Service) distribute() (more bool, err error) {
	s.delivery.mu.Lock()
	after, idle := s.delivery.read, len(s.delivery.queues) == 0
	s.delivery.mu.Unlock()
	var f feedRow
	var events []Event
	err = s.pub.View(func(v store.View) error {
		if f, err = readFeed(v); err != nil || idle {
			return err
		}
		for seq := max(after+1, f.First); seq <= f.Last && len(events) < watchRows; seq++ {
			ev, err := readEvent(v, seq)
			if err != nil {
				return err
			}
			events = append(events, ev)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	return s.delivery.distribute(after, f, events), nil
}

func (d *delivery) distribute(after uint64, f feedRow, events []Event) (more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queues) == 0 {
		d.read, d.seen = f.Last, f.Last
		return false
	}
	if d.read != after {
		return true // a queue was opened in the meantime
	}
	for _, of := range d.queues {
		for _, q := range of {
			if seen := max(d.seen, q.assigned); seen+1 < f.First { // the feed is faster than this
				q.sub.Missed += f.First - 1 - seen
			}
			for len(q.pending) > 0 && q.pending[0] < f.First {
				q.pending = q.pending[1:]
				q.sub.Missed++
			}
		}
	}
	d.read = max(d.read, f.First-1)
	for _, ev := range events {
		for _, q := range d.queues[ev.Rule.App] {
			if q.assigned < ev.Seq {
				q.pending = append(q.pending, ev.Seq)
				q.assigned = ev.Seq
			}
		}
		d.read = ev.Seq
	}
	d.seen = max(d.seen, d.read)
	return d.read < f.Last
}

// ready returns the queues that have events and no goroutine yet, and marks them as busy.
func (d *delivery) ready() (out []*queue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, of := range d.queues {
		for _, q := range of {
			if !q.busy && len(q.pending) > 0 {
				q.busy = true
				out = append(out, q)
			}
		}
	}
	return out
}

// deliverQueue delivers until the queue is empty, the subscription has failed, or ctx ends.
func (s *Service) deliverQueue(ctx context.Context, q *queue, slots chan struct{}) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-q.end:
			cancel()
		case <-ctx.Done():
		}
	}()
	for n := 1; ctx.Err() == nil; n++ {
		sub, seq, ok := s.delivery.front(q)
		if !ok || n%saveEvery == 0 {
			if err := s.saveSubscription(ctx, sub); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("progress of a subscription not written", "subscription", sub.ID, "error", err)
			}
		}
		if !ok && s.delivery.idle(q) || ok && !s.deliverOne(ctx, q, seq, slots) {
			break
		}
	}
	if outer.Err() != nil { // the program ends: save the progress, so that no event is delivered twice
		sub, _, _ := s.delivery.front(q)
		if err := s.saveSubscription(context.WithoutCancel(outer), sub); err != nil {
			s.opts.Log.Info("some events will be delivered again", "subscription", sub.ID, "error", err)
		}
	}
}

// front returns the next event of a queue.
func (d *delivery) front(q *queue) (sub Subscription, seq uint64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(q.pending) == 0 {
		return q.sub, 0, false
	}
	return q.sub, q.pending[0], true
}

// idle marks a queue as not busy. It returns false when the queue has events again.
func (d *delivery) idle(q *queue) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q.busy = len(q.pending) > 0
	return !q.busy
}

// deliverOne tries to deliver one event once, and waits after a failure. It reports whether to continue with the queue.
func (s *Service) deliverOne(ctx context.Context, q *queue, seq uint64, slots chan struct{}) bool {
	var ev Event
	var ended error
	err := s.pub.View(func(v store.View) (err error) {
		ended = v.Object(store.KindMECSubscription.Of(q.sub.App), q.sub.ID, &Subscription{})
		ev, err = readEvent(v, seq)
		return err
	})
	if errors.Is(ended, store.ErrNotFound) { // the subscription ended before its queue was opened
		s.delivery.close(q.sub.App, q.sub.ID)
		return false
	}
	if errors.Is(err, store.ErrNotFound) {
		s.delivery.done(q, seq, func(sub *Subscription) { sub.Missed++ })
		return true
	}
	if err == nil {
		err = s.attempt(ctx, q, ev, slots)
	}
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		s.delivery.done(q, seq, func(sub *Subscription) { sub.Delivered, sub.Failures, sub.LastError = seq, 0, "" })
		return true
	}
	sub, over := s.delivery.failed(q, err)
	if !over {
		return sleep(ctx, min(firstRetry<<min(sub.Failures-1, 10), longestRetry))
	}
	s.opts.Log.Warn("subscription failed", "subscription", sub.ID, "callback", sub.Callback, "error", sub.LastError)
	s.giveUp(ctx, q, sub)
	return false
}

// giveUp stores that a subscription has failed and then closes its queue. In the other order a client could read the
// older row in between.
func (s *Service) giveUp(ctx context.Context, q *queue, sub Subscription) {
	for {
		err := s.saveSubscription(ctx, sub)
		if err == nil || !sleep(ctx, retryStore) {
			break
		}
	}
	if ctx.Err() == nil {
		s.delivery.close(q.sub.App, q.sub.ID)
	}
}

// attempt waits for a slot of the application and for one of all slots, and calls Deliver.
func (s *Service) attempt(ctx context.Context, q *queue, ev Event, slots chan struct{}) error {
	for _, slots := range []chan struct{}{q.share, slots} {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-slots }()
	}
	ctx, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	sub, _, _ := s.delivery.front(q)
	return s.opts.Deliver(ctx, sub, ev)
}

// done removes the first event of a queue, unless distribute has dropped it already.
func (d *delivery) done(q *queue, seq uint64, note func(*Subscription)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	note(&q.sub)
	if len(q.pending) > 0 && q.pending[0] == seq {
		q.pending = q.pending[1:]
	}
	if len(q.pending) == 0 {
		q.pending = nil
	}
}

// failed records a failure. It reports whether the subscription has failed for good.
func (d *delivery) failed(q *queue, err error) (Subscription, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q.sub.Failures++
	q.sub.LastError = fmt.Sprintf("%.*s", maxError, err)
	if q.sub.Failures >= maxAttempts {
		q.sub.State = givenUp
	}
	return q.sub, q.sub.State == givenUp
}
