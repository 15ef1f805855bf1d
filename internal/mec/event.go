package mec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// EventKind is what happened to a rule.
type EventKind string

// The kinds of events.
const (
	ruleCreated EventKind = "CREATED"
	ruleUpdated EventKind = "UPDATED"
	ruleDeleted EventKind = "DELETED"
	ruleExpired EventKind = "EXPIRED"
)

// Event is one change of one rule.
type Event struct {
	Seq  uint64 // increases by one with every event; a watcher resumes after it
	Time time.Time
	Kind EventKind
	Rule Rule // the rule after the change, or before its deletion
}

// eventRow is an event in the store. Its key is the number of the event.
type eventRow struct {
	Time time.Time `json:"w"`
	Kind EventKind `json:"k"`
	App  string    `json:"a"`
	ID   string    `json:"i"`
	Rule ruleRow   `json:"r"`
}

func eventID(seq uint64) string { return fmt.Sprintf("%016x", seq) }

// feedRow holds the range of events in the feed. Last is one less than First when the feed is empty.
type feedRow struct {
	First uint64 `json:"f"`
	Last  uint64 `json:"l"`
}

func readFeed(v store.View) (feedRow, error) {
	f := feedRow{First: 1}
	err := v.Object(store.KindMECState, stateFeed, &f)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return f, err
}

// event adds an event to the feed and drops the oldest events beyond the bound. It drops at most two, so that after a
// reduction of the bound no single edit pays for all surplus events.
func (e *edit) event(kind EventKind, r Rule) error {
	if e.feed == nil {
		f, err := readFeed(e.tx.View)
		if err != nil {
			return err
		}
		e.feed = &f
	}
	e.feed.Last++
	row := eventRow{e.tx.Now(), kind, r.App, r.ID, r.row()}
	if err := e.tx.PutObject(store.KindMECEvent, eventID(e.feed.Last), row); err != nil {
		return err
	}
	for n := 0; n < 2 && e.feed.Last-e.feed.First >= e.s.keep; n++ {
		if err := e.tx.DeleteObject(store.KindMECEvent, eventID(e.feed.First)); err != nil {
			return err
		}
		e.feed.First++
	}
	return nil
}

func readEvent(v store.View, seq uint64) (Event, error) {
	var row eventRow
	err := v.Object(store.KindMECEvent, eventID(seq), &row)
	return Event{seq, row.Time, row.Kind, row.Rule.rule(row.App, row.ID)}, err
}

// Newest returns the number of the newest event, or 0 before the first one. Watch from there to see only new events.
func (s *Service) Newest() (uint64, error) {
	f, err := publish.Read(s.pub, readFeed)
	return f.Last, err
}

// Watcher reads events in the order of their commits. It reads from the store at its own pace and blocks nobody. When
// it is too slow for the feed, Next returns a GapError.
type Watcher struct {
	s    *Service
	app  string
	next uint64 // 0: the oldest event in the feed
}

// Watch returns a watcher for the events of an application, or of all applications when app is empty. It begins with
// the event that follows the number after; 0 means the oldest event in the feed.
func (s *Service) Watch(app string, after uint64) *Watcher {
	w := &Watcher{s: s, app: app}
	if after > 0 {
		w.next = after + 1
	}
	return w
}

// Bounds on the rows that one call reads: while a read transaction is open, the store cannot reuse free pages. The
// events of one call are also what a stream holds in memory for a client that does not read: about 40 KB.
const (
	watchEvents = 64
	watchRows   = 2048
)

// Next blocks until there are events, and returns some of them. It may be called again after a GapError, or after the
// end of ctx.
func (w *Watcher) Next(ctx context.Context) ([]Event, error) {
	for {
		changed := w.s.changed.wait()
		events, more, err := w.read()
		if err != nil || len(events) > 0 {
			return events, err
		}
		if more && ctx.Err() == nil {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// read returns the next events. more reports that it stopped at a bound before the end of the feed.
func (w *Watcher) read() (events []Event, more bool, err error) {
	err = w.s.pub.View(func(v store.View) error {
		f, err := readFeed(v)
		if err != nil {
			return err
		}
		if w.next == 0 {
			w.next = f.First
		}
		if w.next < f.First || w.next > f.Last+1 {
			gap := &GapError{w.next - 1, f.First}
			w.next = f.First
			return gap
		}
		for rows := 0; w.next <= f.Last && rows < watchRows && len(events) < watchEvents; rows++ {
			ev, err := readEvent(v, w.next)
			if err != nil {
				return err
			}
			if w.next++; w.app == "" || w.app == ev.Rule.App {
				events = append(events, ev)
			}
		}
		more = w.next <= f.Last
		return nil
	})
	return events, more, err
}
