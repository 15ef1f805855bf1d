package mec

import (
	"context"
	"time"
)

// EventKind says what happened to a rule.
type EventKind string

// The kinds of events.
const (
	RuleCreated EventKind = "CREATED"
	RuleUpdated EventKind = "UPDATED"
	RuleDeleted EventKind = "DELETED"
	RuleExpired EventKind = "EXPIRED"
)

// Event is one change of one rule.
type Event struct {
	Seq  uint64 // steps by one with every event of the store; the token to go on from
	Time time.Time
	Kind EventKind
	Rule Rule // as it is now, or was last
}

// Watcher reads events in the order of their commits. It holds nothing up: it reads from the store at its own pace, and when
// it is too slow, learns of it by a GapError.
type Watcher struct {
	s    *Service
	app  string
	next uint64
}

// Watch reads the events of an application, or of all when app is empty, that come after the one with number after.
func (s *Service) Watch(app string, after uint64) *Watcher { return &Watcher{s, app, after + 1} }

// Newest is the number of the newest event, 0 when there was none: to watch from now on.
func (s *Service) Newest() (uint64, error) { return 0, errTodo }

// Next waits until there are events, and returns some of them. After a GapError, or the end of ctx, it may be called again.
func (w *Watcher) Next(ctx context.Context) ([]Event, error) { return nil, errTodo }
