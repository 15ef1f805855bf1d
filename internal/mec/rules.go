package mec

import (
	"context"
	"errors"

	"github.com/nameplane/nameplane/internal/store"
)

var errTodo = errors.New("x")

// App is what is known of an application instance.
type App struct {
	ID            string
	Name          string // of its configuration; may be empty
	Rules         int
	Subscriptions int
}

// Apps lists the applications that have rules, tasks, subscriptions or a configuration, in order of their ids: at most
// limit of those after the given one.
func (s *Service) Apps(after string, limit int) ([]App, error) { return nil, errTodo }

// App is one application, or zone.ErrNotFound.
func (s *Service) App(id string) (App, error) { return App{}, errTodo }

// Rules lists the rules of an application in order of their ids; none for an unknown one.
func (s *Service) Rules(app string) ([]Rule, error) { return nil, errTodo }

// Rule is one rule, or zone.ErrNotFound.
func (s *Service) Rule(app, id string) (Rule, error) { return Rule{}, errTodo }

// Create adds a rule to the application that it names, or returns zone.ErrExists. check, when not nil, is given the
// application's rules inside the commit and may refuse.
func (s *Service) Create(ctx context.Context, actor store.Actor, r Rule, check func([]Rule) error) (Rule, error) {
	return Rule{}, errTodo
}

// Update changes a rule to what change makes of it inside the commit, so what change compares (If-Match) cannot change
// before the rule does. App and ID stay as they are. A rule that comes back equal is no change: no version, no event, no
// serial. zone.ErrNotFound comes before change is called.
func (s *Service) Update(ctx context.Context, actor store.Actor, app, id string, change func(Rule) (Rule, error)) (Rule, error) {
	return Rule{}, errTodo
}

// Delete removes a rule and returns what it was. check may be nil, or refuse inside the commit.
func (s *Service) Delete(ctx context.Context, actor store.Actor, app, id string, check func(Rule) error) (Rule, error) {
	return Rule{}, errTodo
}

// SetStates gives all rules of an application one state in one commit, and returns them.
func (s *Service) SetStates(ctx context.Context, actor store.Actor, app string, to State) ([]Rule, error) {
	return nil, errTodo
}

// Replace makes rules all that an application has, in one commit. Rules with the id of an old one change it, and keep its
// state when they have none.
func (s *Service) Replace(ctx context.Context, actor store.Actor, app string, rules []Rule) ([]Rule, error) {
	return nil, errTodo
}

// Removed counts what Terminate took away.
type Removed struct{ Rules, Tasks, Subscriptions int }

// Terminate removes everything of an application. To terminate an unknown one removes nothing.
func (s *Service) Terminate(ctx context.Context, actor store.Actor, app string) (Removed, error) {
	return Removed{}, errTodo
}
