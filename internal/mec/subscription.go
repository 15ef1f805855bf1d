package mec

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
)

// SubscriptionState is whether events are still delivered.
type SubscriptionState string

// The states of a subscription.
const (
	delivering SubscriptionState = "ACTIVE"
	givenUp    SubscriptionState = "FAILED" // final: the client must create a new subscription
)

// Subscription delivers the events of an application to a callback, each at least once and in order. The store uses the
// names of these fields.
type Subscription struct {
	ID        string
	App       string
	Callback  string // an http or https URI
	State     SubscriptionState
	Delivered uint64 // the number of the last delivered event; at first the last one before the subscription
	Missed    uint64 // events that the feed dropped before their delivery
	Failures  int    // failed attempts since the last success
	LastError string // the error of the newest failure
	Created   time.Time
}

// maxCallback bounds the length of a URI.
const maxCallback = 2048

func checkCallback(s string) error {
	if s == "" || len(s) > maxCallback {
		return fieldErr("callbackReference", "must have 1 to %d bytes", maxCallback)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return fieldErr("callbackReference", "%.80q is not a URI", s)
	case u.Scheme != "http" && u.Scheme != "https":
		return fieldErr("callbackReference", "%.80q is neither an http nor an https URI", s)
	case u.Hostname() == "":
		return fieldErr("callbackReference", "%.80q has no host", s)
	case u.User != nil || u.Fragment != "":
		return fieldErr("callbackReference", "must have neither a user nor a fragment")
	}
	return nil
}

// Subscribe creates a subscription for the events of an application from now on.
func (s *Service) Subscribe(ctx context.Context, actor store.Actor, app, callback string) (Subscription, error) {
	if err := CheckApp(app); err != nil {
		return Subscription{}, err
	}
	if err := checkCallback(callback); err != nil {
		return Subscription{}, err
	}
	var sub Subscription
	err := s.commit(ctx, actor, func(e *edit) error {
		if err := e.countSubscription(app, 1); err != nil {
			return err
		}
		f, err := readFeed(e.tx.View)
		if err != nil {
			return err
		}
		sub = Subscription{ID: uuid.NewString(), App: app, Callback: callback, State: delivering, Delivered: f.Last,
			Created: e.tx.Now()}
		return e.tx.PutObject(store.KindMECSubscription.Of(app), sub.ID, sub)
	})
	if err == nil {
		s.delivery.open(sub, sub.Delivered)
	}
	return sub, err
}

func (e *edit) countSubscription(app string, by int) error {
	a, err := e.app(app)
	if err != nil {
		return err
	}
	a.Subscriptions += by
	a.dirty = true
	if by > 0 && a.Subscriptions > maxSubscriptions {
		return &LimitError{"subscriptions", maxSubscriptions}
	}
	return nil
}

// Subscriptions lists the subscriptions of an application.
func (s *Service) Subscriptions(app string) ([]Subscription, error) {
	subs := []Subscription{}
	err := s.pub.View(func(v store.View) error {
		rows, err := store.ObjectsOf[Subscription](v, store.KindMECSubscription.Of(app))
		for _, sub := range rows {
			subs = append(subs, s.delivery.current(sub))
		}
		return err
	})
	return subs, err
}

// Subscription returns one subscription, or store.ErrNotFound.
func (s *Service) Subscription(app, id string) (Subscription, error) {
	var sub Subscription
	err := s.pub.View(func(v store.View) error { return v.Object(store.KindMECSubscription.Of(app), id, &sub) })
	if err != nil {
		return sub, wrapNotFound(err, "subscription %.80q", id)
	}
	return s.delivery.current(sub), nil
}

// Unsubscribe deletes a subscription, or returns store.ErrNotFound.
func (s *Service) Unsubscribe(ctx context.Context, actor store.Actor, app, id string) error {
	err := s.commit(ctx, actor, func(e *edit) error {
		if err := e.tx.DeleteObject(store.KindMECSubscription.Of(app), id); err != nil {
			return wrapNotFound(err, "subscription %.80q", id)
		}
		return e.countSubscription(app, -1)
	})
	if err == nil {
		s.delivery.close(app, id)
	}
	return err
}

// dropSubscriptions deletes all subscriptions of an application.
func (e *edit) dropSubscriptions(app string, a *appEdit) error {
	if a.Subscriptions == 0 {
		return nil
	}
	subs, err := store.ObjectsOf[Subscription](e.tx.View, store.KindMECSubscription.Of(app))
	if err != nil {
		return err
	}
	for _, sub := range subs {
		if err := e.tx.DeleteObject(store.KindMECSubscription.Of(app), sub.ID); err != nil {
			return err
		}
	}
	a.Subscriptions, a.dirty = 0, true
	return nil
}

// saveSubscription stores the progress of a delivery, unless the subscription was deleted.
func (s *Service) saveSubscription(ctx context.Context, sub Subscription) error {
	return s.commit(ctx, ownActor, func(e *edit) error {
		var was Subscription
		err := e.tx.Object(store.KindMECSubscription.Of(sub.App), sub.ID, &was)
		if errors.Is(err, store.ErrNotFound) || err == nil && was == sub {
			return nil
		}
		if err != nil {
			return err
		}
		return e.tx.PutObject(store.KindMECSubscription.Of(sub.App), sub.ID, sub)
	})
}

// loadSubscriptions opens a queue for every subscription that has not failed.
func (s *Service) loadSubscriptions() error {
	return s.pub.View(func(v store.View) error {
		f, err := readFeed(v)
		if err != nil {
			return err
		}
		s.delivery.read, s.delivery.seen = f.Last, f.Last
		return store.EachOf(v, store.KindMECSubscription, "", func(_ string, sub Subscription) (bool, error) {
			if sub.State == delivering {
				// Events that the feed has dropped since then belonged to other applications: an event for this
				// subscription would have been in its queue, and would be counted as missed.
				s.delivery.open(sub, max(sub.Delivered, f.First-1))
			}
			return true, nil
		})
	})
}
