package mec

import (
	"context"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// SubscriptionState says whether events are still delivered.
type SubscriptionState string

// The states of a subscription.
const (
	Delivering SubscriptionState = "ACTIVE"
	GivenUp    SubscriptionState = "FAILED" // until it is deleted and made anew
)

// Subscription asks for the events of an application to be delivered to a callback, each at least once and in order.
type Subscription struct {
	ID        string
	App       string // empty: the platform's, for the events of all applications
	Callback  string // http or https URI
	State     SubscriptionState
	Delivered uint64 // number of the last event delivered, or that was there before
	Missed    uint64 // events that were gone from the feed before they could be delivered
	Failures  int    // attempts since the last success
	LastError string // of the newest failure
	Created   time.Time
}

// Subscribe makes a subscription for the events after this moment. An empty app is the platform.
func (s *Service) Subscribe(ctx context.Context, actor store.Actor, app, callback string) (Subscription, error) {
	return Subscription{}, errTodo
}

// Subscriptions lists those of an application.
func (s *Service) Subscriptions(app string) ([]Subscription, error) { return nil, errTodo }

// Subscription is one, or zone.ErrNotFound.
func (s *Service) Subscription(app, id string) (Subscription, error) {
	return Subscription{}, errTodo
}

// Unsubscribe ends a subscription, or returns zone.ErrNotFound.
func (s *Service) Unsubscribe(ctx context.Context, actor store.Actor, app, id string) error {
	return errTodo
}

type post struct{}

func (s *Service) loadSubscriptions() error           { return nil }
func (s *Service) runPost(ctx context.Context) error { return nil }
