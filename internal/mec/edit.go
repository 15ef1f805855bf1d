package mec

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// The ids of the rows of store.KindMECState.
const (
	stateApps = "apps"
	stateFeed = "feed"
)

// appRow holds the counters and flags of an application. They answer questions about it without reading its rules.
type appRow struct {
	Name          string   `json:"n,omitempty"`
	Rules         int      `json:"r,omitempty"`
	Subscriptions int      `json:"s,omitempty"`
	Tasks         []string `json:"t,omitempty"` // oldest first
	Running       string   `json:"w,omitempty"` // the task that has not ended
	Configured    bool     `json:"c,omitempty"`
}

func (a appRow) empty() bool {
	return a.Rules == 0 && a.Subscriptions == 0 && len(a.Tasks) == 0 && !a.Configured
}

// edit is one commit of the service. Rows that several steps of an edit change are written once, at the end.
type edit struct {
	s      *Service
	tx     *publish.Tx
	claims *claimEdit
	apps   map[string]*appEdit
	feed   *feedRow
	timed  bool // the edit stored the expiry of a rule

	checked func(rules int) // called with the number of rules that were checked; may be nil
}

type appEdit struct {
	appRow
	old, dirty bool
}

// commit runs fn and writes its result in one commit. Then it wakes the goroutines that wait for events or expiries.
func (s *Service) commit(ctx context.Context, actor store.Actor, fn func(*edit) error) error {
	if err := s.listNames(ctx); err != nil {
		return err
	}
	var e *edit
	err := s.pub.Commit(ctx, actor, func(tx *publish.Tx) error {
		e = &edit{s: s, tx: tx, claims: &claimEdit{tx: tx, sets: map[claimKey]*claimSet{}}, apps: map[string]*appEdit{}}
		if err := fn(e); err != nil {
			return err
		}
		return e.finish()
	})
	if err != nil {
		return err
	}
	if e.feed != nil {
		s.changed.send()
	}
	if e.timed {
		s.expires.send()
	}
	return nil
}

func (e *edit) finish() error {
	if err := e.claims.apply(); err != nil {
		return err
	}
	for id, a := range e.apps {
		if err := e.finishApp(id, a); err != nil {
			return err
		}
	}
	if e.feed != nil {
		return e.tx.PutObject(store.KindMECState, stateFeed, e.feed)
	}
	return nil
}

// app returns the row of an application. Callers change the row itself and set dirty.
func (e *edit) app(id string) (*appEdit, error) {
	if a := e.apps[id]; a != nil {
		return a, nil
	}
	a := &appEdit{}
	err := e.tx.Object(store.KindMECApp, id, &a.appRow)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	a.old = err == nil
	e.apps[id] = a
	return a, nil
}

// finishApp writes the row of an application and updates the number of applications.
func (e *edit) finishApp(id string, a *appEdit) error {
	if !a.dirty || !a.old && a.empty() {
		return nil
	}
	if a.old && !a.empty() {
		return e.tx.PutObject(store.KindMECApp, id, a.appRow)
	}
	var n int
	if err := e.tx.Object(store.KindMECState, stateApps, &n); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	var err error
	if a.old {
		n--
		err = e.tx.DeleteObject(store.KindMECApp, id)
	} else if n++; n > maxApps {
		err = &LimitError{"applications", maxApps}
	} else {
		err = e.tx.PutObject(store.KindMECApp, id, a.appRow)
	}
	if err != nil {
		return err
	}
	return e.tx.PutObject(store.KindMECState, stateApps, n)
}

// prepare sets the fields of a rule that its owner did not set, and checks the expiry against the current time.
func (e *edit) prepare(was *Rule, r Rule) (Rule, error) {
	if err := CheckApp(r.App); err != nil {
		return r, err
	}
	if err := checkID("dnsRuleId", r.ID); err != nil {
		return r, err
	}
	if r.State == "" {
		r.State = Active
		if was != nil {
			r.State = was.State
		}
	}
	var err error
	if r.ExpiresAt, err = parseExpiry(r.ExpiresAt); err != nil {
		return r, err
	}
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(e.tx.Now()) && (was == nil || !was.ExpiresAt.Equal(r.ExpiresAt)) {
		return r, fieldErr("expiresAt", "%s has passed", r.ExpiresAt.Format(time.RFC3339))
	}
	r.Version, r.Created, r.Updated = 1, e.tx.Now(), time.Time{}
	if was != nil {
		r.Version, r.Created, r.Updated = was.Version+1, was.Created, e.tx.Now()
	}
	return r, nil
}

// putRule creates a rule when was is nil, and changes was otherwise. A rule with equal content is not written.
func (e *edit) putRule(was *Rule, r Rule) (Rule, error) {
	r, err := e.prepare(was, r)
	if err != nil {
		return r, err
	}
	if was != nil && was.sameContent(r) {
		return *was, nil
	}
	kind := ruleUpdated
	if was == nil {
		kind = ruleCreated
		if err := e.countRule(r.App, 1); err != nil {
			return r, err
		}
	} else if err := e.release(*was); err != nil {
		return r, err
	}
	if err := e.claim(r); err != nil {
		return r, err
	}
	if err := e.moveNames(was, &r); err != nil {
		return r, err
	}
	if err := e.tx.PutObject(store.KindMECRule.Of(r.App), r.ID, r.row()); err != nil {
		return r, err
	}
	return r, e.event(kind, r)
}

func (e *edit) deleteRule(r Rule, kind EventKind) error {
	if err := e.countRule(r.App, -1); err != nil {
		return err
	}
	if err := e.release(r); err != nil {
		return err
	}
	if err := e.moveNames(&r, nil); err != nil {
		return err
	}
	if err := e.tx.DeleteObject(store.KindMECRule.Of(r.App), r.ID); err != nil {
		return err
	}
	return e.event(kind, r)
}

func (e *edit) countRule(app string, by int) error {
	a, err := e.app(app)
	if err != nil {
		return err
	}
	a.Rules += by
	a.dirty = true
	if by > 0 && a.Rules > maxRules {
		return &LimitError{"rules of an application", maxRules}
	}
	return nil
}

func ruleKey(r Rule) claimKey { return claimKey{dnsname.Root, r.Name, r.Type()} }

// claim adds the claim and the expiry of a rule.
func (e *edit) claim(r Rule) error {
	if r.State == Active {
		c := claim{r.App, r.ID, []netip.Addr{r.Addr}, servedTTL(r.TTL), r.LoadBalance}
		if err := e.claims.put(ruleKey(r), c); err != nil {
			return err
		}
	}
	if r.ExpiresAt.IsZero() {
		return nil
	}
	e.timed = true
	return e.tx.PutObject(store.KindMECExpiry, expiryID(r), expiryRow{App: r.App, Rule: r.ID})
}

// release removes the claim and the expiry of a rule.
func (e *edit) release(r Rule) error {
	if r.State == Active {
		if err := e.claims.drop(ruleKey(r), claim{App: r.App, Rule: r.ID}); err != nil {
			return err
		}
	}
	if r.ExpiresAt.IsZero() {
		return nil
	}
	return e.tx.DeleteObject(store.KindMECExpiry, expiryID(r))
}

func readRule(v store.View, app, id string) (Rule, error) {
	var row ruleRow
	if err := v.Object(store.KindMECRule.Of(app), id, &row); err != nil {
		return Rule{}, wrapNotFound(err, "rule %s", id)
	}
	return row.rule(app, id), nil
}

func readRules(v store.View, app string) ([]Rule, error) {
	rules := []Rule{}
	err := store.EachOf(v, store.KindMECRule.Of(app), "", func(id string, row ruleRow) (bool, error) {
		rules = append(rules, row.rule(app, id))
		return true, nil
	})
	return rules, err
}
