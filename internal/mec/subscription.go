package mec

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
)

// SubscriptionState says whether events are still delivered.
type SubscriptionState string

// The states of a subscription.
const (
	delivering SubscriptionState = "ACTIVE"
	givenUp    SubscriptionState = "FAILED" // until it is deleted and made anew
)

// Subscription asks for the events of an application to be delivered to a callback, each at least once and in order. The
// store keeps it under the names of these fields.
type Subscription struct {
	ID        string
	App       string
	Callback  string // http or https URI
	State     SubscriptionState
	Delivered uint64 // number of the last event delivered, or that was there before
	Missed    uint64 // events that the feed had to drop while they waited
	Failures  int    // attempts since the last success
	LastError string // of the newest failure
	Created   time.Time
}

// maxCallback bounds the length of a URI.
const maxCallback = 2048

func checkCallback(s string) error {
	if s == "" || len(s) > maxCallback {
		return fieldErr("callbackReference", "must have 1 to %d octets", maxCallback)
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

// Subscribe makes a subscription for the events of an application after this moment.
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
		s.post.open(sub, sub.Delivered)
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

// Subscriptions lists those of an application.
func (s *Service) Subscriptions(app string) ([]Subscription, error) {
	subs := []Subscription{}
	err := s.pub.View(func(v store.View) error {
		rows, err := store.ObjectsOf[Subscription](v, store.KindMECSubscription.Of(app))
		for _, sub := range rows {
			subs = append(subs, s.post.newer(sub))
		}
		return err
	})
	return subs, err
}

// Subscription is one, or store.ErrNotFound.
func (s *Service) Subscription(app, id string) (Subscription, error) {
	var sub Subscription
	err := s.pub.View(func(v store.View) error { return v.Object(store.KindMECSubscription.Of(app), id, &sub) })
	if err != nil {
		return sub, absent(err, "subscription %.80q", id)
	}
	return s.post.newer(sub), nil
}

// Unsubscribe ends a subscription, or returns store.ErrNotFound.
func (s *Service) Unsubscribe(ctx context.Context, actor store.Actor, app, id string) error {
	err := s.commit(ctx, actor, func(e *edit) error {
		if err := e.tx.DeleteObject(store.KindMECSubscription.Of(app), id); err != nil {
			return absent(err, "subscription %.80q", id)
		}
		return e.countSubscription(app, -1)
	})
	if err == nil {
		s.post.close(app, id)
	}
	return err
}

// dropSubscriptions removes all of an application's.
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

// saveSubscription writes how far delivery has come, unless the subscription has ended.
func (s *Service) saveSubscription(ctx context.Context, sub Subscription) error {
	return s.commit(ctx, own, func(e *edit) error {
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

// loadSubscriptions puts all that are not given up into the post.
func (s *Service) loadSubscriptions() error {
	return s.pub.View(func(v store.View) error {
		f, err := readFeed(v)
		if err != nil {
			return err
		}
		s.post.read, s.post.seen = f.Last, f.Last
		return store.EachOf(v, store.KindMECSubscription, "", func(_ string, sub Subscription) (bool, error) {
			if sub.State == delivering {
				// What the feed has dropped since was of others: what was for this one would have been waiting, and
				// counted as missed.
				s.post.open(sub, max(sub.Delivered, f.First-1))
			}
			return true, nil
		})
	})
}
