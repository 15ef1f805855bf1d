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
	deliverLimit = 10 * time.Second // of one attempt
	deliverers   = 32               // attempts at a time, so that notifications cannot take all sockets
	deliverShare = 2                // of these for one application, so that its slow callbacks do not hold up all others
	firstPause   = time.Second      // after a failure; doubles up to longestPause
	longestPause = time.Minute
	maxAttempts  = 10  // for one event, before the subscription is given up: with the pauses about five minutes
	saveEvery    = 64  // deliveries; after a crash no more than these are made again
	maxError     = 300 // octets of an error that are told
)

// post sorts the feed into one box for each subscription. The feed is read once for all of them, and a box holds numbers
// only: a subscription that nothing happens to costs no goroutine and no reading.
type post struct {
	mu    sync.Mutex                 // guards the following, and what is in the boxes
	read  uint64                     // number of the last event that was sorted; goes back when a box is opened
	seen  uint64                     // the furthest that read has been, in this run or the one before
	boxes map[string]map[string]*box // by application and id
	share map[string]chan struct{}   // by application: attempts under way

	opened signal
}

// box is what waits for one subscription.
type box struct {
	sub    Subscription
	queue  []uint64 // no longer than the feed: what that drops is dropped here too
	sorted uint64   // number of the last event it was looked at for
	busy   bool     // a goroutine works on it
	share  chan struct{}
	end    chan struct{}
}

// open begins to deliver the events after a number to a subscription. The feed may have been read beyond it by now: then it
// is read again from there, and the other boxes know what they have had.
func (p *post) open(sub Subscription, after uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes == nil {
		p.boxes, p.share = map[string]map[string]*box{}, map[string]chan struct{}{}
	}
	if p.boxes[sub.App] == nil {
		p.boxes[sub.App], p.share[sub.App] = map[string]*box{}, make(chan struct{}, deliverShare)
	}
	p.boxes[sub.App][sub.ID] = &box{sub: sub, sorted: after, share: p.share[sub.App], end: make(chan struct{})}
	p.read = min(p.read, after)
	p.opened.send()
}

// close ends delivery to a subscription, or to all of an application when id is empty.
func (p *post) close(app, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for have, b := range p.boxes[app] {
		if id == "" || id == have {
			p.removeLocked(b)
		}
	}
}

func (p *post) removeLocked(b *box) {
	close(b.end)
	delete(p.boxes[b.sub.App], b.sub.ID)
	if len(p.boxes[b.sub.App]) == 0 {
		delete(p.boxes, b.sub.App)
		delete(p.share, b.sub.App)
	}
}

// newer is a subscription as delivery knows it, which its row follows later.
func (p *post) newer(sub Subscription) Subscription {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.boxes[sub.App][sub.ID]; b != nil {
		return b.sub
	}
	return sub
}

// runPost delivers until ctx ends.
func (s *Service) runPost(ctx context.Context) error {
	if s.opts.Deliver == nil {
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, deliverers)
	for ctx.Err() == nil {
		changed, opened := s.changed.wait(), s.post.opened.wait()
		more, err := s.sort()
		if err != nil {
			s.opts.Log.Error("events cannot be read", "error", err)
			sleep(ctx, retryStore)
			continue
		}
		for _, b := range s.post.ready() {
			wg.Go(func() { s.deliverBox(ctx, b, slots) })
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

// sort puts some of the new events into the boxes, and tells whether there are more.
func (s *Service) sort() (more bool, err error) {
	s.post.mu.Lock()
	after, idle := s.post.read, len(s.post.boxes) == 0
	s.post.mu.Unlock()
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
	return s.post.sort(after, f, events), nil
}

func (p *post) sort(after uint64, f feedRow, events []Event) (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.boxes) == 0 {
		p.read, p.seen = f.Last, f.Last
		return false
	}
	if p.read != after {
		return true // a box was opened in the meantime
	}
	for _, of := range p.boxes {
		for _, b := range of {
			if seen := max(p.seen, b.sorted); seen+1 < f.First { // the feed is faster than this
				b.sub.Missed += f.First - 1 - seen
			}
			for len(b.queue) > 0 && b.queue[0] < f.First {
				b.queue = b.queue[1:]
				b.sub.Missed++
			}
		}
	}
	p.read = max(p.read, f.First-1)
	for _, ev := range events {
		for _, b := range p.boxes[ev.Rule.App] {
			if b.sorted < ev.Seq {
				b.queue = append(b.queue, ev.Seq)
				b.sorted = ev.Seq
			}
		}
		p.read = ev.Seq
	}
	p.seen = max(p.seen, p.read)
	return p.read < f.Last
}

// ready marks the boxes that have something to deliver as busy, and returns them.
func (p *post) ready() (out []*box) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.boxes {
		for _, b := range of {
			if !b.busy && len(b.queue) > 0 {
				b.busy = true
				out = append(out, b)
			}
		}
	}
	return out
}

// deliverBox delivers until the box is empty or given up, or ctx ends.
func (s *Service) deliverBox(ctx context.Context, b *box, slots chan struct{}) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-b.end:
			cancel()
		case <-ctx.Done():
		}
	}()
	for n := 1; ctx.Err() == nil; n++ {
		sub, seq, ok := s.post.front(b)
		if !ok || n%saveEvery == 0 {
			if err := s.saveSubscription(ctx, sub); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("progress of a subscription not written", "subscription", sub.ID, "error", err)
			}
		}
		if !ok && s.post.idle(b) || ok && !s.deliverOne(ctx, b, seq, slots) {
			break
		}
	}
	if outer.Err() != nil { // the program ends: what was delivered need not be again
		sub, _, _ := s.post.front(b)
		if err := s.saveSubscription(context.WithoutCancel(outer), sub); err != nil {
			s.opts.Log.Info("some events will be delivered again", "subscription", sub.ID, "error", err)
		}
	}
}

// front is the event that is next in a box.
func (p *post) front(b *box) (sub Subscription, seq uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b.queue) == 0 {
		return b.sub, 0, false
	}
	return b.sub, b.queue[0], true
}

// idle lets go of a box, unless it has been filled again.
func (p *post) idle(b *box) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.busy = len(b.queue) > 0
	return !b.busy
}

// deliverOne tries one event once, and waits after a failure. It tells whether to go on.
func (s *Service) deliverOne(ctx context.Context, b *box, seq uint64, slots chan struct{}) bool {
	var ev Event
	var ended error
	err := s.pub.View(func(v store.View) (err error) {
		ended = v.Object(store.KindMECSubscription.Of(b.sub.App), b.sub.ID, &Subscription{})
		ev, err = readEvent(v, seq)
		return err
	})
	if errors.Is(ended, store.ErrNotFound) { // before its box was opened
		s.post.close(b.sub.App, b.sub.ID)
		return false
	}
	if errors.Is(err, store.ErrNotFound) {
		s.post.done(b, seq, func(sub *Subscription) { sub.Missed++ })
		return true
	}
	if err == nil {
		err = s.attempt(ctx, b, ev, slots)
	}
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		s.post.done(b, seq, func(sub *Subscription) { sub.Delivered, sub.Failures, sub.LastError = seq, 0, "" })
		return true
	}
	sub, over := s.post.failed(b, err)
	if !over {
		return sleep(ctx, min(firstPause<<min(sub.Failures-1, 10), longestPause))
	}
	s.opts.Log.Warn("subscription given up", "subscription", sub.ID, "callback", sub.Callback, "error", sub.LastError)
	s.giveUp(ctx, b, sub)
	return false
}

// giveUp writes that a subscription has failed, before its box goes: somebody may look at it in between.
func (s *Service) giveUp(ctx context.Context, b *box, sub Subscription) {
	for {
		err := s.saveSubscription(ctx, sub)
		if err == nil || !sleep(ctx, retryStore) {
			break
		}
	}
	if ctx.Err() == nil {
		s.post.close(b.sub.App, b.sub.ID)
	}
}

// attempt calls Deliver, when there is a slot for it among those of the application and those of all.
func (s *Service) attempt(ctx context.Context, b *box, ev Event, slots chan struct{}) error {
	for _, slots := range []chan struct{}{b.share, slots} {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-slots }()
	}
	ctx, cancel := context.WithTimeout(ctx, deliverLimit)
	defer cancel()
	sub, _, _ := s.post.front(b)
	return s.opts.Deliver(ctx, sub, ev)
}

// done takes the event in front from a box, unless the feed has done so.
func (p *post) done(b *box, seq uint64, note func(*Subscription)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note(&b.sub)
	if len(b.queue) > 0 && b.queue[0] == seq {
		b.queue = b.queue[1:]
	}
	if len(b.queue) == 0 {
		b.queue = nil
	}
}

// failed notes a failure, and tells whether it was one too many.
func (p *post) failed(b *box, err error) (Subscription, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.sub.Failures++
	b.sub.LastError = fmt.Sprintf("%.*s", maxError, err)
	if b.sub.Failures >= maxAttempts {
		b.sub.State = givenUp
	}
	return b.sub, b.sub.State == givenUp
}
