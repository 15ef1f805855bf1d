package mec

import (
	"context"
	"errors"
	"fmt"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// App describes an application instance.
type App struct {
	ID            string
	Name          string // the name in its configuration; may be empty
	Rules         int
	Subscriptions int
}

// Apps lists the applications that have rules, tasks, subscriptions or a configuration, in the order of their ids. It
// returns at most limit of those after the given id.
func (s *Service) Apps(after string, limit int) ([]App, error) {
	apps := []App{}
	err := s.pub.View(func(v store.View) error {
		return store.EachOf(v, store.KindMECApp, after, func(id string, a appRow) (bool, error) {
			if len(apps) == limit {
				return false, nil
			}
			apps = append(apps, App{id, a.Name, a.Rules, a.Subscriptions})
			return true, nil
		})
	})
	return apps, err
}

// App returns an application. An unknown one has no rules and no subscriptions.
func (s *Service) App(id string) (App, error) {
	return publish.Read(s.pub, func(v store.View) (App, error) {
		var a appRow
		err := v.Object(store.KindMECApp, id, &a)
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return App{id, a.Name, a.Rules, a.Subscriptions}, err
	})
}

// Rules lists the rules of an application in the order of their ids. An unknown application has none.
func (s *Service) Rules(app string) ([]Rule, error) {
	return publish.Read(s.pub, func(v store.View) ([]Rule, error) { return readRules(v, app) })
}

// Rule returns one rule, or store.ErrNotFound.
func (s *Service) Rule(app, id string) (Rule, error) {
	return publish.Read(s.pub, func(v store.View) (Rule, error) { return readRule(v, app, id) })
}

// Create adds a rule to the application r.App, or returns store.ErrExists. If check is not nil, Create calls it inside
// the commit with the rules of the application; an error of check refuses the edit.
func (s *Service) Create(ctx context.Context, actor store.Actor, r Rule, check func([]Rule) error) (Rule, error) {
	var made Rule
	err := s.commit(ctx, actor, func(e *edit) error {
		if err := e.check(r.App, check); err != nil {
			return err
		}
		_, err := readRule(e.tx.View, r.App, r.ID)
		if err == nil {
			return fmt.Errorf("rule %s: %w", r.ID, store.ErrExists)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		e.tx.Note("create rule")
		made, err = e.putRule(nil, r)
		return err
	})
	return made, err
}

// check calls a function with the rules of an application, unless the function is nil. Its error refuses the edit.
func (e *edit) check(app string, check func([]Rule) error) error {
	if check == nil {
		return nil
	}
	rules, err := readRules(e.tx.View, app)
	if err != nil {
		return err
	}
	return check(rules)
}

// Update replaces a rule by the result of change. It calls change inside the commit, so a value that change compares
// (If-Match) cannot be outdated. App and ID stay the same. If the result is equal to the rule, there is no new version,
// no event and no new serial. If the rule does not exist, Update returns store.ErrNotFound without calling change.
func (s *Service) Update(ctx context.Context, actor store.Actor, app, id string,
	change func(Rule) (Rule, error)) (Rule, error) {
	var next Rule
	err := s.commit(ctx, actor, func(e *edit) error {
		was, err := readRule(e.tx.View, app, id)
		if err != nil {
			return err
		}
		if next, err = change(was); err != nil {
			return err
		}
		next.App, next.ID = app, id
		e.tx.Note("update rule")
		next, err = e.putRule(&was, next)
		return err
	})
	return next, err
}

// Delete deletes a rule and returns it. If check is not nil, Delete calls it inside the commit; its error refuses the
// edit.
func (s *Service) Delete(ctx context.Context, actor store.Actor, app, id string, check func(Rule) error) (Rule, error) {
	var was Rule
	err := s.commit(ctx, actor, func(e *edit) (err error) {
		if was, err = readRule(e.tx.View, app, id); err != nil {
			return err
		}
		if check != nil {
			if err := check(was); err != nil {
				return err
			}
		}
		e.tx.Note("delete rule")
		return e.deleteRule(was, ruleDeleted)
	})
	return was, err
}

// SetStates sets the state of all rules of an application in one commit, and returns them. If check is not nil,
// SetStates calls it inside the commit; its error refuses the edit.
func (s *Service) SetStates(ctx context.Context, actor store.Actor, app string, to State,
	check func([]Rule) error) ([]Rule, error) {
	var rules []Rule
	err := s.commit(ctx, actor, func(e *edit) (err error) {
		if rules, err = readRules(e.tx.View, app); err != nil {
			return err
		}
		if check != nil {
			if err := check(rules); err != nil {
				return err
			}
		}
		e.tx.Note("set all rules %s", to)
		for i, was := range rules {
			next := was
			next.State = to
			if rules[i], err = e.putRule(&was, next); err != nil {
				return err
			}
		}
		return nil
	})
	return rules, err
}

// Replace replaces all rules of an application in one commit. A rule with the id of an existing one changes it, and
// keeps its state if it has none itself. If check is not nil, Replace calls it inside the commit with the existing
// rules; its error refuses the edit.
func (s *Service) Replace(ctx context.Context, actor store.Actor, app string, rules []Rule,
	check func([]Rule) error) ([]Rule, error) {
	var out []Rule
	err := s.commit(ctx, actor, func(e *edit) (err error) {
		if err := e.check(app, check); err != nil {
			return err
		}
		e.tx.Note("replace rules")
		out, err = e.replaceRules(app, rules)
		return err
	})
	return out, err
}

func (e *edit) replaceRules(app string, rules []Rule) ([]Rule, error) {
	if err := CheckApp(app); err != nil {
		return nil, err
	}
	old, err := readRules(e.tx.View, app)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for i, r := range rules {
		if want[r.ID] {
			return nil, In(fmt.Sprintf("appDNSRule[%d]", i), fieldErr("dnsRuleId", "%q occurs twice", r.ID))
		}
		want[r.ID] = true
	}
	have := map[string]*Rule{}
	for _, r := range old { // before the new rules, so that the limit applies to the result
		if have[r.ID] = &r; want[r.ID] {
			continue
		}
		if err := e.deleteRule(r, ruleDeleted); err != nil {
			return nil, err
		}
	}
	out := make([]Rule, len(rules))
	for i, r := range rules {
		r.App = app
		if out[i], err = e.putRule(have[r.ID], r); err != nil {
			return nil, In(fmt.Sprintf("appDNSRule[%d]", i), err)
		}
		same := have[r.ID] != nil && have[r.ID].Version == out[i].Version
		if (out[i].State != Active || same) && e.checked != nil {
			e.checked(1) // the rule has no new claim; claimEdit.apply checks the others
		}
	}
	return out, nil
}

// Removed counts the objects that Terminate deleted.
type Removed struct{ Rules, Tasks, Subscriptions int }

// Terminate deletes everything that belongs to an application. It is no error if the application is unknown.
func (s *Service) Terminate(ctx context.Context, actor store.Actor, app string) (Removed, error) {
	var n Removed
	if err := CheckApp(app); err != nil {
		return n, err
	}
	err := s.commit(ctx, actor, func(e *edit) error {
		a, err := e.app(app)
		if err != nil || !a.old {
			return err
		}
		e.tx.Note("terminate application")
		n = Removed{Rules: a.Rules, Tasks: len(a.Tasks), Subscriptions: a.Subscriptions}
		if _, err := e.replaceRules(app, nil); err != nil {
			return err
		}
		if err := e.dropTasks(a, len(a.Tasks)); err != nil {
			return err
		}
		if err := e.dropConfig(app, a); err != nil {
			return err
		}
		return e.dropSubscriptions(app, a)
	})
	if err == nil && n.Subscriptions > 0 {
		s.delivery.close(app, "")
	}
	return n, err
}
