package access

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Project owns zones. Every token and user acts for one project.
type Project struct {
	ID          string // a UUID without hyphens, like Keystone's
	Name        string
	Description string
	Created     time.Time
}

// Counts returns how many tokens, users and projects there are, which bounds the size of a list.
func (a *Access) Counts() (tokens, users, projects int) {
	all := a.accounts.Load()
	return len(all.tokens), len(all.users), len(all.projects)
}

// Projects returns all projects, sorted by name.
func (a *Access) Projects() []Project {
	return slices.SortedFunc(maps.Values(a.accounts.Load().projects), func(x, y Project) int {
		return strings.Compare(x.Name, y.Name)
	})
}

// Project returns a project by ID or name, or store.ErrNotFound.
func (a *Access) Project(idOrName string) (Project, error) {
	return a.accounts.Load().project(idOrName)
}

func (b *accounts) project(idOrName string) (Project, error) {
	if p, ok := b.projects[idOrName]; ok {
		return p, nil
	}
	if p, ok := b.projects[b.projectIDs[idOrName]]; ok {
		return p, nil
	}
	return Project{}, fmt.Errorf("project %q: %w", idOrName, store.ErrNotFound)
}

// CreateProject creates a project.
func (a *Access) CreateProject(ctx context.Context, actor store.Actor, name, description string) (Project, error) {
	if err := checkName("name", name); err != nil {
		return Project{}, err
	}
	if len(description) > 256 {
		return Project{}, &zone.InvalidError{Field: "description", Reason: "must be at most 256 bytes"}
	}
	p := Project{ID: newID(), Name: name, Description: description, Created: now()}
	err := a.change(ctx, actor, func(tx *publish.Tx) error { return putProject(tx, p) })
	return p, err
}

func putProject(tx *publish.Tx, p Project) error {
	all, err := store.ObjectsOf[Project](tx.View, store.KindProject)
	if err != nil {
		return err
	}
	for _, o := range all {
		// A name that is the ID of another project would make "by ID or name" ambiguous.
		if o.Name == p.Name || o.ID == p.Name {
			return fmt.Errorf("project %q: %w", p.Name, store.ErrExists)
		}
	}
	return tx.PutObject(store.KindProject, p.ID, p)
}

// DeleteProject deletes a project that has no zones, users or valid tokens.
func (a *Access) DeleteProject(ctx context.Context, actor store.Actor, id string) error {
	return a.change(ctx, actor, func(tx *publish.Tx) error {
		if err := unused(tx, id); err != nil {
			return err
		}
		if err := deleteTokens(tx, func(t Token) bool { return t.Project == id }); err != nil {
			return err
		}
		return tx.DeleteObject(store.KindProject, id)
	})
}

// unused returns an error when the project has zones, users or valid tokens.
func unused(tx *publish.Tx, id string) error {
	err := tx.ZonesOf(id, dnsname.Root, func(z zone.Zone) (bool, error) {
		return false, fmt.Errorf("zone %s: %w", z.Name, ErrInUse)
	})
	if err != nil {
		return err
	}
	users, err := store.ObjectsOf[userRow](tx.View, store.KindUser)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.Project == id {
			return fmt.Errorf("user %q: %w", u.Name, ErrInUse)
		}
	}
	tokens, err := store.ObjectsOf[tokenRow](tx.View, store.KindToken)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.Project == id && t.live(now()) {
			return fmt.Errorf("token %q: %w", t.Name, ErrInUse)
		}
	}
	return nil
}

func newID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

// now returns the current time in the precision of the rows.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
